from .make import Explorer, Source, make_explorer, which_came_first
from .page import Start, write_explorer
from .series import Grid, PageSeries, SolvedPair, prepare, solve_grid

__all__ = [
    "Explorer",
    "Grid",
    "PageSeries",
    "SolvedPair",
    "Source",
    "Start",
    "make_explorer",
    "prepare",
    "solve_grid",
    "which_came_first",
    "write_explorer",
]
