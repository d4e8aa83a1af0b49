"""Input checks, in one place, so that the numerical bodies stay clean.

Every failure is one sentence: the argument in backticks, what was got, and what
to give instead.
"""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from scipy import sparse

from .arrays import is_array, namespace, to_host


def shown(value: Any) -> str:
    """A value as it is typed: NumPy's scalars without their type."""
    return repr(value.item() if isinstance(value, np.generic) else value)


def positive(value: Any, name: str) -> float:
    """Return ``value`` as a positive finite float."""
    number = _real_scalar(value, name, "a positive number")
    if not (np.isfinite(number) and number > 0):
        raise ValueError(f"`{name}` must be a positive finite number; got {shown(value)}.")
    return number


def positive_each(value: Any, name: str, n_neurons: int) -> float | np.ndarray:
    """Return a positive number, or an array (n_neurons,) of them that are not all equal."""
    if np.ndim(value) == 0:
        return positive(value, name)
    array = host_array(value, name, ndim=(1,))
    if array.shape != (n_neurons,):
        raise ValueError(
            f"`{name}` must be one number, or one for each of the {n_neurons} neurons; got "
            f"shape {array.shape}."
        )
    if not (array > 0).all():
        at = int(np.argmin(array))
        raise ValueError(f"`{name}` must be positive; got {array[at]:g} for neuron {at}.")
    if (array == array[0]).all():
        return float(array[0])
    array.flags.writeable = False
    return array


def constant_input(bias: Any, n_neurons: int) -> np.ndarray | None:
    """Return ``bias`` as a private array (n_neurons,); None where it is absent or zero."""
    if bias is None:
        return None
    array = host_array(bias, "bias", ndim=(0, 1))
    if array.ndim and array.shape != (n_neurons,):
        raise ValueError(
            f"`bias` must be one number, or one for each of the {n_neurons} neurons; got "
            f"shape {array.shape}."
        )
    if not array.any():
        return None
    array = np.broadcast_to(array, (n_neurons,)).copy()
    array.flags.writeable = False
    return array


