"""Result files in the format of tsml-eval, written and read.

Line 1: data set, estimator, split, resample, unit of time, remarks. Line 2: parameters.
Line 3: accuracy, times of fit and prediction, benchmark time and memory (-1: not measured),
number of classes, and what concerns estimates on training data. Then one line a series: its
class, the predicted class, an empty field, and the probabilities.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ...datasets.parsing import DataError
from ..runner import is_whole

_HEAD = 3


@dataclass(frozen=True)
class Predictions:
    """What one estimator predicted on one split of one set.

    Attributes
    ----------
    dataset, estimator : str
    resample : int
    remarks : str
        End of the first line.
    parameters : str
        The second line.
    fit_time, predict_time : float
        Milliseconds.
    labels, predictions : ndarray of int, shape (n_cases,)
        Numbers of the classes, in the order of their names as text.
    probabilities : ndarray of shape (n_cases, n_classes)
    """

    dataset: str
    estimator: str
    resample: int
    remarks: str
    parameters: str
    fit_time: float
    predict_time: float
    labels: np.ndarray
    predictions: np.ndarray
    probabilities: np.ndarray

    @property
    def accuracy(self) -> float:
        """Share of series whose class was predicted."""
        return float(np.mean(self.labels == self.predictions))

    def text(self) -> str:
        """The file."""
        first = (
            f"{self.dataset},{self.estimator},TEST,{self.resample},MILLISECONDS,"
            f"{_line(self.remarks)}"
        )
        third = (
            f"{self.accuracy!r},{self.fit_time:.3f},{self.predict_time:.3f},-1,-1,"
            f"{self.probabilities.shape[1]},N/A,-1,-1"
        )
        rows = [
            f"{label},{found},,{','.join(map(repr, shares))}"
            for label, found, shares in zip(
                self.labels.tolist(),
                self.predictions.tolist(),
                self.probabilities.tolist(),
                strict=True,
            )
        ]
        return "\n".join([first, _line(self.parameters), third, *rows]) + "\n"


def _line(text: str) -> str:
    return " ".join(text.split())


def read_predictions(path: str | Path) -> Predictions:
    """Read a result file of tsml-eval or of `greenfold sweep`.

    Parameters
    ----------
    path : str or Path
        ``<estimator>/Predictions/<dataset>/testResample<k>.csv``.

    Returns
    -------
    Predictions

    Raises
    ------
    DataError
        If it is not such a file, is cut off, or does not have the accuracy that it states.
    """
    content = Path(path).read_bytes()
    if not is_whole(content):
        raise DataError(
            f"The result file {str(path)!r} is damaged: run the sweep again to redo it."
        )
    try:
        found, accuracy = _parse(content.decode())
    except (ValueError, IndexError):
        raise DataError(
            f"The file {str(path)!r} is not a complete result in tsml-eval's format."
        ) from None
    if abs(found.accuracy - accuracy) > 1e-9:
        raise DataError(
            f"The file {str(path)!r} states an accuracy of {accuracy:g}, but its "
            f"predictions have {found.accuracy:g}."
        )
    return found


def _parse(text: str) -> tuple[Predictions, float]:
    lines = text.splitlines()
    name, estimator, split, resample, unit, *remarks = lines[0].split(",")
    numbers = lines[2].split(",")
    n_classes = int(numbers[5])
    scale = {"MILLISECONDS": 1.0, "NANOSECONDS": 1e-6, "SECONDS": 1e3}.get(
        unit.upper(), 1.0
    )
    rows = [line.split(",") for line in lines[_HEAD:] if line]
    if split.upper() != "TEST" or not rows:
        raise ValueError
    found = Predictions(
        dataset=name,
        estimator=estimator,
        resample=int(resample),
        remarks=",".join(remarks),
        parameters=lines[1],
        fit_time=float(numbers[1]) * scale,
        predict_time=float(numbers[2]) * scale,
        labels=np.array([int(row[0]) for row in rows]),
        predictions=np.array([int(row[1]) for row in rows]),
        probabilities=np.array(
            [[float(one) for one in row[3 : 3 + n_classes]] for row in rows]
        ),
    )
    if found.probabilities.shape != (len(rows), n_classes):
        raise ValueError
    return found, float(numbers[0])
