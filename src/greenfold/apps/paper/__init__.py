"""The paper, reproduced: one file a figure, parameters at the top of each."""

from .figures import FIGURES, Outcome, reproduce

__all__ = ["FIGURES", "Outcome", "reproduce"]
