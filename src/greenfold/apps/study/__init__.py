"""Which network? Certified margins of many networks on the same stimuli."""

from .plan import Grid, study
from .table import read_study, write_table

__all__ = ["Grid", "read_study", "study", "write_table"]
