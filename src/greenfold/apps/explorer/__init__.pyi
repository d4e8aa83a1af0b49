from .make import Explorer, Source, make_explorer, which_came_first
from .material import Material, prepare
from .page import Start, write_explorer
from .solved import Grid, Solved, solve_grid

__all__ = [
    "Explorer",
    "Grid",
    "Material",
    "Solved",
    "Source",
    "Start",
    "make_explorer",
    "prepare",
    "solve_grid",
    "which_came_first",
    "write_explorer",
]
