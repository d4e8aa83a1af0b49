"""Turn recurrence into feed-forward maps: the unfolded network and its kernels."""

from .kernels import Kernel
from .unfolding import Unfolding, unfold

__all__ = ["Kernel", "Unfolding", "unfold"]
