"""Objects as files that hold numbers, not code: ``save`` and ``load``.

A file is one kind of object: a fitted estimator, a network, a measured response, a kernel,
or the result of an optimisation. How the file is made, and what is checked when it is read,
is said in ``greenfold._base.archive``; what each object is made of, beside that object.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from ._base.archive import Content, ModelFileError, reading, refuse
from .devices.response import MeasuredResponse, unpack_response
from .estimators.margin.classifier import ReservoirClassifier
from .estimators.margin.model_file import unpack_classifier
from .estimators.pooled.features import PooledBase
from .estimators.pooled.model_file import unpack_pooled
from .estimators.regressor import ReservoirRegressor
from .estimators.regressor_file import unpack_regressor
from .networks.echo_state import EchoStateNetwork, unpack_echo_state_network
from .networks.reservoir import Reservoir, unpack_reservoir
from .optimizers.result import (
    Projections,
    RegressionProjections,
    unpack_projections,
    unpack_regression,
)
from .unfolding.kernel import Kernel, unpack_kernel

__all__ = ["ModelFileError", "load", "save"]

#: Kind of a file to what is made of it.
_KINDS: dict[str, Callable[[Content], Any]] = {
    "classifier": unpack_classifier,
    "echo_state_network": unpack_echo_state_network,
    "kernel": unpack_kernel,
    "pooled": unpack_pooled,
    "projections": unpack_projections,
    "regression": unpack_regression,
    "regressor": unpack_regressor,
    "response": unpack_response,
    "reservoir": lambda content: unpack_reservoir(content.described, content.arrays),
}

_SAVED = (
    ReservoirClassifier,
    ReservoirRegressor,
    PooledBase,
    Projections,
    RegressionProjections,
    Reservoir,
    EchoStateNetwork,
    MeasuredResponse,
    Kernel,
)


def save(obj: Any, path: str | Path) -> None:
    """Write an object to a file that holds no code.

    Parameters
    ----------
    obj : ReservoirClassifier, Projections, Reservoir, EchoStateNetwork, …
        Also a MeasuredResponse or a Kernel. An estimator, a pooled one too, must be
        fitted. A network with a gain of one's own code is refused.
    path : str or Path
        Replaced if it exists, in one step at the end.
    """
    if not isinstance(obj, _SAVED):
        raise TypeError(
            "`obj` must be a fitted estimator of greenfold, Projections, a Reservoir, an "
            "EchoStateNetwork, a MeasuredResponse or a Kernel; got "
            f"{type(obj).__name__}."
        )
    obj.save(path)


def load(path: str | Path) -> Any:
    """Read an object that was saved.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    ReservoirClassifier, Projections, Reservoir, EchoStateNetwork, …
        Also a MeasuredResponse or a Kernel: what the file says it is. An estimator is
        fitted and predicts exactly as the saved one did; a `ReservoirClassifier` goes on
        with `partial_fit` where that one could.

    Raises
    ------
    ModelFileError
        If the file is damaged, of another kind or of a newer version.
    FileNotFoundError
        If there is no such file.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from greenfold import Reservoir, load
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Reservoir.random(20, rng=0).save(Path(folder) / "network.gfm")
    ...     load(Path(folder) / "network.gfm")
    Reservoir(20 neurons, tau=0.25, gain=linear)
    """
    return reading(path, _make)


def _make(content: Content) -> Any:
    if content.kind not in _KINDS:
        refuse(f"it holds a {content.kind!r}, which this greenfold does not know.")
    return _KINDS[content.kind](content)
