"""The true dynamics: the network integrated, and differentiated, as it is.

`steppers` has one step in continuous and in discrete time, `step_control` the number of
sub-steps, `dynamics` the system made of them and of the walk that unfolded networks take
too. States are deviations from the resting state.
"""

from .dynamics import Dynamics

__all__ = ["Dynamics"]
