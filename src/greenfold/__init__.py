"""Reservoir computing, solved: optimal input and readout projections."""

from .analysis import choose_eta, choose_tau, margin_over_angle, margin_over_time
from .kernels import Kernel
from .margin import (
    SoftMargin,
    gaussian_soft_margin,
    margin,
    soft_margin,
    state_moments,
    svm_readout,
)
from .optimizers import Projections, optimize
from .reservoir import Gain, Modes, Reservoir
from .simulation import simulate
from .sphere import SphereMaximum, maximize_on_sphere
from .stimuli import GaussianStimuli, SampleStimuli
from .unfolding import Unfolding, unfold
from .validity import (
    ExpansionWarning,
    SimulatedCheck,
    Validity,
    assess,
    check_by_simulation,
)

__version__ = "0.1.0"

__all__ = [
    "ExpansionWarning",
    "Gain",
    "GaussianStimuli",
    "Kernel",
    "Modes",
    "Projections",
    "Reservoir",
    "SampleStimuli",
    "SimulatedCheck",
    "SoftMargin",
    "SphereMaximum",
    "Unfolding",
    "Validity",
    "assess",
    "check_by_simulation",
    "choose_eta",
    "choose_tau",
    "gaussian_soft_margin",
    "margin",
    "margin_over_angle",
    "margin_over_time",
    "maximize_on_sphere",
    "optimize",
    "simulate",
    "soft_margin",
    "state_moments",
    "svm_readout",
    "unfold",
]
