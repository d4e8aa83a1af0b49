from .comparison import Split, compare
from .page import write_mask_page, write_pooled_page, write_report

__all__ = ["Split", "compare", "write_mask_page", "write_pooled_page", "write_report"]
