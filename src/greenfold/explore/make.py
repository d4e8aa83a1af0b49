"""From series and a network to a page: thinned, solved on the grid, written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ..echo_state import EchoStateNetwork
from ..reservoir import Reservoir
from ..unfolding import Unfolding, unfold
from .material import MAX_NUMBERS, MAX_SERIES, Material, prepare
from .page import MAX_NEURONS, Start, room_for_series, write_explorer
from .solved import Grid, Solved, solve_grid

#: Pairs of classes that are solved where there are more than two classes.
MAX_PAIRS = 3
#: Numbers of series for which pairs are left out, and those that are kept in any case.
_ENOUGH_NUMBERS, _FEWEST_NUMBERS = 40_000, 2_000


@dataclass(frozen=True, eq=False)
class Source:
    """Labelled series with what is known of them.

    Attributes
    ----------
    name : str
    X : array (n_cases, n_steps) or (n_cases, n_channels, n_steps), or list
    y : array_like (n_cases,)
    X_test, y_test
        Test series, or None.
    note : str
    class_weights : dict
        Factor on the weight of a class, by its name.
    scaling : float
        ‖μ‖ as the series enter the network.
    n_series : int
        Series of training and of test to keep on the page, each.
    """

    name: str
    X: Any
    y: Any
    X_test: Any = None
    y_test: Any = None
    note: str = ""
    class_weights: dict[str, float] = field(default_factory=dict)
    scaling: float = 1.0
    n_series: int = MAX_SERIES

    def only(self, classes: Sequence[str]) -> Source:
        """The same with some of the classes.

        Raises
        ------
        ValueError
            Where a class does not occur.
        """
        found = sorted({str(label) for label in np.asarray(self.y).tolist()})
        for one in classes:
            if one not in found:
                shown = ", ".join(found[:8]) + (", …" if len(found) > 8 else "")
                raise ValueError(
                    f"`classes` names {one!r}, which is none of the classes of "
                    f"{self.name}: {shown}."
                )
        parts: dict[str, Any] = {}
        for x, y in (("X", "y"), ("X_test", "y_test")):
            if getattr(self, x) is None:
                continue
            labels = np.asarray(getattr(self, y))
            kept = [i for i, one in enumerate(labels.tolist()) if str(one) in classes]
            parts[x] = [getattr(self, x)[i] for i in kept]
            parts[y] = labels[kept]
        if not len(parts.get("X_test", ())):
            parts["X_test"] = parts["y_test"] = None
        return Source(**{**vars(self), **parts})


@dataclass(frozen=True, eq=False)
class Explorer:
    """A page that was made.

    Attributes
    ----------
    path : Path
    unfolding : Unfolding
    sets : list of (Material, list of Solved)
    """

    path: Path
    unfolding: Unfolding
    sets: list[tuple[Material, list[Solved]]]


def make_explorer(
    path: str | Path,
    sources: Sequence[Source],
    reservoir: Reservoir | EchoStateNetwork,
    *,
    duration: float = 10.0,
    start: Start | None = None,
    title: str = "Turn u yourself",
    note: str = "",
    command: str = "",
    seed: int = 0,
    on_step: Callable[[str, float], None] | None = None,
) -> Explorer:
    """Make the page of one or more data sets on one network.

    Parameters
    ----------
    path : str or Path
    sources : sequence of Source
        All are brought to the steps of the first, which the network walks.
    reservoir : Reservoir or EchoStateNetwork
    duration : float
        Time that a series takes; in discrete time it takes as many steps as it has.
    start : Start, optional
        Where the page begins.
    title, note, command : str
        See `write_explorer`.
    seed : int
        Of the random projections.
    on_step : callable, optional
        Called with words and the share of the work that follows, before each part.
    """
    if reservoir.n_neurons > MAX_NEURONS:
        raise ValueError(
            f"`reservoir` has {reservoir.n_neurons} neurons; the explorer shows networks "
            f"of up to {MAX_NEURONS}: take a smaller one."
        )
    tell = on_step or (lambda _, __: None)
    eta = None if start is None else start.eta
    materials: list[Material] = []
    for source in sources:
        material = _prepare(source, reservoir.n_neurons, materials, len(sources))
        materials.append(material)
    n_steps = materials[0].n_steps
    discrete = isinstance(reservoir, EchoStateNetwork)
    dt = 1.0 if discrete else duration / n_steps
    unfolding = unfold(reservoir, n_steps=n_steps, dt=dt)
    grid = Grid.of(n_steps, eta)
    chosen = [
        one.pairs()[: _n_pairs(reservoir.n_neurons, one.n_channels, len(one.classes))]
        for one in materials
    ]
    share = 1.0 / (len(grid) * sum(len(pairs) for pairs in chosen))
    sets = []
    for material, pairs in zip(materials, chosen, strict=True):
        solved = []
        for pair in pairs:
            words = " or ".join(material.classes[c] for c in pair)

            def step(words: str = words) -> None:
                tell(f"solving {words}", share)

            solved.append(
                solve_grid(unfolding, material, pair, grid, seed=seed, on_step=step)
            )
        sets.append((material, solved))
    made = write_explorer(
        path, unfolding, sets, start=start, title=title, note=note, command=command
    )
    return Explorer(made, unfolding, sets)


def _room(n_neurons: int, n_channels: int, n_pairs: int) -> int:
    """Numbers of series that fit beside so many solved pairs."""
    size = len(Grid.of(100, 0.5))  # with the η of a model
    return room_for_series(n_neurons, n_channels, size, n_pairs)


def _n_pairs(n_neurons: int, n_channels: int, n_classes: int) -> int:
    """Pairs to solve: as many as leave room for series, one at least."""
    most = min(MAX_PAIRS, n_classes * (n_classes - 1) // 2)
    while most > 1 and _room(n_neurons, n_channels, most) < _ENOUGH_NUMBERS:
        most -= 1
    return max(most, 1)


def _prepare(
    source: Source, n_neurons: int, before: Sequence[Material], n_sources: int
) -> Material:
    """Thin one data set so that all of them fit on the page."""
    n_channels = np.atleast_2d(np.asarray(source.X[0])).shape[0]
    n_classes = len(set(np.asarray(source.y).tolist()))
    pairs = _n_pairs(n_neurons, n_channels, n_classes) * n_sources
    room = _room(n_neurons, n_channels, pairs)
    room -= sum(
        one.X.size + (one.X_test.size if one.judged == "test" else 0) for one in before
    )
    return prepare(
        source.name,
        source.X,
        source.y,
        source.X_test,
        source.y_test,
        note=source.note,
        n_steps=before[0].n_steps if before else None,
        class_weights=source.class_weights,
        scaling=source.scaling,
        max_series=source.n_series,
        max_numbers=max(_FEWEST_NUMBERS, min(MAX_NUMBERS, room)),
    )
