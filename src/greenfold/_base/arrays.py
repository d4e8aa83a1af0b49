"""Array namespaces: work on a batch runs on the device of its input."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack
from importlib import import_module
from math import ceil
from types import ModuleType
from typing import Any, Protocol, TypeAlias, TypeGuard

import array_api_compat as compat
import numpy as np
from array_api_compat import numpy as numpy_namespace
from numpy.typing import ArrayLike
from scipy import sparse

#: Working memory for one batch of cases, in bytes.
BATCH_BYTES = 128 * 2**20
#: Share of the free memory of a GPU that a batch may use.
_DEVICE_SHARE = 0.5


class Sliced(Protocol):
    """Numbers that can be read slice by slice, such as a data set in a file."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def ndim(self) -> int: ...
    @property
    def dtype(self) -> Any: ...
    def __getitem__(self, key: Any, /) -> Any: ...


class Array(Sliced, Protocol):
    """An array of any library, such as NumPy, PyTorch or CuPy, with its operators."""

    @property
    def T(self) -> Any: ...
    @property
    def device(self) -> Any: ...
    def reshape(self, *shape: Any) -> Any: ...
    def __setitem__(self, key: Any, value: Any, /) -> None: ...
    def __neg__(self) -> Any: ...
    def __add__(self, other: Any, /) -> Any: ...
    def __radd__(self, other: Any, /) -> Any: ...
    def __sub__(self, other: Any, /) -> Any: ...
    def __rsub__(self, other: Any, /) -> Any: ...
    def __mul__(self, other: Any, /) -> Any: ...
    def __rmul__(self, other: Any, /) -> Any: ...
    def __truediv__(self, other: Any, /) -> Any: ...
    def __rtruediv__(self, other: Any, /) -> Any: ...
    def __matmul__(self, other: Any, /) -> Any: ...
    def __lt__(self, other: Any, /) -> Any: ...
    def __le__(self, other: Any, /) -> Any: ...
    def __gt__(self, other: Any, /) -> Any: ...
    def __ge__(self, other: Any, /) -> Any: ...


#: What `states` of a system takes as series.
AnyArray: TypeAlias = ArrayLike | Array


def is_sparse(value: object) -> TypeGuard[Any]:
    """Return whether ``value`` is a sparse array or matrix of SciPy."""
    return sparse.issparse(value)


def is_array(value: object) -> bool:
    """Return whether ``value`` belongs to an array namespace."""
    return compat.is_array_api_obj(value)


def is_dask(value: object) -> TypeGuard[Any]:
    """Return whether ``value`` looks like a dask array; dask need not be installed."""
    return hasattr(value, "__dask_graph__") and hasattr(value, "to_delayed")


def is_sliced(value: object) -> TypeGuard[Sliced]:
    """Return whether ``value`` is read slice by slice, like an HDF5 data set."""
    # pandas tables and sparse arrays are in memory; the estimators refuse them themselves.
    if isinstance(value, np.ndarray | list | tuple) or is_array(value):
        return False
    if hasattr(value, "iloc") or hasattr(value, "tocsr"):
        return False
    return all(hasattr(value, name) for name in ("shape", "dtype", "__getitem__"))


def in_chunks(value: object) -> bool:
    """Return whether ``value`` is a dask array or read slice by slice, not in memory."""
    return not isinstance(value, np.ndarray) and (is_dask(value) or is_sliced(value))


def namespace(*arrays: object) -> ModuleType:
    """Return the array namespace of the given arrays, or NumPy for anything else."""
    if len(arrays) == 1 and type(arrays[0]) is np.ndarray:
        return numpy_namespace  # a fast path: a long walk asks thousands of times
    known = [a for a in arrays if is_array(a)]
    return compat.array_namespace(*known) if known else compat.array_namespace(np.empty(0))


def to_host(value: Any) -> np.ndarray:
    """Copy an array of any namespace to a NumPy array."""
    if isinstance(value, np.ndarray):
        return value
    if compat.is_torch_array(value):
        return value.detach().cpu().numpy()
    if compat.is_cupy_array(value):
        return value.get()
    if is_array(value) and not hasattr(value, "__array__"):
        return np.from_dlpack(value)
    return np.asarray(value)


