"""The transformer: series into pooled features of a reservoir bank.

What the transformer and the two estimators share: parameters, reading, the bank.
"""

from __future__ import annotations

from numbers import Integral
from typing import Any

import array_api_compat as compat
import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from ..._base.codec import Saved
from ...stimuli.chunks import by_chunks, chunks_of
from .bank import GROUP, KINDS, N_SIGNALS, draw_bank
from .collection import ChunkCollection, Collection, match_shape, read_collection
from .feature_map import FeatureMap, auto_engine, fit_map, has_numba
from .ridge import DUAL_CASES

__all__ = ["PooledBase", "ReservoirFeatures"]


def _integer(value: Any, least: int) -> bool:
    if isinstance(value, bool | np.bool_) or not isinstance(value, Integral):
        return False
    return int(value) >= least


class PooledBase(Saved, BaseEstimator):
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

    def _read(self, X: Any, *, fitting: bool) -> Collection:
        chunks = chunks_of(X)
        if chunks is None:
            return read_collection(self, X, fitting=fitting)
        match_shape(self, *chunks.shape[1:], fitting)
        made = ChunkCollection(chunks)
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


class ReservoirFeatures(TransformerMixin, PooledBase, kind="pooled_features"):
    """Describe time series by what a bank of reservoirs did over time.

    Reservoirs of damped oscillators, each of one time scale, hear the series; random
    readouts of their states, and the first and second differences of those, are pooled
    over time. What a feature says does not depend on when something happened, apart from
    those of halves and quarters of the time.

    Parameters
    ----------
    n_scales : int, default 8
        Reservoirs, with time scales spaced evenly in their logarithm from 1.5 steps to half
        the typical length of the training series.
    n_oscillators : int, default 32
        Damped oscillators of each reservoir.
    n_readouts : int, default 88
        Random readouts of each reservoir, a multiple of 8.
    scaling : {"set", "series"}, default "set"
        Whether each channel is standardised by its mean and deviation over the training
        set, so that level and amplitude of a series count, or each series by its own.
    engine : {"auto", "numba", "array"}, default "auto"
        "numba" is compiled and some twenty times as fast on one thread; "array" needs
        nothing beyond the array library. "auto" compiles where numba is installed (extra
        ``greenfold[fast]``), and says once where it is not (`SlowEngineWarning`). Arrays
        of PyTorch and CuPy are always treated by their own library, on their device.
    random_state : int, RandomState or None, default None
        Draws oscillators, readouts and thresholds.
    n_jobs : int or None, default None
        Threads over series of the compiled engine.

    Attributes
    ----------
    map_ : FeatureMap
        The bank (``map_.bank``), thresholds and scale.
    n_features_in_ : int
        Steps of the longest training series.
    n_channels_in_ : int

    Notes
    -----
    Series are arrays (n_cases, n_steps) or (n_cases, n_channels, n_steps), or lists of
    (n_steps,) or (n_channels, n_steps) arrays of any length. NaN inside a series is filled
    by a straight line, NaN at its ends does not belong to it.

    There are 114 features of a readout: 38 (``pooled.kinds``) of it and of its two
    differences. Computation is in single precision; a feature that counts steps above a
    threshold may differ by a step between engines.

    A slow reservoir is read every τ₀/6 steps, but 128 times a series at least.

    Examples
    --------
    >>> from greenfold.datasets import synthetic_heartbeats
    >>> from greenfold.estimators.pooled import ReservoirFeatures
    >>> X, y = synthetic_heartbeats(20, rng=0)
    >>> ReservoirFeatures(n_readouts=16, random_state=0).fit_transform(X).shape
    (20, 14592)
    """

    def __init__(
        self,
        *,
        n_scales: int = 8,
        n_oscillators: int = 32,
        n_readouts: int = 88,
        scaling: str = "set",
        engine: str = "auto",
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_scales = n_scales
        self.n_oscillators = n_oscillators
        self.n_readouts = n_readouts
        self.scaling = scaling
        self.engine = engine
        self.random_state = random_state
        self.n_jobs = n_jobs

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []  # features are float32 in any case
        return tags

    def fit(self, X: Any, y: Any = None) -> ReservoirFeatures:
        """Draw the bank; take scale and thresholds from the series.

        Parameters
        ----------
        X : array_like (n_cases, n_steps) or (n_cases, n_channels, n_steps), or list
        y : None
            Not used.

        Returns
        -------
        self
        """
        self._check_parameters()
        self._fit_map(self._read(X, fitting=True))
        return self

    @by_chunks
    def transform(self, X: Any) -> Any:
        """Pooled features.

        Parameters
        ----------
        X : array_like (n_cases, n_steps) or (n_cases, n_channels, n_steps), or list

        Returns
        -------
        array (n_cases, n_features_out), float32
            Of the library and on the device of ``X``.
        """
        check_is_fitted(self)
        series = self._read(X, fitting=False)
        blocks = [
            self.map_.blocks(series, scale, self.n_jobs)
            for scale in range(len(self.map_.widths))
        ]
        return compat.array_namespace(*blocks).concat(blocks, axis=1)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names such as ``scale0_above1_difference2_readout17``.

        Parameters
        ----------
        input_features : None
            Not used.

        Returns
        -------
        ndarray (n_features_out,) of str
        """
        check_is_fitted(self)
        names = []
        for scale, one in enumerate(self.map_.bank.scales):
            for kind, rows in KINDS.items():
                for i in range(rows.stop - rows.start):
                    number = str(i) if rows.stop - rows.start > 1 else ""
                    names += [
                        f"scale{scale}_{kind}{number}_difference{s}_readout{d}"
                        for s in range(N_SIGNALS)
                        for d in range(one.n_readouts)
                    ]
        return np.array(names, dtype=object)
