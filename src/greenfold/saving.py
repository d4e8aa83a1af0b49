"""Save objects to files that hold numbers but no code: ``save`` and ``load``.

A file holds one object: a fitted estimator, a network, a measured response, a kernel, or
the result of an optimisation.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

from ._base import checks as check
from ._base.model_files import Arrays, ModelFileError, Saved, reading, unpack

__all__ = ["ModelFileError", "load", "save"]

#: The module that describes each kind of object, imported when such a file is read.
_MODULES = {
    "classifier": "estimators.margin",
    "echo_state_network": "networks.echo_state",
    "forecaster": "estimators.sequences",
    "kernel": "unfolding.kernels",
    "pooled_classifier": "estimators.pooled.estimators",
    "pooled_features": "estimators.pooled.estimators",
    "pooled_regressor": "estimators.pooled.estimators",
    "projections": "optimizers.result",
    "regression": "optimizers.result",
    "regressor": "estimators.regressor",
    "reservoir": "networks.reservoir",
    "response": "devices.response",
    "sequence_regressor": "estimators.sequences",
}


def save(obj: Saved, path: str | Path) -> None:
    """Save an object to a file that holds no code.

    ``obj`` is a fitted estimator, network, MeasuredResponse, Kernel or Projections. A
    network with a custom gain is refused. An existing file is replaced in one step.
    """
    wanted = "be an estimator, a network, a response, a kernel or projections of greenfold"
    check.instance(obj, Saved, "obj", wanted)
    obj.save(path)


def load(path: str | Path) -> Any:
    """Load a saved object.

    The file determines its type. An estimator predicts exactly like the saved one; a
    `ReservoirClassifier` continues with `partial_fit` if the saved one could. A file that
    is damaged, of another kind or of another version raises a `ModelFileError`.

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
    return reading(path, _made)


def _made(told: dict[str, Any], arrays: Arrays) -> Saved:
    """Return the object in a file, after importing the module that describes it."""
    if told.get("kind") in _MODULES:
        import_module(f"greenfold.{_MODULES[told['kind']]}")
    return unpack(told, arrays)
