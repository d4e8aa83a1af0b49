"""Reservoir computing, solved: optimal input and readout projections."""

from .analysis import choose_eta, choose_tau, margin_over_angle, margin_over_time
from .classifier import ReservoirClassifier
from .export import to_numpy, to_onnx
from .kernels import Kernel
from .margin import (
    SoftMargin,
    gaussian_soft_margin,
    margin,
    soft_margin,
    state_moments,
    svm_readout,
)
from .noise import noisy_accuracy
from .optimizers import Projections, optimize
from .persistence import ModelFileError, load, save
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
    "ModelFileError",
    "Modes",
    "Projections",
    "Reservoir",
    "ReservoirClassifier",
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
    "load",
    "margin",
    "margin_over_angle",
    "margin_over_time",
    "maximize_on_sphere",
    "noisy_accuracy",
    "optimize",
    "save",
    "simulate",
    "soft_margin",
    "state_moments",
    "svm_readout",
    "to_numpy",
    "to_onnx",
    "unfold",
]
