"""The true dynamics: integrate and differentiate the network without an expansion."""

from .dynamics import Dynamics

__all__ = ["Dynamics"]
