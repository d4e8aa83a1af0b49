"""From series and a network to a page: thinned, solved on the grid, written.

Series that come with the explorer; drawn, never measured.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ..._base import checks as check
from ...networks.echo_state import EchoStateNetwork
from ...networks.reservoir import Reservoir
from ...unfolding.unfolding import Unfolding, unfold
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


def which_came_first(
    n_cases: int,
    n_steps: int = 70,
    noise: float = 0.6,
    rng: np.random.Generator | int | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Draw **synthetic** series with two opposite bumps, told apart by their order.

    The bumps come around one third and two thirds of the time, vary in time and height and
    stand on red noise, so that both have to be remembered until the readout.

    Parameters
    ----------
    n_cases : int
    n_steps : int
    noise : float
        Standard deviation of the noise; the bumps are about 1 high.
    rng : numpy Generator, int or None

    Returns
    -------
    X : ndarray (n_cases, n_steps)
    y : ndarray (n_cases,)
        +1 where the upward bump comes first, −1 where it comes second.

    Examples
    --------
    >>> X, y = which_came_first(10, rng=0)
    >>> X.shape, int(y.sum())
    ((10, 70), 0)
    """
    n_cases, n_steps = check.count(n_cases, "n_cases"), check.count(n_steps, "n_steps")
    rng = check.generator(rng)
    t = (np.arange(n_steps) + 0.5) / n_steps
    y = rng.permutation(np.where(np.arange(n_cases) % 2, 1, -1))
    X = np.zeros((n_cases, n_steps))
    for place, sign in ((0.36, 1), (0.68, -1)):
        centre = place + 0.04 * rng.standard_normal((n_cases, 1))
        height = 1 + 0.3 * rng.standard_normal((n_cases, 1))
        X += sign * y[:, None] * height * np.exp(-0.5 * ((t - centre) / 0.05) ** 2)
    # Red noise of unit variance that forgets in a twentieth of the time.
    keep = np.exp(-20 / n_steps)
    walk = rng.standard_normal((n_cases, n_steps))
    for n in range(1, n_steps):
        walk[:, n] = keep * walk[:, n - 1] + np.sqrt(1 - keep**2) * walk[:, n]
    return X + noise * walk, y


def built_in_source(seed: int = 0) -> Source:
    """`which_came_first` as a data set of the explorer's."""
    X, y = which_came_first(500, rng=seed)
    names = np.where(y > 0, "up first", "down first")
    return Source(
        "Which bump came first",
        X[:200],
        names[:200],
        X[200:],
        names[200:],
        "Two opposite bumps in one order or the other, on red noise; drawn by greenfold.",
        n_series=200,
    )
