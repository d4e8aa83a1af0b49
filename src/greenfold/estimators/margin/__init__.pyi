from .classifier import ReservoirClassifier
from .export import to_numpy, to_onnx
from .model_file import ModelFileError
from .noise import noisy_accuracy

__all__ = ["ModelFileError", "ReservoirClassifier", "noisy_accuracy", "to_numpy", "to_onnx"]
