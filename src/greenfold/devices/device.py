"""Constraints of hardware: possible masks, driven inputs, read outputs and noise.

A `Device` checks its values when you create it, and their sizes when you use it with a
system.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from .._base import checks as check
from .._base.printing import Shown
from ..systems import LinearSystem, ResponseSum, System
from .noise import covariance

#: With more bits than this, a readout is as good as an unconstrained one.
_MAX_BITS = 8
#: Ratio of two levels beyond which rounding loses the smaller level.
_SPAN = 1e12
#: Entries of a unit vector are at most one, so a wider box adds nothing.
_FAR = 1e100
#: Levels by their number, if the number determines their sizes.
_FEW = {2: np.array([-1.0, 1.0]), 3: np.array([-1.0, 0.0, 1.0])}
_NOISES = ("input_noise", "state_noise", "readout_noise")


@dataclass(frozen=True, eq=False, repr=False)
class Device(Shown):
    """The constraints and the noise of a device; by default, it has neither.

    At most one of ``mask``, ``levels`` and ``box`` restricts the input projection u. The
    upper bound of an optimum still holds for all unit vectors, and `Projections.share` is
    the share of the bound that the mask reaches. Masks, bits and noise need a linear
    system.

    Parameters
    ----------
    mask : {"sign", "nonnegative"}, optional
        Allowed entries of u: ±1 for "sign", non-negative numbers for "nonnegative".
    levels : int or array_like, optional
        Number of symmetric levels of the mask, whose sizes are then optimised too; or the
        values of the levels, up to a common factor.
    box : (float, float), optional
        Range of the entries of the unit vector u.
    inputs, outputs : array_like of int or bool, optional
        Inputs that can be driven and outputs that can be read. The problem is solved on
        these alone, with its own bound; u and v are zero elsewhere.
    bits : int, optional
        Number of bits of the readout weights, including the sign; at most 8.
    input_noise, state_noise, readout_noise : float or array_like, optional
        Noise on the stimuli (n_channels · n_steps values), on the states at the readout
        (for noise inside a network, use `devices.noise.state_covariance`), and on the
        outputs when they are read. Each is one standard deviation, one per entry, or a
        covariance. κ and its bound include the noise; `Projections.noise_cost` lists its
        cost.

    Examples
    --------
    >>> from greenfold import Device, GaussianStimuli, Reservoir, optimize, unfold
    >>> network = unfold(Reservoir.random(12, rng=0), n_steps=6, dt=0.5)
    >>> stimuli = GaussianStimuli.random(6, strength=1.0, rng=1)
    >>> modulator = Device(mask="sign", readout_noise=0.01)
    >>> optimize(network, stimuli, device=modulator, rng=0).mask
    'sign'
    """

    mask: str | None = None
    levels: Any = None
    box: Any = None
    inputs: Any = None
    outputs: Any = None
    bits: int | None = None
    input_noise: Any = None
    state_noise: Any = None
    readout_noise: Any = None

    def __post_init__(self) -> None:
        given = [name for name in ("mask", "levels", "box") if self._has(name)]
        both = " and ".join(f"`{name}`" for name in given[:2])
        check.require(len(given) < 2, f"{both} both restrict the mask; pass only one.")
        known = self.mask in (None, "sign", "nonnegative")
        got = f"{self.mask!r} (see also `levels`, `box`, `inputs` and `outputs`)"
        check.must(known, "mask", "be 'sign' or 'nonnegative'", got)
        checks = {"levels": _levels, "box": _box, "bits": _bits}
        checks |= dict.fromkeys(("inputs", "outputs"), _indices)
        checks |= dict.fromkeys(_NOISES, _noise)
        for name, checked in checks.items():
            if self._has(name):
                object.__setattr__(self, name, checked(getattr(self, name), name))

    def _has(self, name: str) -> bool:
        return getattr(self, name) is not None

    def _facts(self) -> dict[str, Any]:
        names = (one.name for one in fields(self))
        return {name: getattr(self, name) for name in names if self._has(name)}

    @property
    def kind(self) -> str | None:
        """The kind of mask in words; None if there is no restriction."""
        if self.levels is not None:
            if isinstance(self.levels, int):
                return f"{self.levels} levels"
            shown = ", ".join(f"{value:g}" for value in self.levels[:6])
            return f"levels {shown}{', …' if len(self.levels) > 6 else ''}"
        if self.box is not None:
            return "box {:g} to {:g}".format(*self.box)
        return self.mask

    @property
    def values(self) -> np.ndarray | None:
        """Levels of the entries, up to a common factor, if they are known."""
        if self.mask == "sign":
            return _FEW[2]
        if self.levels is None or isinstance(self.levels, int):
            return _FEW.get(self.levels or 0)
        # Scale by a power of two, which is exact: the square of 1e200 would be infinite.
        return np.ldexp(self.levels, 1 - np.frexp(np.abs(self.levels).max())[1])

    @property
    def n_levels(self) -> int | None:
        """Number of levels whose sizes are optimised."""
        return self.levels if isinstance(self.levels, int) and self.levels > 3 else None

    @property
    def is_discrete(self) -> bool:
        """Whether the entries of a mask have levels instead of a range."""
        return self.mask == "sign" or self.levels is not None

    @property
    def limits(self) -> tuple[float, float]:
        """Range of the entries of the unit vector u."""
        if self.box is not None:
            low, high = self.box
            return max(low, -_FAR), min(high, _FAR)
        return (0.0 if self.mask == "nonnegative" else -np.inf), np.inf

    @property
    def has_noise(self) -> bool:
        """Whether there is any noise."""
        return any(self._has(name) for name in _NOISES)

    def with_any_mask(self) -> Device:
        """Return the same device without its restriction of u."""
        return replace(self, mask=None, levels=None, box=None)

    def part_of(self, system: System) -> Restricted | None:
        """Return the driven and read part of a system; None if it is the whole system."""
        if self.inputs is None and self.outputs is None:
            return None
        inputs = _within(self.inputs, "inputs", system.n_inputs)
        outputs = _within(self.outputs, "outputs", system.n_outputs)
        return Restricted(system, inputs, outputs)

    def match(self, n_entries: int) -> None:
        """Refuse a box that holds no unit vector with ``n_entries`` entries."""
        if self.box is None:
            return
        low, high = self.box
        reach = max(abs(low), abs(high))
        box, size = f"`box` = ({low:g}, {high:g})", f"{n_entries**-0.5:.3g}"
        if reach * n_entries**0.5 < 1:
            none = f"leaves no vector of unit norm with {n_entries} entries"
            raise ValueError(f"{box} {none}; one end must be at least {size} in size.")
        if max(low, 0.0, -high) ** 2 * n_entries > 1:
            every = f"makes every vector of {n_entries} entries longer than one"
            raise ValueError(f"{box} {every}; move it closer to zero.")

    def refuse_beyond_linear(self) -> None:
        """Refuse constraints that need a linear system."""
        only = "solved on linear systems only; solve the linear order"
        if self.has_noise:
            names = "`state_noise`, `input_noise` and `readout_noise`"
            raise ValueError(f"{names} are {only}, or draw noisy series.")
        if self.kind is not None or self.bits is not None:
            name = "bits" if self.kind is None else "mask"
            raise ValueError(f"`{name}` is {only}, and pass its `u` to this one.")

    def refuse_for_task(self) -> None:
        """Refuse constraints that a regression does not support."""
        free = self.kind is None and self.bits is None and not self.has_noise
        only = "which supports only `inputs` and `outputs`; for readout noise, set its"
        none = "`device` must have no mask, bits or noise for a RegressionTask"
        check.require(free, f"{none}, {only} `ridge`.")

    def noise(
        self, n_values: int, n_outputs: int, read: np.ndarray | None = None
    ) -> dict[str, np.ndarray]:
        """Return the covariances of the noise by name: "input", "state" and "readout".

        Stimuli have ``n_values`` = n_channels · n_steps values, and the system has
        ``n_outputs`` outputs; if ``read`` is given, only those outputs are read.
        """
        made = {}
        for name in _NOISES:
            value = getattr(self, name)
            if value is None:
                continue
            size = n_values if name == "input_noise" else n_outputs
            if value.ndim < 2 or len(value) != size:
                value = covariance(value, name, size)
            if read is not None and name != "input_noise":
                value = value[np.ix_(read, read)]
            made[name.removesuffix("_noise")] = value
        return made


def _levels(value: Any, name: str) -> int | np.ndarray:
    if np.ndim(value) == 0:
        return check.count(value, name, minimum=2)
    values = np.unique(check.host_array(value, name, ndim=(1,)))
    check.must(len(values) > 1, name, "hold at least two different values", len(values))
    size = np.abs(values[values != 0])
    span = f"be within a factor of {_SPAN:.0e} of each other"
    check.must(size.max() / _SPAN <= size.min(), name, span, f"{size.min():g} among others")
    values.flags.writeable = False
    return values


def _box(value: Any, name: str) -> tuple[float, float]:
    try:
        low, high = (float(end) for end in value)
    except (TypeError, ValueError):
        low, high = 0.0, 0.0
    check.must(low < high, name, "be (low, high) with low < high", repr(value))
    return low, high


def _bits(value: Any, name: str) -> int:
    bits = check.count(value, name)
    free = "a readout of more is as good as an unconstrained one: leave it out"
    check.must(bits <= _MAX_BITS, name, f"be 1 to {_MAX_BITS} ({free})", bits)
    return bits


def _noise(value: Any, name: str) -> np.ndarray:
    array = check.host_array(value, name, ndim=(0, 1, 2))
    own = covariance(array, name, len(array) if array.ndim else 1)
    array = own if array.ndim == 2 else array
    array.flags.writeable = False
    return array


def _indices(value: Any, name: str) -> np.ndarray:
    """Return indices or truth values, and refuse anything else."""
    array = np.array(value)
    listed = np.flatnonzero(array) if array.dtype == bool else array
    fits = array.ndim == 1 and listed.dtype.kind in "iu" and listed.size
    got = check.shown(value) if np.ndim(value) == 0 else f"shape {array.shape}"
    check.must(fits, name, "be indices, or truth values, for at least one entry", got)
    if len(np.unique(listed)) < len(listed):
        raise ValueError(f"`{name}` names an index twice; name each once.")
    array.flags.writeable = False
    return array


def _within(array: np.ndarray | None, name: str, size: int) -> np.ndarray | None:
    """Return indices into a system of ``size``, or None for all of them."""
    if array is None:
        return None
    if array.dtype == bool:
        got = f"shape {array.shape}"
        check.must(array.shape == (size,), name, f"have {size} truth values", got)
        return np.flatnonzero(array)
    outside = next((one for one in array.tolist() if not 0 <= one < size), None)
    check.must(outside is None, name, f"lie between 0 and {size - 1}", outside)
    return array


class Restricted:
    """A system restricted to some inputs and outputs; None means all of them."""

    def __init__(self, system: Any, inputs: Any = None, outputs: Any = None) -> None:
        self.system: Any = system
        self.inputs = np.arange(system.n_inputs) if inputs is None else inputs
        self.outputs = np.arange(system.n_outputs) if outputs is None else outputs
        self.n_inputs, self.n_outputs = len(self.inputs), len(self.outputs)
        self.n_steps: int = system.n_steps

    @property
    def is_linear(self) -> bool:
        """Whether the whole system is linear."""
        return self.system.is_linear

    @property
    def degree(self) -> int | None:
        """Degree of the whole system."""
        return self.system.degree

    @property
    def maps(self) -> LinearSystem:
        """The linear system on the subset."""
        return Restricted(self.system.maps, self.inputs, self.outputs)

    def whole_input(self, u: np.ndarray) -> np.ndarray:
        """Extend an input projection with zeros for the inputs that are not driven."""
        made = np.zeros((self.system.n_inputs, *np.shape(u)[1:]))
        made[self.inputs] = u
        return made

    def whole_readout(self, v: np.ndarray) -> np.ndarray:
        """Extend a readout with zeros for the outputs that are not read."""
        made = np.zeros((self.system.n_outputs, *np.shape(v)[1:]))
        made[self.outputs] = v
        return made

    def own_input(self, u: Any, n_channels: int) -> np.ndarray:
        """Restrict a u of the whole system to the driven inputs."""
        projection = check.input_projection(u, self.system.n_inputs, n_channels)
        outside = np.delete(projection, self.inputs, axis=0)
        why = "`u` drives inputs that `inputs` leaves out; set them to zero."
        check.require(not outside.any(), why)
        return projection[self.inputs]

    def input_response(self, u: Any) -> np.ndarray:
        """Return the response Rᵤ of the outputs that are read."""
        return self.system.input_response(self.whole_input(u))[:, self.outputs]

    def readout_response(self, v: Any) -> np.ndarray:
        """Return the response L_v to the inputs that are driven."""
        return self.system.readout_response(self.whole_readout(v))[:, self.inputs]

    def response_sum(self, d: np.ndarray) -> ResponseSum:
        """Return the response sum G(d) of driven inputs and read outputs."""
        return _RestrictedSum(self, self.system.response_sum(d), len(d))

    def states(self, X: Any, u: Any) -> Any:
        """Return the states of the outputs that are read."""
        return self.system.states(X, self.whole_input(u))[:, self.outputs]

    def pullback(self, X: Any, u: Any, cotangent: Any, v: Any = None) -> Any:
        """Return the gradient with respect to the projections of the subset."""
        whole = self.whole_input(u)
        if v is not None:
            u_bar, v_bar = self.system.pullback(X, whole, cotangent, self.whole_readout(v))
            return u_bar[self.inputs], v_bar[self.outputs]
        bar = self.whole_readout(np.transpose(cotangent)).T
        return self.system.pullback(X, whole, bar)[self.inputs]


@dataclass(frozen=True, eq=False)
class _RestrictedSum:
    """A `ResponseSum` of the driven inputs and the read outputs."""

    part: Restricted
    whole: ResponseSum
    n_channels: int

    def matrix(self) -> np.ndarray | None:
        made = self.whole.matrix()
        if made is None:
            return None
        by_channel = made.reshape(len(made), self.n_channels, -1)
        picked = by_channel[self.part.outputs][:, :, self.part.inputs]
        return np.ascontiguousarray(picked).reshape(self.part.n_outputs, -1)

    def drive(self, u: np.ndarray) -> np.ndarray:
        return self.whole.drive(self.part.whole_input(u))[self.part.outputs]

    def pull(self, v: np.ndarray) -> np.ndarray:
        return self.whole.pull(self.part.whole_readout(v))[self.part.inputs]
