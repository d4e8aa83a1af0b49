"""Constraints of hardware: possible masks, driven inputs, read outputs and noise.

A `Device` checks its values when you create it, and their sizes when you use it with a
system.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from .._base import checks as check
from .._base.arrays import AnyArray, Array, to_host
from .._base.printing import Shown
from ..networks.matrices import dense
from ..systems import LinearSystem, ResponseSum, Sized, System
from .drive import Encoding
from .masks import Mask
from .noise import covariance

_MAX_BITS = 8
_AS_GOOD = " (a readout of more is as good as an unconstrained one: leave it out)"
#: Largest number of bits of a converter.
_MAX_DRIVE_BITS = 24
_NOISES = ("input_noise", "state_noise", "readout_noise")


@dataclass(frozen=True, eq=False, repr=False)
class Device(Shown):
    """The constraints and the noise of a device; by default, it has neither.

    The upper bound of an optimum still holds for all unit vectors if ``mask`` restricts u,
    and `Projections.share` is the share of the bound that the mask reaches. Masks, bits and
    noise need a linear system.

    Parameters
    ----------
    mask : Mask or {"sign", "nonnegative"}, optional
        Restriction of the entries of u: `Signs` (±1), `Levels`, `Box` (a range),
        `NonNegative` or `AtMost` (few driven inputs). A name stands for the default object.
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
    drive_range : (float, float), optional
        Smallest and largest drive of an input, such as (0, 1) for the power of a laser.
        Any u fits into it with an offset and a gain, which `encode` returns.
    drive_bits : int, optional
        Number of bits of the converter of the drive; at most 24.

    Examples
    --------
    >>> from greenfold import Device, GaussianStimuli, Reservoir, optimize, unfold
    >>> network = unfold(Reservoir.random(12, rng=0), n_steps=6, dt=0.5)
    >>> stimuli = GaussianStimuli.random(6, strength=1.0, rng=1)
    >>> modulator = Device(mask="sign", readout_noise=0.01)
    >>> optimize(network, stimuli, device=modulator, rng=0).mask
    'sign'
    """

    mask: Mask | None = None
    inputs: np.ndarray | None = None
    outputs: np.ndarray | None = None
    bits: int | None = None
    input_noise: np.ndarray | None = None
    state_noise: np.ndarray | None = None
    readout_noise: np.ndarray | None = None
    drive_range: np.ndarray | None = None
    drive_bits: int | None = None

    if TYPE_CHECKING:  # what a user may pass is more than what is kept

        def __init__(
            self,
            mask: Mask | str | None = None,
            inputs: ArrayLike | None = None,
            outputs: ArrayLike | None = None,
            bits: int | None = None,
            input_noise: ArrayLike | None = None,
            state_noise: ArrayLike | None = None,
            readout_noise: ArrayLike | None = None,
            drive_range: ArrayLike | None = None,
            drive_bits: int | None = None,
        ) -> None: ...

    def __post_init__(self) -> None:
        checks: dict[str, Callable[[Any, str], Any]] = {
            "mask": lambda mask, name: Mask.of(mask),
            "bits": partial(_bits, most=_MAX_BITS, why=_AS_GOOD),
            "drive_range": _range,
            "drive_bits": partial(_bits, most=_MAX_DRIVE_BITS),
            **dict.fromkeys(("inputs", "outputs"), _indices),
            **dict.fromkeys(_NOISES, _noise),
        }
        for name, checked in checks.items():
            if self._has(name):
                object.__setattr__(self, name, checked(getattr(self, name), name))

    def _has(self, name: str) -> bool:
        return getattr(self, name) is not None

    def _facts(self) -> dict[str, Any]:
        names = (one.name for one in fields(self))
        return {name: getattr(self, name) for name in names if self._has(name)}

    @property
    def has_noise(self) -> bool:
        """Whether there is any noise."""
        return any(self._has(name) for name in _NOISES)

    def encode(self, u: ArrayLike, X: ArrayLike) -> Encoding:
        """Return the offset and the gain with which series fit into ``drive_range``.

        Parameters
        ----------
        u : array_like (n_inputs,) or (n_inputs, n_channels)
            The mask, of any norm.
        X : array_like (n_cases, n_steps) or (n_cases, n_channels, n_steps)
            Series that must fit, as `SampleStimuli.transform` returns them.

        Examples
        --------
        >>> import numpy as np
        >>> from greenfold import Device
        >>> laser = Device(drive_range=(0, 1), drive_bits=8)
        >>> encoded = laser.encode([1.0, -0.5], np.array([[-1.0, 0.0, 3.0]]))
        >>> encoded.gain, encoded.offset
        (0.25, array([0.25 , 0.625]))
        >>> encoded.drive([[-1.0, 0.0, 3.0]])[0].round(3)
        array([[0.   , 0.749],
               [0.251, 0.624],
               [1.   , 0.251]])
        """
        if self.drive_range is None:
            raise ValueError("`drive_range` must be set to encode series; got None.")
        series = check.host_array(X, "X", ndim=(2, 3))
        series = series[:, None] if series.ndim == 2 else series
        mask = check.host_array(u, "u", ndim=(1, 2))
        mask = mask[:, None] if mask.ndim == 1 else mask
        fits = mask.shape[1] == series.shape[1]
        wanted = f"have one column for each of the {series.shape[1]} channels of `X`"
        check.must(fits, "u", wanted, f"shape {mask.shape}")
        return Encoding.of(mask, series, self.drive_range, self.drive_bits)

    def part_of(self, system: System) -> Restricted | None:
        """Return the driven and read part of a system; None if it is the whole system."""
        if self.inputs is None and self.outputs is None:
            return None
        inputs = _within(self.inputs, "inputs", system.n_inputs)
        outputs = _within(self.outputs, "outputs", system.n_outputs)
        return Restricted(system, inputs, outputs)

    def refuse_beyond_linear(self) -> None:
        """Refuse constraints that need a linear system."""
        only = "solved on linear systems only; solve the linear order"
        if self.has_noise:
            names = "`state_noise`, `input_noise` and `readout_noise`"
            raise ValueError(f"{names} are {only}, or draw noisy series.")
        if self.mask is not None or self.bits is not None:
            name = "bits" if self.mask is None else "mask"
            raise ValueError(f"`{name}` is {only}, and pass its `u` to this one.")

    def refuse_for_task(self, *, masks: bool) -> None:
        """Refuse constraints that a regression does not support."""
        none = "`device` must have no bits or noise for a RegressionTask"
        free = self.bits is None and not self.has_noise
        check.require(free, f"{none}; for readout noise, set its `ridge`.")
        none = "`device` must have no mask for a SequenceTask; solve a RegressionTask"
        check.require(masks or self.mask is None, f"{none}.")

    def noise(
        self, n_values: int, n_outputs: int, read: np.ndarray | None = None
    ) -> dict[str, Any]:
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
            if name == "input_noise":
                value = dense(value, "noise on the stimuli", "leave it out")
            elif read is not None:
                value = value[read][:, read]
            made[name.removesuffix("_noise")] = value
        return made


def _bits(value: Any, name: str, most: int, why: str = "") -> int:
    bits = check.count(value, name)
    check.must(bits <= most, name, f"be 1 to {most}{why}", bits)
    return bits


def _range(value: Any, name: str) -> np.ndarray:
    array = check.host_array(value, name, ndim=(1,))
    rises = len(array) == 2 and array[0] < array[1]
    check.must(rises, name, "be two rising numbers, such as (0, 1)", check.shown(value))
    array.flags.writeable = False
    return array


def _noise(value: Any, name: str) -> np.ndarray:
    array = check.host_array(value, name, ndim=(0, 1, 2))
    own = covariance(array, name, len(array) if array.ndim else 1)
    array: np.ndarray = own if array.ndim == 2 else array
    array.flags.writeable = False
    return array


def _indices(value: Any, name: str) -> np.ndarray:
    """Return indices or truth values, and refuse anything else."""
    array = np.array(value)
    listed = np.flatnonzero(array) if array.dtype == bool else array
    fits = array.ndim == 1 and listed.dtype.kind in "iu" and listed.size
    got = check.shown(value) if np.ndim(value) == 0 else f"shape {array.shape}"
    if array.dtype == bool and not listed.size:
        got = "no true value"
    elif array.dtype.kind in "US":
        got += "; for cells of a connectome, pass np.isin(connectome.names, [...])"
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


Whole = TypeVar("Whole", bound=Sized)


class _Part(Generic[Whole]):
    """Some inputs and outputs of a system; None means all of them."""

    def __init__(
        self,
        system: Whole,
        inputs: np.ndarray | None = None,
        outputs: np.ndarray | None = None,
    ) -> None:
        self.system, self.n_steps = system, system.n_steps
        self.inputs = np.arange(system.n_inputs) if inputs is None else inputs
        self.outputs = np.arange(system.n_outputs) if outputs is None else outputs
        self.n_inputs, self.n_outputs = len(self.inputs), len(self.outputs)

    def whole_input(self, u: ArrayLike) -> np.ndarray:
        """Extend an input projection with zeros for the inputs that are not driven."""
        made = np.zeros((self.system.n_inputs, *np.shape(u)[1:]))
        made[self.inputs] = u
        return made

    def whole_readout(self, v: ArrayLike) -> np.ndarray:
        """Extend a readout with zeros for the outputs that are not read."""
        made = np.zeros((self.system.n_outputs, *np.shape(v)[1:]))
        made[self.outputs] = v
        return made


class _RestrictedMaps(_Part[LinearSystem], LinearSystem):
    """The maps of a system restricted to some inputs and outputs."""

    def input_response(self, u: np.ndarray) -> np.ndarray:
        """Return the response Rᵤ of the outputs that are read."""
        return self.system.input_response(self.whole_input(u))[:, self.outputs]

    def readout_response(self, v: np.ndarray) -> np.ndarray:
        """Return the response L_v to the inputs that are driven."""
        return self.system.readout_response(self.whole_readout(v))[:, self.inputs]

    def reduced(self, v: np.ndarray, u: np.ndarray) -> np.ndarray:
        """Return vᵀ G_n u of driven inputs and read outputs."""
        return self.system.reduced(self.whole_readout(v), self.whole_input(u))

    @property
    def n_products(self) -> int | None:
        """Number of products of the whole system."""
        return self.system.n_products

    def beside(self, series: Array) -> LinearSystem:
        """Return the same part of the system, computed beside the series."""
        return _RestrictedMaps(self.system.beside(series), self.inputs, self.outputs)

    def response_sum(self, d: np.ndarray) -> ResponseSum:
        """Return the response sum G(d) of driven inputs and read outputs."""
        return _RestrictedSum(self, self.system.response_sum(d), len(d))


class Restricted(_Part[System], System):
    """A system restricted to some inputs and outputs; None means all of them."""

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
        return _RestrictedMaps(self.system.maps, self.inputs, self.outputs)

    def own_input(self, u: ArrayLike, n_channels: int) -> np.ndarray:
        """Restrict a u of the whole system to the driven inputs."""
        projection = check.input_projection(u, self.system.n_inputs, n_channels)
        outside = np.delete(projection, self.inputs, axis=0)
        why = "`u` drives inputs that `inputs` leaves out; set them to zero."
        check.require(not outside.any(), why)
        return projection[self.inputs]

    def states(self, X: AnyArray, u: ArrayLike) -> Any:
        """Return the states of the outputs that are read."""
        return self.system.states(X, self.whole_input(u))[:, self.outputs]

    def pullback(
        self, X: AnyArray, u: ArrayLike, cotangent: Array, v: ArrayLike | None = None
    ) -> Any:
        """Return the gradient with respect to the projections of the subset."""
        whole = self.whole_input(u)
        if v is not None:
            u_bar, v_bar = self.system.pullback(X, whole, cotangent, self.whole_readout(v))
            return u_bar[self.inputs], v_bar[self.outputs]
        bar = self.whole_readout(to_host(cotangent).T).T
        return self.system.pullback(X, whole, bar)[self.inputs]


@dataclass(frozen=True, eq=False)
class _RestrictedSum:
    """A `ResponseSum` of the driven inputs and the read outputs."""

    part: _Part[Any]
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
