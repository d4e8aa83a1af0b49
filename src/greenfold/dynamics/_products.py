"""Elementary operations on batches, in place where the array library can."""

from __future__ import annotations

from contextlib import AbstractContextManager, ExitStack
from typing import Any

import array_api_compat as compat
import numpy as np

from .._arrays import like, namespace


def plus_product(base: Any, left: Any, right: Any) -> Any:
    """``base + left @ right`` as a new array."""
    if compat.is_torch_array(base):
        # One kernel instead of two; on a GPU a pass over memory is a tenth of a product.
        return base.addmm(left, right)
    product = left @ right
    product += base
    return product


def add_product(base: Any, left: Any, right: Any) -> Any:
    """``base + left @ right``, overwriting ``base`` where the library allows."""
    if compat.is_torch_array(base):
        return base.addmm_(left, right)
    base += left @ right
    return base


def place(host: np.ndarray, reference: Any, dtype: Any) -> Any:
    """Copy a host array to the namespace and device of ``reference``, as ``dtype``."""
    return namespace(reference).astype(like(host, reference), dtype, copy=False)


def wide(array: Any) -> Any:
    """The same in float64, in which sums over series are formed."""
    xp = namespace(array)
    return xp.astype(array, xp.float64, copy=False)


def contiguous(array: Any) -> Any:
    """The same values, in the order of their axes in memory where that can be asked for."""
    if isinstance(array, np.ndarray):
        return np.ascontiguousarray(array)
    return array.contiguous() if compat.is_torch_array(array) else array


def working_dtype(X: Any) -> Any:
    """float32 for float32 stimuli, float64 for everything else."""
    xp = namespace(X)
    return xp.float32 if X.dtype == xp.float32 else xp.float64


def quietly(X: Any) -> AbstractContextManager:
    """No warnings of overflow (it is looked for afterwards), no autograd graph."""
    stack = ExitStack()
    stack.enter_context(np.errstate(over="ignore", invalid="ignore"))
    if compat.is_torch_array(X):
        import torch

        stack.enter_context(torch.no_grad())
    return stack
