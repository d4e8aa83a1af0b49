"""What hardware can do: the masks it can have, what it drives and reads, its noise.

An object composes where options would multiply: `optimize`, `mask_bound`,
`margin_interval` and `study_mask` take the same `Device`, which was checked when it was
made. What it can not know alone is checked where it meets a system: sizes.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from .._base import checks as check
from .._base.printing import Shown
from ..systems import System
from .noise import covariance
from .restricted import Restricted

#: Bits of a readout beyond which it is as good as a free one.
_MAX_BITS = 8
_SIGNS = np.array([-1.0, 1.0])
_NOISES = ("input_noise", "state_noise", "readout_noise")


@dataclass(frozen=True, eq=False, repr=False)
class Device(Shown):
    """What a device can do. Without an argument: everything, without noise.

    At most one of ``mask``, ``levels`` and ``box`` says which input projections it can
    have. The upper bound of an optimum stays that of all unit vectors, and
    `Projections.share` says how much of it the mask reaches. Masks, bits and noise are
    solved on linear systems.

    Parameters
    ----------
    mask : {"sign", "nonnegative"}, optional
        What the device can have as u: entries ±1, or none below zero.
    levels : int or array_like, optional
        A mask of so many levels, symmetric, whose sizes are solved too; or of given
        values, up to a common factor.
    box : (float, float), optional
        A mask with entries of the unit vector u in this range.
    inputs, outputs : array_like of int or bool, optional
        Inputs that can be driven and outputs that can be read. The problem is solved on
        them, with its own bound; u and v are zero elsewhere.
    bits : int, optional
        Bits of the readout's weights, sign included, at most 8.
    input_noise, state_noise, readout_noise : float or array_like, optional
        Each as one standard deviation, one for each entry, or a covariance: on the
        stimuli (n_channels · n_steps values), on the states at the readout (of noise
        inside a network, `devices.noise.state_covariance`), and on the outputs as they
        are read. κ and its bound are those under the noise; `Projections.noise_cost`
        says what each costs.

    Attributes
    ----------
    kind : str or None
        The kind of mask in words, as `Projections.mask` says it; None for a free one.
    values : ndarray or None
        Levels of the entries, up to a common factor, where they are known.
    n_levels : int or None
        Number of levels whose sizes are to be found.
    limits : (float, float)
        Range of the entries of the unit vector u.

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
        if len(given) > 1:
            raise ValueError(
                f"`{given[0]}` and `{given[1]}` each say what the mask may be; give one."
            )
        if self.mask not in (None, "sign", "nonnegative"):
            raise ValueError(
                f"`mask` must be 'sign' or 'nonnegative'; got {self.mask!r}. For others "
                "give `levels`, `box`, `inputs` or `outputs`."
            )
        checks = {"levels": _levels, "box": _box, "bits": _bits}
        checks |= dict.fromkeys(("inputs", "outputs"), _indices)
        checks |= dict.fromkeys(_NOISES, _noise)
        for name, checked in checks.items():
            if self._has(name):
                object.__setattr__(self, name, checked(getattr(self, name), name))

    def _has(self, name: str) -> bool:
        return getattr(self, name) is not None

    def _facts(self) -> dict[str, Any]:
        return {
            one.name: getattr(self, one.name) for one in fields(self) if self._has(one.name)
        }

    @property
    def kind(self) -> str | None:
        """The kind of mask in words; None for a free one."""
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
        """Levels of the entries, up to a common factor, where they are known."""
        if self.mask == "sign" or (isinstance(self.levels, int) and self.levels == 2):
            return _SIGNS
        return None if isinstance(self.levels, int) else self.levels

    @property
    def n_levels(self) -> int | None:
        """Number of levels whose sizes are to be found."""
        return self.levels if isinstance(self.levels, int) and self.levels > 2 else None

    @property
    def is_discrete(self) -> bool:
        """Whether entries of a mask have levels, not a range."""
        return self.mask == "sign" or self.levels is not None

    @property
    def limits(self) -> tuple[float, float]:
        """Range of the entries of the unit vector u."""
        if self.box is not None:
            return self.box
        return (0.0 if self.mask == "nonnegative" else -np.inf), np.inf

    @property
    def has_noise(self) -> bool:
        """Whether there is any noise."""
        return any(self._has(name) for name in _NOISES)

    def with_any_mask(self) -> Device:
        """The same device, were it free to have any u."""
        return replace(self, mask=None, levels=None, box=None)

    def part_of(self, system: System) -> Restricted | None:
        """What is driven and read of a system; None where all of it is."""
        if self.inputs is None and self.outputs is None:
            return None
        return Restricted(
            system,
            _within(self.inputs, "inputs", system.n_inputs),
            _within(self.outputs, "outputs", system.n_outputs),
        )

    def match(self, n_entries: int) -> None:
        """Refuse a box in which no unit vector of so many entries lies."""
        if self.box is None:
            return
        low, high = self.box
        reach = max(abs(low), abs(high))
        if reach**2 * n_entries < 1:
            raise ValueError(
                f"`box` = ({low:g}, {high:g}) leaves no vector of unit norm with "
                f"{n_entries} entries; one end must be at least {n_entries**-0.5:.3g} in "
                "size."
            )
        if max(low, 0.0, -high) ** 2 * n_entries > 1:
            raise ValueError(
                f"`box` = ({low:g}, {high:g}) makes every vector of {n_entries} entries "
                "longer than one; bring it nearer to zero."
            )

    def refuse_beyond_linear(self) -> None:
        """Refuse what is solved on linear systems only."""
        if self.has_noise:
            raise ValueError(
                "`state_noise`, `input_noise` and `readout_noise` are solved on linear "
                "systems only; solve the linear order, or draw noisy series."
            )
        if self.kind is not None or self.bits is not None:
            raise ValueError(
                f"`{'bits' if self.kind is None else 'mask'}` is solved on linear systems "
                "only; solve the linear order, and give its `u` to this one."
            )

    def refuse_for_task(self) -> None:
        """Refuse what a regression does not take."""
        if self.kind is not None or self.bits is not None or self.has_noise:
            raise ValueError(
                "`device` must have no mask, bits or noise for a RegressionTask, of which "
                "only inputs and outputs can be chosen; noise on what is read is its "
                "`ridge`."
            )

    def noise(
        self, n_values: int, n_outputs: int, read: np.ndarray | None = None
    ) -> dict[str, np.ndarray]:
        """Covariances of the noise there is, by "input", "state" and "readout".

        Parameters
        ----------
        n_values : int
            Values of one stimulus: n_channels · n_steps.
        n_outputs : int
            Of the whole system.
        read : ndarray of int, optional
            Outputs that are read, to which the covariances of theirs are cut.
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
    if len(values) < 2:
        raise ValueError(f"`{name}` must hold at least two different values.")
    values.flags.writeable = False
    return values


def _box(value: Any, name: str) -> tuple[float, float]:
    try:
        low, high = (float(end) for end in value)
    except (TypeError, ValueError):
        raise ValueError(f"`{name}` must be (low, high); got {value!r}.") from None
    if not low < high:
        raise ValueError(f"`{name}` must be (low, high) with low < high; got {value!r}.")
    return low, high


def _bits(value: Any, name: str) -> int:
    bits = check.count(value, name)
    if bits > _MAX_BITS:
        raise ValueError(
            f"`{name}` must be at most {_MAX_BITS}; got {bits}: leave it out, a readout "
            "of so many bits is as good as a free one."
        )
    return bits


def _noise(value: Any, name: str) -> np.ndarray:
    array = check.host_array(value, name, ndim=(0, 1, 2))
    own = covariance(array, name, len(array) if array.ndim else 1)
    array = own if array.ndim == 2 else array
    array.flags.writeable = False
    return array


def _indices(value: Any, name: str) -> np.ndarray:
    """Indices that name nothing twice, or truth values."""
    array = np.array(value)
    listed = np.flatnonzero(array) if array.dtype == bool else array
    if array.ndim != 1 or listed.dtype.kind not in "iu" or not listed.size:
        raise ValueError(
            f"`{name}` must be indices, or truth values, of at least one; got "
            f"{check.shown(value) if np.ndim(value) == 0 else f'shape {array.shape}'}."
        )
    if len(np.unique(listed)) < len(listed):
        raise ValueError(f"`{name}` names an index twice.")
    array.flags.writeable = False
    return array


def _within(array: np.ndarray | None, name: str, size: int) -> np.ndarray | None:
    """Indices of a system with so many; None for all."""
    if array is None:
        return None
    if array.dtype == bool:
        if array.shape != (size,):
            raise ValueError(
                f"`{name}` must have {size} truth values; got shape {array.shape}."
            )
        return np.flatnonzero(array)
    outside = [int(end) for end in (array.min(), array.max()) if not 0 <= end < size]
    if outside:
        raise ValueError(f"`{name}` must lie between 0 and {size - 1}; got {outside[0]}.")
    return array
