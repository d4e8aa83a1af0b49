from .estimator import ReservoirClassifier
from .export import to_numpy, to_onnx
from .model_file import ModelFileError, load, save
from .noise import noisy_accuracy

__all__ = [
    "ModelFileError",
    "ReservoirClassifier",
    "load",
    "noisy_accuracy",
    "save",
    "to_numpy",
    "to_onnx",
]
