"""What is to be computed: a function, what decides its result, and the result's file."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import PurePosixPath
from typing import Any

from ..._base.files import plain

_ZEROS = "0" * 16
#: A result's text holds this once; the store fills in two hashes, see `Store`.
SEAL = f"greenfold:{_ZEROS}:{_ZEROS}"


@dataclass(frozen=True)
class Job:
    """One result file, and how it is made.

    Attributes
    ----------
    path : str
        Where the result goes below the folder of results, with forward slashes.
    work : callable
        ``work(configuration, context)`` returns the text of the file, with `SEAL` in it.
        A function of a module, so that other processes and machines can be sent it. Its
        randomness must come from the configuration alone.
    configuration : dict
        All that decides the result, as JSON holds it: parameters, seeds, digests of data
        and code. A result that was made with another one is stale.
    context : dict
        What `work` needs besides, and what may change without changing the result, such
        as the folder where the data lie.
    weight : float
        Share in the work, for the estimate of the time left.
    title : str
        What the progress display calls it; by default its path.
    """

    path: str
    work: Callable[[Mapping[str, Any], Mapping[str, Any]], str]
    configuration: Mapping[str, Any]
    context: Mapping[str, Any] = field(default_factory=dict)
    weight: float = 1.0
    title: str = ""

    def __post_init__(self) -> None:
        parts = PurePosixPath(self.path).parts
        if not parts or self.path.startswith("/") or ".." in parts or "\\" in self.path:
            raise ValueError(
                f"`path` must stay below the folder of results; got {self.path!r}."
            )

    @cached_property
    def fingerprint(self) -> str:
        """Hash of the configuration, 16 hexadecimal digits."""
        shown = json.dumps(plain(dict(self.configuration)), sort_keys=True)
        return hashlib.sha256(shown.encode()).hexdigest()[:16]
