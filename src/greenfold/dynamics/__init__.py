"""The true dynamics: the network integrated, and differentiated, as it is."""

from .dynamics import Dynamics

__all__ = ["Dynamics"]
