"""What the transformer and the two estimators share: parameters, reading, the bank."""

from __future__ import annotations

from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state

from ..pieces import pieces_of
from .bank import GROUP, draw_bank
from .collection import Collection, match_shape, read_collection
from .feature_map import FeatureMap, auto_engine, fit_map, has_numba
from .head import DUAL_CASES
from .in_pieces import PieceCollection

__all__ = ["PooledBase"]


def _integer(value: Any, least: int) -> bool:
    if isinstance(value, bool | np.bool_) or not isinstance(value, Integral):
        return False
    return int(value) >= least


class PooledBase(BaseEstimator):
    """Parameters are described by `ReservoirFeatures`."""

    n_scales: int
    n_oscillators: int
    n_readouts: int
    scaling: str
    engine: str
    random_state: Any
    n_jobs: int | None
    n_features_in_: int
    n_channels_in_: int
    map_: FeatureMap
    _any_length: bool
    _head_seed: int

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.input_tags.allow_nan = True
        return tags

    def _refuse(self, name: str, wanted: str) -> None:
        raise ValueError(
            f"The {name!r} parameter of {type(self).__name__} must be {wanted}. "
            f"Got {getattr(self, name)!r} instead."
        )

    def _check_parameters(self) -> None:
        for name in ("n_scales", "n_oscillators"):
            if not _integer(getattr(self, name), 1):
                self._refuse(name, "an int, at least 1")
        wish = self.n_readouts
        if not _integer(wish, 2 * GROUP) or wish % GROUP:
            self._refuse("n_readouts", f"a multiple of {GROUP}, at least {2 * GROUP}")
        if self.scaling not in ("set", "series"):
            self._refuse("scaling", "'set' or 'series'")
        if self.engine not in ("auto", "numba", "array"):
            self._refuse("engine", "'auto', 'numba' or 'array'")
        if self.n_jobs is not None and not (
            _integer(self.n_jobs, -(10**6)) and self.n_jobs != 0
        ):
            self._refuse("n_jobs", "None or an int other than 0")

    def _engine(self, series: Collection) -> str:
        if self.engine == "numba" and not has_numba():
            raise ImportError(
                "engine='numba' needs numba; install it with: pip install greenfold[fast]"
            )
        if self.engine != "auto":
            return self.engine
        groups = getattr(series, "groups", None)
        if groups is None or isinstance(groups[0][1], np.ndarray):
            return auto_engine()
        return "numba" if has_numba() else "array"  # for series on the host, later on

    def save(self, path: str | Path) -> None:
        """Write what was fitted to a file that holds no code.

        Read it with `greenfold.load`.

        Parameters
        ----------
        path : str or Path
            Replaced if it exists, in one step at the end.

        Notes
        -----
        Held-out predictions and a ``random_state`` that is a generator are not kept.
        """
        from .model_file import save

        save(self, path)  # pyright: ignore[reportArgumentType]

    def _read(self, X: Any, *, fitting: bool) -> Collection:
        pieces = pieces_of(X)
        if pieces is None:
            return read_collection(self, X, fitting=fitting)
        match_shape(self, *pieces.shape[1:], fitting)
        made = PieceCollection(pieces)
        if len(made) > DUAL_CASES:
            return made  # pyright: ignore[reportReturnType] - it answers the same questions
        return made.take(np.arange(len(made)))

    def _fit_map(self, series: Collection) -> None:
        """Draw the bank and take scale and thresholds from the series."""
        seed = check_random_state(self.random_state).randint(2**31 - 1)
        rng = np.random.default_rng(seed)
        bank = draw_bank(
            float(np.median(series.lengths)),
            series.n_channels,
            rng,
            n_scales=self.n_scales,
            n_oscillators=self.n_oscillators,
            n_readouts=self.n_readouts,
        )
        self.map_ = fit_map(
            bank, series, rng, scaling=self.scaling, engine=self._engine(series)
        )
        self._head_seed = int(rng.integers(2**31))
