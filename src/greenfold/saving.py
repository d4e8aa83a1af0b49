"""Objects as files that hold numbers, not code: ``save`` and ``load``.

A file is one kind of object: a fitted estimator, a network, a measured response, a kernel,
or the result of an optimisation. How the file is made, and what is checked when it is read,
is said in ``greenfold._base.archive`` and ``greenfold._base.codec``; what each object is
made of, beside that object.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ._base.archive import ModelFileError, reading
from ._base.codec import Saved, unpack

__all__ = ["ModelFileError", "load", "save"]


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
    if not isinstance(obj, Saved):
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
        If the file is damaged, of another kind or of another version.
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
    return reading(path, unpack)
