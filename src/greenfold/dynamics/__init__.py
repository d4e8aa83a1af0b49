"""The true dynamics: the network integrated, and differentiated, as it is.

`steppers` has one step in continuous and in discrete time, `walk` the walk of a batch along
its steps and back, `batch` many series in bounded memory, `step_control` the number of
sub-steps, `dynamics` the system made of them. States are deviations from the resting state.
"""

from ..networks.resting_state import continuous_resting_state, discrete_resting_state
from .batch import Divergence, Linearization, pullback, states, trajectories
from .dynamics import Dynamics
from .step_control import StepError, plan_substeps, step_error
from .steppers import Excess, ExponentialStep, LeakyStep, exponential_step, leaky_step
from .walk import Course, Stepper, make_course

__all__ = [
    "Course",
    "Divergence",
    "Dynamics",
    "Excess",
    "ExponentialStep",
    "LeakyStep",
    "Linearization",
    "StepError",
    "Stepper",
    "continuous_resting_state",
    "discrete_resting_state",
    "exponential_step",
    "leaky_step",
    "make_course",
    "plan_substeps",
    "pullback",
    "states",
    "step_error",
    "trajectories",
]