def like(host: np.ndarray, reference: Array, dtype: Any = None) -> Any:
    """Copy a host array to the namespace and device of ``reference``, as ``dtype``."""
    if isinstance(reference, np.ndarray):
        return host if dtype is None else host.astype(dtype, copy=False)
    xp = namespace(reference)
    # A read-only host array would make PyTorch warn about sharing its memory.
    owned = host if host.flags.writeable else host.copy()
    found = xp.asarray(owned, device=compat.device(reference))
    return found if dtype is None else xp.astype(found, dtype, copy=False)


def sparse_like(matrix: Any, reference: Array, dtype: Any = None) -> Any:
    """Copy a sparse matrix of SciPy to the namespace and device of ``reference``.

    It becomes an object of that library, if it has one, for products ``matrix @ array``.
    """
    rows = matrix.tocsr()
    if compat.is_torch_array(reference):
        import torch

        # A read-only host array would make PyTorch warn about sharing its memory.
        parts = (rows.indptr.copy(), rows.indices.copy(), rows.data.copy())
        make: Any = torch.sparse_csr_tensor  # pyright: ignore[reportUnknownMemberType]
        place = {"size": rows.shape, "device": reference.device, "dtype": dtype}
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Sparse CSR tensor support is in beta")
            return make(*map(torch.asarray, parts), **place, check_invariants=False)
    if compat.is_cupy_array(reference):
        library: Any = import_module("cupyx.scipy.sparse")
        moved = library.csr_matrix(rows)
        return moved if dtype is None else moved.astype(dtype)
    return _OnHost(rows)


class _OnHost:
    """A sparse matrix for arrays of a library without one; products run on the host."""

    def __init__(self, rows: Any) -> None:
        self._rows, self.shape = rows, rows.shape

    def __matmul__(self, array: Array) -> Any:
        return like(self._rows @ to_host(array), array, array.dtype)


def zeros(shape: tuple[int, ...], reference: Array) -> Any:
    """Return zeros with the namespace, device and dtype of ``reference``."""
    xp = namespace(reference)
    return xp.zeros(shape, dtype=reference.dtype, device=compat.device(reference))


def empty(shape: tuple[int, ...], reference: Array) -> Any:
    """Return an uninitialised array like `zeros`."""
    xp = namespace(reference)
    return xp.empty(shape, dtype=reference.dtype, device=compat.device(reference))


def is_host(value: object) -> TypeGuard[np.ndarray]:
    """Return whether a value is a NumPy array."""
    return isinstance(value, np.ndarray)


def multiply_into(target: Array, one: Any, other: Any) -> None:
    """Write a product into a view, without a temporary array if the library allows."""
    if isinstance(target, np.ndarray):
        np.multiply(one, other, out=target)
    elif compat.is_torch_array(target):
        import torch

        torch.mul(one, other, out=target)
    else:
        target[...] = one * other


def plus_product(base: Array, left: Array, right: Array) -> Any:
    """Return ``base + left @ right`` as a new array."""
    # PyTorch needs one kernel instead of two. On a GPU, a pass over memory costs a tenth of
    # a product. A single row goes to cuBLAS as a bias, and it refused one of 20,000.
    fused = getattr(base, "addmm", None)
    if fused is not None and base.shape[0] > 1:
        return fused(left, right)
    product = left @ right
    product += base
    return product


def add_product(base: Array, left: Array, right: Array) -> Any:
    """Return ``base + left @ right``, overwriting ``base`` if the library allows."""
    fused = getattr(base, "addmm_", None)
    if fused is not None and base.shape[0] > 1:  # see `plus_product`
        return fused(left, right)
    base += left @ right
    return base


def exponent(values: np.ndarray, axis: int | tuple[int, ...] | None = None) -> np.ndarray:
    """Return exponents of two that scale the largest values along an axis to order one.

    The exponent of zero is 0. Division by these powers of two is exact, and the squares of
    the quotients do not overflow. The exponents stay 24 below the ends of their range, to
    leave room for related values.
    """
    largest = np.abs(values).max(axis=axis)
    found = np.where(largest > 0, np.clip(np.frexp(largest)[1], -1000, 1000), 0)
    return found.astype(np.int64)


