"""The true dynamics: the network integrated and differentiated without expansion."""

from .dynamics import Dynamics

__all__ = ["Dynamics"]
