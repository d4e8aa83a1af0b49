"""Checks of the estimator's parameters, in scikit-learn's wording."""

from __future__ import annotations

import math
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any

import numpy as np

from .._validation import shown
from ..gains import Gain
from ..reservoir import Reservoir, UnstableError
from ..systems import Network


def _positive(value: Any) -> bool:
    return _number(value) and value > 0


def _number(value: Any) -> bool:
    if isinstance(value, bool | np.bool_) or not isinstance(value, Real):
        return False
    return math.isfinite(value)


def _integer(value: Any, least: int) -> bool:
    if isinstance(value, bool | np.bool_) or not isinstance(value, Integral):
        return False
    return int(value) >= least


def _one_of(value: Any, *names: str) -> bool:
    return isinstance(value, str) and value in names


def _numbers(value: Any, ndim: tuple[int, ...]) -> bool:
    if isinstance(value, str) or value is None:
        return False
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        return False
    return array.ndim in ndim and array.size > 0 and bool(np.isfinite(array).all())


def _reservoir(value: Any) -> bool:
    if value is None or isinstance(value, Network):
        return True
    dense = value.toarray() if hasattr(value, "toarray") else value
    return _numbers(dense, (2,)) and np.shape(dense)[0] == np.shape(dense)[1]


def _class_weight(value: Any) -> bool:
    if isinstance(value, dict):
        return bool(value) and all(_positive(w) for w in value.values())
    return value is None or _one_of(value, "balanced")


#: Parameter to (test, what it must be).
_RULES: dict[str, tuple[Callable[[Any], bool], str]] = {
    "input_projection": (
        lambda x: _one_of(x, "optimal", "shared", "random") or _numbers(x, (1, 2)),
        "'optimal', 'shared', 'random' or an array of shape (n_neurons,) or "
        "(n_neurons, n_channels)",
    ),
    "order": (
        lambda x: _one_of(x, "exact") or _integer(x, 0),
        "an int, at least 0, or 'exact'",
    ),
    "alpha": (_number, "a finite number"),
    "n_neurons": (lambda x: _integer(x, 1), "an int, at least 1"),
    "g": (_positive, "a positive number"),
    "tau": (lambda x: _one_of(x, "auto") or _positive(x), "a positive number or 'auto'"),
    "duration": (_positive, "a positive number"),
    "reservoir": (_reservoir, "None, a Reservoir or a square matrix of weights"),
    "eta": (lambda x: _one_of(x, "cv") or _positive(x), "a positive number or 'cv'"),
    "input_scaling": (lambda x: x is None or _positive(x), "a positive number or None"),
    "threshold": (lambda x: _one_of(x, "trained", "origin"), "'trained' or 'origin'"),
    "readout": (
        lambda x: _one_of(x, "end", "integrated") or _positive(x) or _numbers(x, (1,)),
        "'end', 'integrated', a time in (0, duration] or an array of weights, one a step",
    ),
    "readout_noise": (lambda x: _number(x) and x >= 0, "a number, at least 0"),
    "class_weight": (
        _class_weight,
        "None, 'balanced' or a dict of positive weights",
    ),
    "certify": (lambda x: isinstance(x, bool | np.bool_), "a bool"),
    "n_jobs": (
        lambda x: x is None or (_integer(x, -(10**6)) and x != 0),
        "None or an int other than 0",
    ),
}


def check_parameters(estimator: Any) -> None:
    """Refuse a parameter out of its range, naming it."""
    for name, (good, wanted) in _RULES.items():
        value = getattr(estimator, name)
        if not good(value):
            refuse(estimator, name, wanted, value)
    if estimator.order and _one_of(estimator.input_projection, "shared"):
        wanted = "'optimal', 'random' or an array beyond order 0, as one input projection "
        wanted += "for all classes is solved for in the linear network"
        refuse(estimator, "input_projection", wanted, "shared")
    time = estimator.readout
    if _number(time) and time > estimator.duration * (1 + 1e-12):
        refuse(estimator, "readout", f"a time in (0, {estimator.duration:g}]", time)


def refuse(estimator: Any, name: str, wanted: str, value: Any) -> None:
    """Raise the error of a wrong parameter."""
    raise ValueError(
        f"The {name!r} parameter of {type(estimator).__name__} must be {wanted}. "
        f"Got {shown(value)} instead."
    )


#: Draws of a network before its `g` is given up as unstable.
_DRAWS = 100


def make_reservoir(estimator: Any, rng: np.random.Generator) -> Any:
    """The network that the parameters describe, with τ = 0.25 where it is chosen later."""
    tau = 0.25 if isinstance(estimator.tau, str) else float(estimator.tau)
    given = estimator.reservoir
    if isinstance(given, Network):
        return given
    gain = Gain.quadratic(estimator.alpha) if estimator.order else Gain.linear()
    try:
        if given is not None:
            return Reservoir(given, tau, gain)
        # Small networks scatter around the spectral radius g; those that happen to be
        # unstable are drawn again, so that no seed fails by chance.
        size, g = estimator.n_neurons, estimator.g
        return Reservoir.random(size, g, tau, gain, rng, max_draws=_DRAWS)
    except UnstableError as error:
        # Said here in the words of the estimator, which has no `allow_unstable`.
        name, what = ("g", "lower it") if given is None else ("reservoir", "scale it")
        other = (
            ""
            if estimator.order
            else ", or pass reservoir=Reservoir(weights, allow_unstable=True)"
        )
        raise ValueError(
            f"The {name!r} parameter of {type(estimator).__name__} makes the network "
            f"unstable: the largest real part of its eigenvalues is {error.abscissa:.4g} "
            f"and must be below 1; {what} by a factor of {0.9 / error.abscissa:.2g}{other}."
        ) from None


def keep_input(
    estimator: Any, rng: np.random.Generator, n_neurons: int, n_channels: int
) -> np.ndarray | None:
    """The input projection that is not solved for, (n_neurons, n_channels), or None."""
    wish = estimator.input_projection
    if isinstance(wish, str):
        if wish != "random":
            return None
        u = rng.standard_normal((n_neurons, n_channels))
    else:
        u = np.asarray(wish, dtype=np.float64)
        u = u[:, None] if u.ndim == 1 else u
        if u.shape != (n_neurons, n_channels) or not u.any():
            wanted = f"non-zero and of shape ({n_neurons}, {n_channels})"
            refuse(estimator, "input_projection", wanted, wish)
    return u / np.linalg.norm(u)


def class_weights(estimator: Any, classes: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Weight of one series of each class; ``counts`` are numbers or weights of series."""
    wish = estimator.class_weight
    if wish is None:
        return np.ones(len(classes))
    if isinstance(wish, str):
        counted = np.where(counts > 0, counts, 1.0)
        return counts.sum() / (len(classes) * counted)
    known = set(classes.tolist())
    unknown = [label for label in wish if label not in known]
    if unknown:
        refuse(estimator, "class_weight", f"keyed by labels among {sorted(known)}", wish)
    return np.array([float(wish.get(label, 1.0)) for label in classes.tolist()])


def readout_weights(estimator: Any, n_steps: int) -> Any:
    """The readout in the form that `unfold` takes."""
    wish = estimator.readout
    if isinstance(wish, str):
        return None if wish == "end" else np.full(n_steps, 1 / n_steps)
    if np.ndim(wish) == 0:
        return float(wish)
    weights = np.asarray(wish, dtype=np.float64)
    if weights.shape != (n_steps,) or not weights.any():
        refuse(estimator, "readout", f"{n_steps} weights, one a step, not all zero", wish)
    return weights