def content_hashes(rows: np.ndarray, seed: int = 0) -> np.ndarray:
    """Return 64-bit hashes (n_rows,) of rows (n_rows, …), equal for equal rows.

    Each value is mixed with its position as in SplitMix64, and the results are added.
    """
    bits = (rows.reshape(len(rows), -1).astype(np.float64) + 0.0).view(np.uint64)
    salt = np.random.default_rng(seed).integers(2**64 - 1, size=bits.shape[1], dtype="u8")
    bits = bits ^ salt
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        bits ^= bits >> np.uint64(shift)
        bits *= np.uint64(factor)
    return (bits ^ (bits >> np.uint64(31))).sum(axis=1, dtype=np.uint64)


def wide(array: Array) -> Any:
    """Return the array in float64, for sums over series."""
    xp = namespace(array)
    return xp.astype(array, xp.float64, copy=False)


def contiguous(array: Array) -> Any:
    """Return the same values, contiguous in memory if the library allows."""
    if isinstance(array, np.ndarray):
        return np.ascontiguousarray(array)
    return array.contiguous() if compat.is_torch_array(array) else array


def quietly(X: Array) -> AbstractContextManager[object]:
    """Suppress overflow warnings (overflow is checked afterwards) and autograd graphs."""
    stack = ExitStack()
    stack.enter_context(np.errstate(over="ignore", invalid="ignore"))
    if compat.is_torch_array(X):
        import torch

        stack.enter_context(torch.no_grad())
    return stack


def on_device(X: ArrayLike | Array, device: str) -> Any:
    """Move a host array to PyTorch on a named device, such as "cuda" or "cuda:1".

    A list of series of several lengths is returned as it is, and so is anything for "cpu".
    """
    if device == "cpu" or isinstance(X, list):
        return X
    try:
        import torch
    except ImportError:
        advice = "needs PyTorch, which is not installed; install torch"
        raise ImportError(f"`device` = {device!r} {advice}.") from None
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if int(device.partition(":")[2] or 0) >= count:
        problem = f"does not exist: PyTorch finds {count or 'no'} CUDA device(s)"
        raise ValueError(f"`device` = {device!r} {problem}.")
    return torch.asarray(np.asarray(X), device=device)


def on_gpu(X: object) -> bool:
    """Return whether an array is on a GPU."""
    if isinstance(X, np.ndarray):
        return False
    if compat.is_torch_array(X):
        return X.device.type == "cuda"
    return compat.is_cupy_array(X)


class Movable:
    """An array on a GPU that can be sent to a GPU of another process."""

    def __init__(self, array: Array) -> None:
        self.array: Any = array

    def __sizeof__(self) -> int:
        return int(self.array.nbytes)

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (to_host(self.array), compat.is_torch_array(self.array))


def _rebuild(host: np.ndarray, torch_array: bool) -> Movable:
    if torch_array:
        return Movable(on_device(host, "cuda"))
    import cupy  # pyright: ignore[reportMissingImports]

    return Movable(cupy.asarray(host))


def movable(array: Array) -> Any:
    """Return the array, wrapped in a `Movable` if it is on a GPU."""
    return Movable(array) if on_gpu(array) else array


def arrived(value: Array | Movable) -> Any:
    """Return the array that was passed to `movable`."""
    return value.array if isinstance(value, Movable) else value


def working_bytes(X: Array) -> float:
    """Return the memory in bytes for the work on one batch, on the device of ``X``.

    A CPU is fast on data in its caches, but small products leave most of a GPU idle.
    """
    if not on_gpu(X):
        return float(BATCH_BYTES)
    if compat.is_torch_array(X):
        import torch

        free = torch.cuda.mem_get_info(X.device)[0]
        held = torch.cuda.memory_reserved(X.device) - torch.cuda.memory_allocated(X.device)
        return _DEVICE_SHARE * (free + held)
    import cupy  # pyright: ignore[reportMissingImports]

    with X.device:
        free = cupy.cuda.runtime.memGetInfo()[0]
        held = cupy.get_default_memory_pool().free_bytes()
    return _DEVICE_SHARE * (free + held)


def batches(
    n_cases: int, bytes_per_case: float, budget: float = BATCH_BYTES
) -> Iterator[slice]:
    """Split ``n_cases`` into slices whose working memory stays within ``budget``.

    The slices have nearly equal sizes, and none is longer than the first.
    """
    size = max(1, int(budget // max(bytes_per_case, 1)))
    count = ceil(n_cases / size)
    for part in range(count):
        yield slice(-(-n_cases * part // count), -(-n_cases * (part + 1) // count))
