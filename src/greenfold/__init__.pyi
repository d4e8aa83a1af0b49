from . import (
    analysis,
    datasets,
    devices,
    dynamics,
    estimators,
    math,
    networks,
    optimizers,
    saving,
    simulation,
    stimuli,
    systems,
    unfolding,
    validity,
)
from ._base.progress import progress
from .analysis.curves import choose_tau
from .analysis.eta import choose_eta
from .analysis.memory import memory_capacity
from .analysis.networks import optimize_reservoir
from .devices.device import Device
from .devices.masks import AtMost, Box, Levels, NonNegative, Signs
from .devices.response import MeasuredResponse
from .dynamics.integration import Dynamics
from .estimators.margin import ReservoirClassifier, noisy_accuracy
from .estimators.pooled.estimators import (
    PooledReservoirClassifier,
    PooledReservoirRegressor,
    ReservoirFeatures,
)
from .estimators.regressor import ReservoirRegressor
from .estimators.sequences import ReservoirForecaster, SequenceRegressor
from .networks.echo_state import EchoStateNetwork
from .networks.gains import Gain
from .networks.reservoir import Reservoir
from .optimizers.alternating import Alternating
from .optimizers.ascent import Ascent
from .optimizers.convex import Convex, Exact
from .optimizers.method import RandomDraws
from .optimizers.result import Projections
from .optimizers.run import optimize
from .saving import load, save
from .simulation import simulate
from .stimuli.gaussian import GaussianStimuli
from .stimuli.regression import RegressionTask
from .stimuli.samples import SampleStimuli
from .stimuli.sequences import SequenceTask
from .unfolding.kernels import Kernel
from .unfolding.unfolding import Unfolding, unfold
from .validity import ExpansionWarning

__version__: str

__all__ = [
    "Alternating",
    "Ascent",
    "AtMost",
    "Box",
    "Convex",
    "Device",
    "Dynamics",
    "EchoStateNetwork",
    "Exact",
    "ExpansionWarning",
    "Gain",
    "GaussianStimuli",
    "Kernel",
    "Levels",
    "MeasuredResponse",
    "NonNegative",
    "PooledReservoirClassifier",
    "PooledReservoirRegressor",
    "Projections",
    "RandomDraws",
    "RegressionTask",
    "Reservoir",
    "ReservoirClassifier",
    "ReservoirFeatures",
    "ReservoirForecaster",
    "ReservoirRegressor",
    "SampleStimuli",
    "SequenceRegressor",
    "SequenceTask",
    "Signs",
    "Unfolding",
    "__version__",
    "analysis",
    "choose_eta",
    "choose_tau",
    "datasets",
    "devices",
    "dynamics",
    "estimators",
    "load",
    "math",
    "memory_capacity",
    "networks",
    "noisy_accuracy",
    "optimize",
    "optimize_reservoir",
    "optimizers",
    "progress",
    "save",
    "saving",
    "simulate",
    "simulation",
    "stimuli",
    "systems",
    "unfold",
    "unfolding",
    "validity",
]
