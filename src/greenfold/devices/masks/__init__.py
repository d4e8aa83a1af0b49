"""Masks that hardware can realise: one class per kind of restriction on u."""

from .at_most import AtMost
from .box import Box, NonNegative
from .levels import Levels, Signs
from .mask import Mask

__all__ = ["AtMost", "Box", "Levels", "Mask", "NonNegative", "Signs"]
