"""A network as JSON and arrays, and back; what both kinds of network share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .gains import KINDS, Gain


def pack_network(
    network: Any, parts: tuple[str, ...], arrays: dict[str, np.ndarray], name: str
) -> dict[str, Any]:
    """Weights, gain and the named parts of a network.

    Parameters
    ----------
    network : object
        With ``weights``, ``gain`` and the parts: numbers, truth values, arrays, or None
        for what it does not have.
    parts : tuple of str
    arrays : dict
        Receives the arrays, under names that begin with ``name``.
    name : str

    Returns
    -------
    dict
        For JSON, with the names of the arrays in it.
    """
    gain = network.gain
    if gain.kind not in KINDS:
        raise TypeError(
            f"the gain {gain.name} is made of code and can not be saved; others can: "
            f"{', '.join(KINDS)}."
        )
    described = {"gain": gain.kind, "gain_parameters": dict(gain.parameters)}
    for part in ("weights", *parts):
        value = getattr(network, part)
        if isinstance(value, np.ndarray):
            described[part] = f"{name}_{part}"
            arrays[f"{name}_{part}"] = value
        elif value is not None:
            described[part] = value
    return described


def unpack_network(
    described: Mapping[str, Any],
    parts: tuple[str, ...],
    arrays: Mapping[str, np.ndarray],
) -> dict[str, Any]:
    """What `pack_network` described, as arguments of the network's class."""
    given = {name: described[name] for name in ("weights", *parts) if name in described}
    made = {k: arrays[v] if isinstance(v, str) else v for k, v in given.items()}
    gain = Gain.of_kind(described["gain"], described["gain_parameters"])
    return {**made, "gain": gain}
