"""Reproduction of the paper: one file per figure, with its parameters at the top."""

from .figures import reproduce

__all__ = ["reproduce"]
