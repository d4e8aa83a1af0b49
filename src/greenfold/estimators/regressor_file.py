"""What a file keeps of a fitted regressor; see `greenfold._base.codec`."""

from __future__ import annotations

from .._base import codec
from .._base.archive import refuse
from ..networks.reservoir import RESERVOIR
from ..optimizers.result import REGRESSION
from .regressor import ReservoirRegressor
from .saved import describe_fitted


def _check_whole(made: ReservoirRegressor) -> None:
    n_neurons, n_targets = made.reservoir_.n_neurons, len(made.intercept_)
    if made._flat and n_targets != 1:
        refuse(f"it has {n_targets} targets, and says one.")
    found = made.projections_
    sizes = found.V.shape, found.u.size
    if sizes != ((n_neurons, n_targets), n_neurons * made.n_channels_in_):
        refuse(f"its projections do not fit a network of {n_neurons} neurons.")


describe_fitted(
    "regressor",
    ReservoirRegressor,
    ReservoirRegressor._check_parameters,
    _check_whole,
    reservoir_=RESERVOIR,
    projections_=REGRESSION,
    ridge_=codec.POSITIVE,
    _flat=codec.FLAG,
    kernel_=codec.Numbers("targets", ("channels", "steps")),
    intercept_=codec.Numbers("targets"),
)
