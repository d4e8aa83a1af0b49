"""Stimuli of two classes, and regression tasks.

`GaussianStimuli` and `SampleStimuli` provide the moments μ = ⟨ζx⟩ and ψ = cov(ζx) of the
labelled stimuli, and M(u), Σ(u) of the labelled network states. The linear problem needs
nothing else, so its cost does not depend on the number of series.
"""

from .base import Series, Stimuli
from .frame import Frame
from .gaussian import GaussianStimuli
from .regression import RegressionTask
from .samples import SampleStimuli
from .sequences import SequenceTask

__all__ = [
    "Frame",
    "GaussianStimuli",
    "RegressionTask",
    "SampleStimuli",
    "SequenceTask",
    "Series",
    "Stimuli",
]
