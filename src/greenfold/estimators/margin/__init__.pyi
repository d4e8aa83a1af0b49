from .classifier import ModelFileError, ReservoirClassifier, noisy_accuracy
from .export import to_numpy, to_onnx

__all__ = ["ModelFileError", "ReservoirClassifier", "noisy_accuracy", "to_numpy", "to_onnx"]