def count(value: Any, name: str, *, minimum: int = 1) -> int:
    """Return ``value`` as an integer of at least ``minimum``."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise TypeError(
            f"`{name}` must be an integer; got {shown(value)} of type "
            f"{type(value).__name__}."
        )
    if value < minimum:
        raise ValueError(f"`{name}` must be at least {minimum}; got {value}.")
    return int(value)


def _real_scalar(value: Any, name: str, wanted: str) -> float:
    try:
        array = np.asarray(value)
        if array.ndim or array.dtype.kind not in "iuf":
            raise TypeError  # noqa: TRY301 - one message for every way of being wrong
        return float(array)
    except (TypeError, ValueError, OverflowError):
        raise TypeError(f"`{name}` must be {wanted}; got {shown(value)}.") from None


def host_array(value: Any, name: str, *, ndim: tuple[int, ...] | None = None) -> np.ndarray:
    """Return ``value`` as a finite, real, non-empty float64 NumPy array on the host."""
    if isinstance(value, np.ma.MaskedArray):
        raise TypeError(f"`{name}` is a masked array; fill or impute its masked entries.")
    if sparse.issparse(value):
        value = value.toarray()
    try:
        array = to_host(value)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"`{name}` could not be read as an array of numbers: {error}."
        ) from None
    if array.dtype.kind == "c":
        raise TypeError(f"`{name}` must be real; got complex numbers.")
    if array.dtype.kind not in "iufb":
        raise TypeError(
            f"`{name}` must hold real numbers of fixed width; got dtype {array.dtype}."
        )
    array = array.astype(np.float64)
    if ndim is not None and array.ndim not in ndim:
        wanted = " or ".join(str(n) for n in ndim)
        raise ValueError(
            f"`{name}` must have {wanted} dimensions; got shape {array.shape}."
        )
    if array.size == 0:
        raise ValueError(f"`{name}` is empty: it has shape {array.shape}.")
    if not np.isfinite(array).all():
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise ValueError(
            f"`{name}` must be finite; got {array[where]} at index {where}, "
            "remove or impute such entries first."
        )
    return array


def present(X: Any) -> Any:
    """Refuse a dask array: what is written into a part of it is lost."""
    if hasattr(X, "__dask_graph__"):
        raise TypeError(
            "`X` is a dask array, which is computed by nobody here: pass X.compute(), or "
            "its chunks one by one, as in X.map_blocks."
        )
    return X


def finite_result(z: Any, xp: Any) -> Any:
    """Readout values as they are, or an OverflowError."""
    if not bool(xp.all(xp.isfinite(z))):
        raise OverflowError("the readout values exceed floating point; scale `X` down.")
    return z


def generator(rng: Any, name: str = "rng", *, beside: bool = False) -> np.random.Generator:
    """A NumPy Generator from a seed, a Generator or None.

    A random u that is drawn beside a network must not come from the same numbers as its
    weights, of which it would be a row; with ``beside`` an integer gives another stream.
    """
    try:
        if beside and isinstance(rng, Integral):
            return np.random.default_rng([int(rng), 1])
        return np.random.default_rng(rng)
    except (TypeError, ValueError) as error:
        raise type(error)(
            f"`{name}` must be a numpy Generator, a seed (an integer ≥ 0) or None; got "
            f"{rng!r}."
        ) from None


def square_weights(weights: Any) -> np.ndarray:
    """Return ``weights`` as a private, read-only float64 square matrix."""
    array = host_array(weights, "weights", ndim=(2,))
    if array.shape[0] != array.shape[1]:
        raise ValueError(
            "`weights` must be a square matrix, one row and one column per neuron; "
            f"got shape {array.shape}."
        )
    array.flags.writeable = False
    return array


def stimuli(X: Any, n_steps: int) -> Any:
    """Return ``X`` as an array ``(n_cases, n_channels, n_steps)`` of its own namespace.

    Only shape and kind are checked here; the values are checked by `finite_batch`
    when a batch is converted to float64, so that a memory-mapped or very large
    ``X`` is never copied whole.
    """
    if isinstance(X, (list, tuple)):
        lengths = {len(row) for row in X if hasattr(row, "__len__")}
        if len(lengths) > 1:
            raise ValueError(
                "`X` must hold series of equal length; got lengths "
                f"{min(lengths)} to {max(lengths)}, pad the short ones with zeros at the "
                "start (the network rests before a stimulus)."
            )
    X = _as_array(X, "X")
    if isinstance(X, np.ndarray) and X.dtype.kind not in "iufbc":
        raise TypeError(f"`X` must hold real numbers of fixed width; got dtype {X.dtype}.")
    xp = namespace(X)
    if xp.isdtype(X.dtype, "complex floating"):
        raise TypeError("`X` must be real; got complex numbers.")
    if X.ndim not in (2, 3):
        raise ValueError(
            "`X` must have shape (n_cases, n_steps) or (n_cases, n_channels, n_steps); "
            f"got shape {tuple(X.shape)}."
        )
    if 0 in X.shape:
        raise ValueError(f"`X` is empty: it has shape {tuple(X.shape)}.")
    if X.shape[-1] != n_steps:
        raise ValueError(
            f"`X` must have n_steps = {n_steps} values along its last axis; "
            f"got shape {tuple(X.shape)}."
        )
    return X[:, None, :] if X.ndim == 2 else X


def _as_array(value: Any, name: str) -> Any:
    """Leave an array of any namespace alone; read anything else with NumPy."""
    if isinstance(value, np.ma.MaskedArray):
        raise TypeError(f"`{name}` is a masked array; fill or impute its masked entries.")
    if is_array(value):
        return value
    try:
        return np.asarray(value)
    except (TypeError, ValueError) as error:
        raise TypeError(f"`{name}` could not be read as an array: {error}.") from None


def finite_batch(X: Any, xp: Any, first: int = 0) -> Any:
    """Convert one batch of stimuli to float64 and refuse NaN and infinity."""
    X = xp.astype(X, xp.float64, copy=False)
    if not bool(xp.all(xp.isfinite(X))):
        bad = np.argwhere(~np.isfinite(to_host(X)))[0]
        case, channel, step = (int(i) for i in bad)
        raise ValueError(
            f"`X` must be finite; got {float(X[case, channel, step])} in case "
            f"{first + case}, channel {channel}, step {step}, impute or drop that series."
        )
    return X


def input_projection(u: Any, n_neurons: int, n_channels: int | None = None) -> np.ndarray:
    """Return ``u`` as ``(n_neurons, n_channels)`` on the host."""
    array = host_array(u, "u", ndim=(1, 2))
    if array.shape[0] != n_neurons:
        raise ValueError(
            f"`u` must have one row per neuron, {n_neurons} rows; got shape {array.shape}."
        )
    array = array.reshape(n_neurons, -1)
    if n_channels is not None and array.shape[1] != n_channels:
        raise ValueError(
            f"`u` must have one column per channel of `X`, shape ({n_neurons}, "
            f"{n_channels}); got {array.shape[1]} column(s)."
        )
    return array


def readout_vector(v: Any, n_neurons: int) -> np.ndarray:
    """Return ``v`` as ``(n_neurons,)`` on the host."""
    array = host_array(v, "v", ndim=(1,))
    if array.shape != (n_neurons,):
        raise ValueError(
            f"`v` must have one entry per neuron, shape ({n_neurons},); "
            f"got shape {array.shape}."
        )
    return array
