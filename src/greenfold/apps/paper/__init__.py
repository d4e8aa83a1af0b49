"""The paper, reproduced: one file a figure, parameters at the top of each."""

from .figures import reproduce

__all__ = ["reproduce"]
