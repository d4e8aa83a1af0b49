from .page import Source, Start, make_explorer

__all__ = ["Source", "Start", "make_explorer"]
