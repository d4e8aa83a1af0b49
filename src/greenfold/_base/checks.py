"""Input checks, kept apart from the numerical code.

Every failure is one sentence with the argument in backticks, the value got and what to
pass.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from numbers import Integral
from types import ModuleType, UnionType
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from .arrays import Array, is_array, is_sparse, namespace, to_host
from .messages import ArgumentError, ArgumentMemoryError, ArgumentTypeError

T = TypeVar("T")

#: Largest array with a row and a column for each neuron that is formed of a sparse network,
#: in bytes: that of 16,384 neurons.
DENSE_BYTES = 2**31
#: Number of neurons from which on a network is refused before anything is allocated.
MOST_NEURONS = 2**24


def shown(value: object) -> str:
    """Format a value as you would type it: NumPy scalars without their type."""
    return repr(value.item() if isinstance(value, np.generic) else value)


def must(
    ok: object,
    name: str,
    wanted: str,
    got: object,
    error: type[ValueError] | type[TypeError] | type[MemoryError] = ValueError,
) -> None:
    """Refuse an argument that is not ``ok``: "`name` must ``wanted``; got ``got``."."""
    if not ok:
        kinds = {TypeError: ArgumentTypeError, MemoryError: ArgumentMemoryError}
        raise kinds.get(error, ArgumentError)(name, wanted, got)


def instance(value: object, kinds: type | UnionType, name: str, wanted: str) -> None:
    """Raise a TypeError with the type of ``value`` unless it is one of ``kinds``."""
    must(isinstance(value, kinds), name, wanted, type(value).__name__, TypeError)


def positive(value: object, name: str) -> float:
    """Return ``value`` as a positive finite float."""
    try:
        array = np.asarray(value)
    except ValueError:
        array = np.empty(2)
    real = array.ndim == 0 and array.dtype.kind in "iuf"
    must(real, name, "be a positive number", shown(value), TypeError)
    fits = np.isfinite(array) and array > 0
    must(fits, name, "be a positive finite number", shown(value))
    return float(array)


def number(value: ArrayLike, name: str) -> float:
    """Return ``value`` as a finite float."""
    return float(host_array(value, name, ndim=(0,)))


def positive_each(
    value: ArrayLike, name: str, n_neurons: int, most: float = np.inf
) -> float | np.ndarray:
    """Return a positive number, or an array (n_neurons,) of them if they differ."""
    if np.ndim(value) == 0:
        array = np.array([positive(value, name)])
    else:
        array = _per_neuron(value, name, n_neurons)
    at, largest = int(np.argmin(array)), array.max()
    must(array[at] > 0, name, "be positive", f"{array[at]:g} for neuron {at}")
    must(largest <= most, name, f"lie in (0, {most:g}]", f"{largest:g}")
    if (array == array[0]).all():
        return float(array[0])
    array.flags.writeable = False
    return array


def constant_input(bias: ArrayLike | None, n_neurons: int) -> np.ndarray | None:
    """Return ``bias`` as a private array (n_neurons,), or None if it is absent or zero."""
    array = np.zeros(1) if bias is None else _per_neuron(bias, "bias", n_neurons)
    if not array.any():
        return None
    array = np.broadcast_to(array, (n_neurons,)).copy()
    array.flags.writeable = False
    return array


def _per_neuron(value: ArrayLike, name: str, n_neurons: int) -> np.ndarray:
    array = host_array(value, name, ndim=(0, 1))
    wanted = f"be one number, or one for each of the {n_neurons} neurons"
    must(array.shape in ((), (n_neurons,)), name, wanted, f"shape {array.shape}")
    return array


def count(value: object, name: str, *, minimum: int = 1) -> int:
    """Return ``value`` as an integer of at least ``minimum``."""
    if not isinstance(value, int | np.integer) or isinstance(value, bool):
        got = f"{shown(value)} of type {type(value).__name__}"
        raise ArgumentTypeError(name, "be an integer", got)
    must(value >= minimum, name, f"be at least {minimum}", value)
    return int(value)


def free_name(taken: Mapping[str, type], name: str, new: type) -> None:
    """Refuse the name of another class; a notebook may define the same class again."""
    old = taken.get(name, new)
    same = (old.__module__, old.__qualname__) == (new.__module__, new.__qualname__)
    where = f"the name of {old.__qualname__} in {old.__module__}; choose another one"
    require(same, f"`name` = {name!r} of {new.__qualname__} is {where}.")


def unmasked(value: object, name: str, fill: float | None = None) -> Any:
    """Refuse masked entries, which NumPy would count as data, or ``fill`` them.

    The arrays in a list are checked too.
    """
    if isinstance(value, list | tuple):
        if any(isinstance(one, np.ma.MaskedArray) for one in value):
            return [unmasked(one, name, fill) for one in value]
        return value
    if not isinstance(value, np.ma.MaskedArray):
        return value
    if fill is not None:
        return np.ma.filled(value.astype(np.float64), fill)
    hidden = int(np.ma.count_masked(value))
    problem = f"`{name}` has {hidden} masked entries; fill or impute them first."
    require(not hidden, problem, TypeError)
    return value.data


def _read(value: object, name: str, convert: Callable[[Any], Array]) -> Any:
    """Read an array of real numbers with ``convert``."""
    value = unmasked(value, name)
    try:
        array = convert(value)
    except (TypeError, ValueError) as error:
        if "inhomogeneous" in str(error):
            wanted = "be one array, not entries of unequal lengths; cut or pad them first"
            raise ArgumentError(name, wanted) from None
        reason = f"could not be read as an array of numbers: {error}"
        raise TypeError(f"`{name}` {reason}.") from None
    if not isinstance(array, np.ndarray):
        is_complex = namespace(array).isdtype(array.dtype, "complex floating")
    elif array.dtype.kind in "iufbc":
        is_complex = array.dtype.kind == "c"
    else:
        wanted = "hold real numbers of fixed width"
        raise ArgumentTypeError(name, wanted, f"dtype {array.dtype}")
    must(not is_complex, name, "be real", "complex numbers", TypeError)
    return array


def host_array(
    value: object, name: str, *, ndim: tuple[int, ...] | None = None, nan: bool = False
) -> np.ndarray:
    """Return ``value`` as a finite, real, non-empty float64 NumPy array on the host.

    With ``nan``, it may hold NaN.
    """
    dense = getattr(value, "toarray", lambda: value)()  # if it is a sparse matrix of SciPy
    array = _read(dense, name, lambda one: one if type(one) is np.ndarray else to_host(one))
    array = array.astype(np.float64)
    if ndim is not None and array.ndim not in ndim:
        wanted = f"have {' or '.join(str(n) for n in ndim)} dimensions"
        must(False, name, wanted, f"shape {array.shape}")
    require(array.size, f"`{name}` is empty: it has shape {array.shape}.")
    wrong = np.isinf(array) if nan else ~np.isfinite(array)
    if wrong.any():
        where = tuple(int(i) for i in np.argwhere(wrong)[0])
        got = f"{array[where]} at index {where}, remove or impute such entries first"
        must(False, name, "be finite", got)
    return array


def device_name(device: str) -> str:
    """Refuse a string that names no device."""
    known = device == "cpu" or re.fullmatch(r"cuda(:\d+)?", str(device))
    must(known, "device", "be 'cpu', 'cuda' or 'cuda:1', 'cuda:2', …", repr(device))
    return device


def present(X: T) -> T:
    """Refuse a dask array, because values written into a part of it are lost."""
    advice = "pass X.compute(), or its chunks one by one, as in X.map_blocks"
    problem = f"`X` is a dask array, which is not computed here; {advice}."
    require(not hasattr(X, "__dask_graph__"), problem, TypeError)
    return X


def finite_result(z: T, xp: ModuleType) -> T:
    """Return readout values, or raise an OverflowError if they are not finite."""
    problem = "the readout values exceed the range of floats; scale `X` down."
    require(bool(xp.all(xp.isfinite(z))), problem, OverflowError)
    return z


def generator(
    rng: np.random.Generator | int | None, name: str = "rng", *, beside: bool = False
) -> np.random.Generator:
    """Return a NumPy Generator from a seed, a Generator or None.

    With ``beside``, an integer gives a different stream from the one that draws a network;
    otherwise, a random u would be a row of its weights.
    """
    try:
        if beside and isinstance(rng, Integral):
            return np.random.default_rng([int(rng), 1])
        return np.random.default_rng(rng)
    except (TypeError, ValueError) as error:
        wanted = "be a numpy Generator, a seed (an integer ≥ 0) or None"
        kind = ArgumentTypeError if isinstance(error, TypeError) else ArgumentError
        raise kind(name, wanted, repr(rng)) from None


def square_weights(weights: object) -> Any:
    """Return ``weights`` as a private, read-only float64 square matrix, CSR if sparse."""
    if not is_sparse(weights):
        made = host_array(weights, "weights", ndim=(2,))
        parts = [made]
    else:
        given: Any = weights
        wanted, got = "hold real numbers in two dimensions", f"{given.dtype} {given.shape}"
        must(given.ndim == 2 and given.dtype.kind in "iufb", "weights", wanted, got)
        few_neurons(max(given.shape), "weights")
        made: Any = sparse.csr_array(given).astype(np.float64)
        made.sum_duplicates()
        made.eliminate_zeros()
        if max(made.nnz, made.shape[0]) < 2**31:  # SciPy keeps the type of the indices
            places = (
                one.astype(np.int32, copy=False) for one in (made.indices, made.indptr)
            )
            made = sparse.csr_array((made.data, *places), shape=made.shape)
        parts = [made.data, made.indices, made.indptr]
        bad = np.flatnonzero(~np.isfinite(made.data))[:1]
        for entry in bad:
            row = int(np.searchsorted(made.indptr, entry, side="right")) - 1
            where = f"{made.data[entry]} at index {(row, int(made.indices[entry]))}"
            must(False, "weights", "be finite", f"{where}, remove or impute such entries")
    wanted = "be a square matrix, one row and one column per neuron"
    must(made.shape[0] == made.shape[1], "weights", wanted, f"shape {made.shape}")
    require(made.shape[0], f"`weights` is empty: it has shape {made.shape}.")
    for part in parts:
        part.flags.writeable = False
    return made


def few_neurons(n_neurons: int, name: str) -> None:
    """Refuse more neurons than the memory of a machine holds vectors of."""
    wanted = f"give fewer than {MOST_NEURONS:,} neurons (is an index wrong?)"
    must(n_neurons < MOST_NEURONS, name, wanted, f"{n_neurons:,}", MemoryError)


def formable(n_neurons: int, what: str, instead: str) -> None:
    """Refuse to form an array with a row and a column per neuron if it is too large."""
    gib = f"{8 * n_neurons**2 / 2**30:.3g} GiB"
    problem = f"{what} of {n_neurons} neurons would take arrays of {gib}; {instead}."
    require(8 * n_neurons**2 <= DENSE_BYTES, problem, MemoryError)


def stimuli(X: object, n_steps: int) -> Any:
    """Return ``X`` as an array ``(n_cases, n_channels, n_steps)`` of its own namespace.

    Only shape and type are checked, so a memory-mapped ``X`` is never copied whole;
    `finite_batch` checks the values of a batch.
    """
    if isinstance(X, (list, tuple)):
        lengths = {len(row) for row in X if hasattr(row, "__len__")}
        if len(lengths) > 1:
            advice = "pad the short ones with zeros at the start (the network rests before"
            got = f"lengths {min(lengths)} to {max(lengths)}, {advice} a stimulus)"
            must(False, "X", "hold series of equal length", got)
    found = _read(X, "X", lambda value: value if is_array(value) else np.asarray(value))
    shape = tuple(found.shape)
    wanted = "have shape (n_cases, n_steps) or (n_cases, n_channels, n_steps)"
    must(len(shape) in (2, 3), "X", wanted, f"shape {shape}")
    require(0 not in shape, f"`X` is empty: it has shape {shape}.")
    wanted = f"have n_steps = {n_steps} values along its last axis"
    must(shape[-1] == n_steps, "X", wanted, f"shape {shape}")
    return found[:, None, :] if found.ndim == 2 else found


def finite_batch(X: Array, xp: ModuleType, first: int = 0) -> Any:
    """Convert one batch of stimuli to float64 and refuse NaN and infinity."""
    X = xp.astype(X, xp.float64, copy=False)
    if not bool(xp.all(xp.isfinite(X))):
        case, channel, step = (int(i) for i in np.argwhere(~np.isfinite(to_host(X)))[0])
        where = f"in case {first + case}, channel {channel}, step {step}"
        got = f"{float(X[case, channel, step])} {where}, impute or drop that series"
        must(False, "X", "be finite", got)
    return X


def input_projection(
    u: ArrayLike | Array, n_neurons: int, n_channels: int | None = None
) -> np.ndarray:
    """Return ``u`` as ``(n_neurons, n_channels)`` on the host."""
    array = host_array(u, "u", ndim=(1, 2))
    wanted = f"have one row per neuron, {n_neurons} rows"
    must(len(array) == n_neurons, "u", wanted, f"shape {array.shape}")
    array = array.reshape(n_neurons, -1)
    if n_channels is not None:
        wanted = f"have one column per channel of `X`, shape ({n_neurons}, {n_channels})"
        found = array.shape[1]
        must(found == n_channels, "u", wanted, f"{found} column(s)")
    return array


def readout_vector(v: ArrayLike | Array, n_neurons: int) -> np.ndarray:
    """Return ``v`` as ``(n_neurons,)`` on the host."""
    array = host_array(v, "v", ndim=(1,))
    wanted = f"have one entry per neuron, shape ({n_neurons},)"
    must(array.shape == (n_neurons,), "v", wanted, f"shape {array.shape}")
    return array


def require(ok: object, sentence: str, error: type[Exception] = ValueError) -> None:
    """Raise ``error(sentence)`` unless ``ok``, for messages that `must` cannot form."""
    if not ok:
        raise error(sentence)


def without_effect(given: bool, name: str, when: str) -> None:
    """Refuse an argument that is ``given`` but has no effect."""
    require(not given, f"`{name}` has no effect {when}; leave it out.")


@contextmanager
def needs(what: str, part: str) -> Iterator[None]:
    """Say how to install optional packages if their import inside this context fails."""
    try:
        yield
    except ImportError as error:
        how = f"pip install 'greenfold[{part}]'"
        raise ImportError(f"{what} needs {error.name}: {how}.", name=error.name) from None
