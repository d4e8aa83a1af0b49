"""Errors that know which arguments their message names.

The command line shows its options in place of these arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True)
class Argument:
    """An argument in a message: its name, or the advice to pass it a value."""

    name: str
    value: object = None

    def __str__(self) -> str:
        return f"`{self.name}`" if self.value is None else f"{self.name}={self.value!r}"


#: A part of a message. A caller without an argument for one in a tuple omits the tuple.
Part: TypeAlias = str | Argument | tuple[str | Argument, ...]
#: The advice to accept a network whose modes grow.
ALLOW: Part = ", or pass ", Argument("allow_unstable", True)


class Refusal(ValueError):
    """An error, given as the parts of its message."""

    @property
    def _parts(self) -> tuple[Part, ...]:
        return self.args

    def __str__(self) -> str:
        return told(self, str)


class ArgumentError(Refusal):
    """A wrong argument: "`name` must ``wanted``; got ``got``.", or without ``got``."""

    def __init__(self, name: str, wanted: str, got: object = None) -> None:
        self.name, self.wanted, self.got = name, wanted, None if got is None else str(got)
        super().__init__(name, wanted, self.got)

    @property
    def _parts(self) -> tuple[Part, ...]:
        got = "" if self.got is None else f"; got {self.got}"
        return Argument(self.name), f" must {self.wanted}{got}."


class ArgumentTypeError(ArgumentError, TypeError):
    """An argument of a wrong type."""


class ArgumentMemoryError(ArgumentError, MemoryError):
    """An argument that would need too much memory."""


class SeriesError(ValueError):
    """A wrong series: "``before`` series at index ``index````after``"."""

    def __init__(self, before: str, index: int, after: str = ".") -> None:
        self.before, self.index, self.after = before, index, after
        super().__init__(before, index, after)

    def __str__(self) -> str:
        return f"{self.before} series at index {self.index}{self.after}"

    def counted_from(self, first: int) -> SeriesError:
        """Return the error for a series of a chunk that starts at series ``first``."""
        return SeriesError(self.before, first + self.index, self.after)


def told(error: Refusal, call: Callable[[Argument], str | None]) -> str:
    """Return the message of an error; ``call`` renames an argument, or returns None."""

    def text(part: Part) -> str:
        if isinstance(part, Argument):
            return call(part) or str(part)
        if isinstance(part, str):
            return part
        names = [one if isinstance(one, str) else call(one) for one in part]
        return "" if None in names else "".join(map(str, names))

    return "".join(map(text, error._parts))


def listed(names: Iterable[object], most: int = 8) -> str:
    """Return names separated by commas, with … in place of those beyond ``most``."""
    shown = list(map(str, names))
    return ", ".join([*shown[:most], *["…"] * (len(shown) > most)])


def sentence(error: object) -> str:
    """Return the message of an error as one line that ends like a sentence, or ""."""
    text = " ".join(str(error).split())
    return text if not text or text.endswith((".", "!", "?")) else f"{text}."
