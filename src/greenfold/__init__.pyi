from . import (
    calibration,
    choosing,
    classifier,
    datasets,
    diagnosis,
    dynamics,
    echo_state,
    gains,
    margins,
    measured,
    optimizers,
    paper,
    pooled,
    regression,
    report,
    reservoir,
    saving,
    simulation,
    sphere,
    stimuli,
    systems,
    unfolding,
    validity,
)
from .choosing import choose_classifier
from .classifier import ReservoirClassifier, noisy_accuracy
from .diagnosis import choose_eta, choose_tau, memory_capacity, optimize_reservoir
from .dynamics import Dynamics
from .echo_state import EchoStateNetwork
from .gains import Gain
from .measured import MeasuredResponse
from .optimizers import Projections, optimize
from .pooled import (
    PooledReservoirClassifier,
    PooledReservoirRegressor,
    ReservoirFeatures,
)
from .regression import ReservoirRegressor
from .reservoir import Reservoir
from .saving import load, save
from .simulation import simulate
from .stimuli import GaussianStimuli, RegressionTask, SampleStimuli
from .unfolding import Kernel, Unfolding, unfold
from .validity import ExpansionWarning

__version__: str

__all__ = [
    "Dynamics",
    "EchoStateNetwork",
    "ExpansionWarning",
    "Gain",
    "GaussianStimuli",
    "Kernel",
    "MeasuredResponse",
    "PooledReservoirClassifier",
    "PooledReservoirRegressor",
    "Projections",
    "RegressionTask",
    "Reservoir",
    "ReservoirClassifier",
    "ReservoirFeatures",
    "ReservoirRegressor",
    "SampleStimuli",
    "Unfolding",
    "__version__",
    "calibration",
    "choose_classifier",
    "choose_eta",
    "choose_tau",
    "choosing",
    "classifier",
    "datasets",
    "diagnosis",
    "dynamics",
    "echo_state",
    "gains",
    "load",
    "margins",
    "measured",
    "memory_capacity",
    "noisy_accuracy",
    "optimize",
    "optimize_reservoir",
    "optimizers",
    "paper",
    "pooled",
    "regression",
    "report",
    "reservoir",
    "save",
    "saving",
    "simulate",
    "simulation",
    "sphere",
    "stimuli",
    "systems",
    "unfold",
    "unfolding",
    "validity",
]
