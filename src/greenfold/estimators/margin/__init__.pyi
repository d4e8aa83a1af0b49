from .classifier import ModelFileError, ReservoirClassifier
from .export import to_numpy, to_onnx
from .noise import noisy_accuracy

__all__ = ["ModelFileError", "ReservoirClassifier", "noisy_accuracy", "to_numpy", "to_onnx"]
