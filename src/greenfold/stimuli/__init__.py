"""What is classified: two classes of stimuli, and their moments.

`GaussianStimuli` and `SampleStimuli` answer the same questions: the moments μ = ⟨ζx⟩ and
ψ = cov(ζx) of the labelled stimuli, and M(u), Σ(u) of the labelled network states. The
linear problem needs nothing else, so its cost does not depend on how many series there
are.
"""

from .base import Series, Stimuli
from .frame import Frame, frame_in_pieces, frame_of_classes, frame_with_series, frames_of
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
    "frame_in_pieces",
    "frame_of_classes",
    "frame_with_series",
    "frames_of",
]
