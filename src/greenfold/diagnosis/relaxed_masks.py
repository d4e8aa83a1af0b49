"""What no mask of one kind can exceed: the upper bound, lowered by what it may not be.

For every kernel a and every unit pair, κ ≤ (η/2) aᵀψa + ‖G(d) u‖ with d = μ − ηψa. Over
all u the largest ‖Gu‖² is the largest eigenvalue of GᵀG. A mask can do less:

    uᵀGᵀGu ≤ λ_max(GᵀG + S)                  u ≥ 0, for any S ≥ 0 (entry by entry)
    uᵀGᵀGu ≤ λ_max(GᵀG − diag δ) + Σδ/n      u_i = ±1/√n, for any δ
    uᵀGᵀGu ≤ λ_max(GᵀG − diag δ) + h² Σδ     |u_i| ≤ h, for any δ ≥ 0

because uᵀSu ≥ 0, uᵀ diag(δ) u = Σδ/n and ≤ h² Σδ. These are the duals of the semidefinite
relaxations of each kind. S or δ and the kernel a are descended together, with the largest
eigenvalue smoothed, ever less; whatever they are, the unsmoothed value is a proven bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize

from .. import _validation as check
from .._threads import rows_of, with_few_threads
from ..optimizers import Projections
from ..optimizers.bound import Metric, metric_root
from ..optimizers.linear import LinearProblem
from ..optimizers.masks import Mask, read_mask
from ..stimuli import Stimuli
from ..systems import System

#: Sharpness of the smoothed eigenvalue, in units of the largest, and evaluations at each.
_SHARPNESS = (30.0, 100.0, 300.0, 1000.0, 3000.0)
_EVALUATIONS = 80
#: Eigenvectors of less weight are left out of a gradient.
_WEIGHT = 1e-9
#: Error of an eigenvalue in units of the matrix: a few roundings for each of its rows.
_ROUNDING = 4 * np.finfo(float).eps


@with_few_threads(rows_of)
def mask_bound(
    system: System,
    stimuli: Stimuli,
    projections: Projections,
    *,
    mask: str | None = None,
    levels: Any = None,
    box: Any = None,
) -> float:
    """A proven bound on κ of all masks of one kind.

    ``projections.upper_bound`` holds for every u; this one for masks alone, and is lower.
    How near ``projections`` are to it tells how much a longer search could still find.

    Parameters
    ----------
    system : System
        Linear.
    stimuli : GaussianStimuli or SampleStimuli
    projections : Projections
        Of ``optimize(system, stimuli, mask=...)``: where the bound is lowered from. Their η
        is used.
    mask, levels, box : optional
        The kind of mask, as given to `optimize`: "sign" (or two levels ±1), "nonnegative"
        (or levels of which none is negative), or a box.

    Returns
    -------
    float

    Notes
    -----
    Each of some hundred steps decomposes a matrix of as many rows as the mask has entries:
    seconds for a hundred, minutes for a thousand. Noise of the device is not in it.

    Examples
    --------
    >>> from greenfold import GaussianStimuli, Reservoir, optimize, unfold
    >>> from greenfold.diagnosis import mask_bound
    >>> network = unfold(Reservoir.random(12, rng=0), n_steps=6, dt=0.5)
    >>> stimuli = GaussianStimuli.random(6, strength=1.0, rng=1)
    >>> best = optimize(network, stimuli, mask="sign", rng=0)
    >>> bound = mask_bound(network, stimuli, best, mask="sign")
    >>> best.soft_margin <= bound <= best.upper_bound
    True
    """
    if not system.is_linear:
        raise ValueError("`system` must be linear: no other has a bound.")
    stimuli.match(system)
    if projections.noise_cost is not None:
        raise ValueError(
            "`projections` were solved with noise of the device, which this bound leaves "
            "out; solve them without."
        )
    u = check.input_projection(projections.u, system.n_inputs, stimuli.n_channels)
    wanted = read_mask(mask, levels, box, u.size)
    if wanted is None:
        raise ValueError("Give one of `mask`, `levels` and `box`, as to `optimize`.")
    problem = LinearProblem(system.maps, stimuli, projections.eta)
    kernel = problem.kernel(u, check.readout_vector(projections.v, system.n_outputs))
    found = MaskRelaxation.of(problem, wanted, u.size).lowered(kernel)
    free = projections.upper_bound
    return found if free is None else min(found, free)


@dataclass(frozen=True, eq=False)
class MaskRelaxation:
    """The bound as a function of the kernel, S and δ.

    Attributes
    ----------
    problem : LinearProblem
    n : int
        Entries of the mask.
    has_pairs : bool
        Whether entries are not negative, and S may be used.
    square : float or None
        Largest u_i², the price of δ; None without δ.
    is_equal : bool
        Whether every u_i² is that, so that δ may have any sign.
    """

    problem: LinearProblem
    n: int
    has_pairs: bool
    square: float | None
    is_equal: bool

    @classmethod
    def of(cls, problem: LinearProblem, mask: Mask, n: int) -> MaskRelaxation:
        """The relaxation of a kind of mask."""
        levels = mask.levels
        if levels is not None and len(levels) == 2 and levels[0] == -levels[1]:
            return cls(problem, n, False, 1 / n, True)
        if levels is not None and levels[0] >= 0:
            return cls(problem, n, True, None, False)
        if mask.is_discrete:
            raise ValueError(
                "`levels` must be two of one size, or none of them negative: for others no "
                "bound is known that is lower than that of all projections."
            )
        reach = max(abs(mask.low), abs(mask.high))
        # A unit vector has no entry above one anyway.
        square = reach**2 if reach < 1 else None
        return cls(problem, n, mask.low >= 0, square, False)

    def _split(self, z: np.ndarray, unit: float) -> tuple[np.ndarray, np.ndarray]:
        """S with −diag δ as one matrix, and δ."""
        n, delta = self.n, np.zeros(self.n)
        added = np.zeros((n, n))
        if self.has_pairs:
            added[np.triu_indices(n, 1)] = unit / n * z[: n * (n - 1) // 2]
            added += added.T
        if self.square is not None:
            delta = unit * z[-n:]
            added[np.diag_indices(n)] -= delta
        return added, delta

    def value(
        self, kernel: np.ndarray, z: np.ndarray, unit: float, sharpness: float
    ) -> tuple[float, float, np.ndarray, np.ndarray]:
        """The proven bound; the smoothed one, and its gradient by kernel and by z.

        Parameters
        ----------
        kernel : ndarray (n_channels · n_steps,)
        z : ndarray
            Entries of S above its diagonal, then δ, in ``unit``; those of S in units/n.
        unit : float
        sharpness : float
            Of the smoothed eigenvalue, in units/λ.
        """
        problem, n = self.problem, self.n
        d = problem.gradient_at(kernel)
        G = self._matrix(d)
        added, delta = self._split(z, unit)
        whole = G.T @ G + added
        values, vectors = np.linalg.eigh(whole)
        price = 0.0 if self.square is None else self.square * float(delta.sum())
        weight = np.exp(sharpness / unit * (values - values[-1]))
        soft = values[-1] + unit / sharpness * np.log(weight.sum())
        weight /= weight.sum()
        curved = problem.eta * problem.spread(kernel)
        rest = 0.5 * float(kernel @ curved)
        off = _ROUNDING * n * float(np.abs(values).max())
        proven = rest + np.sqrt(max(values[-1] + off + price, 0.0)) + problem.rounding(d)
        size = np.sqrt(max(soft + price, 1e-300))
        smooth = rest + size
        share = 0.5 / size
        heavy = weight > _WEIGHT
        V, p = vectors[:, heavy], weight[heavy]
        B = V.reshape(problem.stimuli.n_channels, -1, V.shape[1]).transpose(1, 0, 2)
        atoms, _ = problem.kernel_of(2 * share * (G @ V) * p, B)
        by_kernel = curved - problem.eta * problem.spread(atoms)
        density = (V * p) @ V.T
        by_z = []
        if self.has_pairs:
            by_z.append(2 * share * unit / n * density[np.triu_indices(n, 1)])
        if self.square is not None:
            by_z.append(share * unit * (self.square - density.diagonal()))
        return proven, smooth, by_kernel, np.concatenate([np.zeros(0), *by_z])

    def _matrix(self, d: np.ndarray) -> np.ndarray:
        response = self.problem.system.response_sum(self.problem.by_channel(d))
        found = response.matrix()
        if found is not None:
            return np.asarray(found)
        n_channels = self.problem.stimuli.n_channels
        every = np.eye(self.n).reshape(n_channels, -1, self.n).transpose(1, 0, 2)
        return response.drive(every)

    def lowered(self, kernel: np.ndarray) -> float:
        """The lowest bound that is met by descent from a kernel."""
        root = metric_root(self.problem)
        if root is None:
            return np.inf
        metric = Metric(root, float(np.sqrt(self.problem.eta)))
        first = metric.coordinates(kernel)
        n_pairs = self.n * (self.n - 1) // 2 if self.has_pairs else 0
        n_delta = 0 if self.square is None else self.n
        point = np.concatenate([first, np.zeros(n_pairs + n_delta)])
        free = (None, None)
        limits = [free] * len(first) + [(0.0, None)] * n_pairs
        limits += [free if self.is_equal else (0.0, None)] * n_delta
        unit = float(np.linalg.norm(self._matrix(self.problem.gradient_at(kernel)), 2)) ** 2
        if unit == 0:
            return np.inf
        lowest = np.inf
        for sharpness in _SHARPNESS:

            def smoothed(x: np.ndarray, sharpness=sharpness) -> tuple[float, np.ndarray]:
                nonlocal lowest
                a = metric.kernel(x[: len(first)])
                found = self.value(a, x[len(first) :], unit, sharpness)
                lowest = min(lowest, found[0])
                slope = np.concatenate([metric.gradient(found[2]), found[3]])
                return found[1] / np.sqrt(unit), slope / np.sqrt(unit)

            options = {"maxfun": _EVALUATIONS, "maxcor": 15, "ftol": 1e-12, "gtol": 0.0}
            point = minimize(
                smoothed, point, jac=True, method="L-BFGS-B", bounds=limits, options=options
            ).x
        return float(lowest)
