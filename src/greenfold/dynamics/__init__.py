"""The true dynamics: the network integrated, and differentiated, as it is.

One question a file: `phi` has the φ-functions of a matrix, `excess` the gain without its
linear part, `etdrk4` one step in continuous time, `discrete` one in discrete time,
`course` which steps are walked and where the state is read, `marching` the walk of a batch
and its adjoint, `batch` many series in bounded memory, `prepared` the same series for an
optimiser, `control` the number of sub-steps, `dynamics` the system made of them. States are
deviations from the rest state of the network, which `greenfold.rest` finds.
"""

from ..rest import rest_of_map, rest_of_rates
from .batch import Divergence, Linearization, pullback, states, trajectories
from .control import StepError, plan_substeps, step_error
from .course import Course, Stepper, make_course
from .discrete import LeakyStep, leaky_step
from .dynamics import Dynamics
from .etdrk4 import ExponentialStep, exponential_step
from .excess import Excess

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
    "exponential_step",
    "leaky_step",
    "make_course",
    "plan_substeps",
    "pullback",
    "rest_of_map",
    "rest_of_rates",
    "states",
    "step_error",
    "trajectories",
]
