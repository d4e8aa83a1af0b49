"""The true dynamics: integrate and differentiate the network without an expansion."""

from .integration import Dynamics

__all__ = ["Dynamics"]
