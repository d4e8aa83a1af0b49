"""The public surface, pinned: names, their parameters, and the options of every command.

A refactoring moves code behind these names. Where one of them changes, that is a decision:
record it, and look at the difference::

    python -m tests.test_surface
"""

from __future__ import annotations

import difflib
import enum
import importlib
import importlib.util
import inspect
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import greenfold

RECORD = Path(__file__).with_name("surface.txt")
COMMAND = "python -m tests.test_surface"
#: Modules of the reference that `greenfold` itself does not name.
DOCUMENTED = {
    "greenfold.apps.study",
    "greenfold.apps.sweep",
    "greenfold.devices.noise",
    "greenfold.estimators.margin",
    "greenfold.math.decisions",
    "greenfold.math.margins",
    "greenfold.math.sphere",
    "greenfold.networks.reservoir",
    "greenfold.networks.resting_state",
    "greenfold.networks.spectra",
    "greenfold.networks.weights",
}
#: Those that need an optional package, which not every environment has.
OPTIONAL = {
    "greenfold.cli": "typer",
    "greenfold.estimators.aeon": "aeon",
    "greenfold.estimators.sktime": "sktime",
    "greenfold.reservoirpy": "reservoirpy",
}


def modules() -> list[str]:
    """The package, its subpackages, the modules that it names, and those documented."""
    found = {"greenfold", *DOCUMENTED, *OPTIONAL}
    for one in pkgutil.walk_packages(greenfold.__path__, "greenfold."):
        inner = one.name.removeprefix("greenfold.")
        if inner in greenfold.__all__ or (one.ispkg and not inner.startswith("_")):
            found.add(one.name)
    return sorted(found)


def is_missing(name: str) -> bool:
    needed = OPTIONAL.get(name)
    return needed is not None and importlib.util.find_spec(needed) is None


def names_of(module: ModuleType) -> list[str]:
    """What a module says is public, else what it defines without an underscore."""
    if hasattr(module, "__all__"):
        return list(module.__all__)
    own = (
        name
        for name, value in vars(module).items()
        if getattr(value, "__module__", None) == module.__name__
    )
    return [name for name in own if not name.startswith("_")]


def parameters(value: Any) -> str:
    """A call as it is written, without annotations; empty where it is not ours."""
    if inspect.isclass(value) and not _is_made_by_us(value):
        return ""
    signature = inspect.signature(value)
    bare = [
        p.replace(annotation=inspect.Parameter.empty, default=_Shown.of(p.default))
        for p in signature.parameters.values()
    ]
    return str(signature.replace(parameters=bare, return_annotation=signature.empty))


def _is_made_by_us(cls: type) -> bool:
    """Whether it has a constructor of its own; that of an error or enum is Python's."""
    if getattr(cls, "_is_protocol", False) or issubclass(cls, enum.Enum):
        return False
    made = (vars(base).get(name) for base in ours(cls) for name in ("__init__", "__new__"))
    return any(one is not None for one in made)


def ours(cls: type) -> list[type]:
    return [base for base in cls.__mro__ if base.__module__.startswith("greenfold.")]


class _Shown:
    """A default value by its repr, without the address of an object."""

    def __init__(self, text: str) -> None:
        self.text = text

    @classmethod
    def of(cls, default: Any) -> Any:
        if default is inspect.Parameter.empty:
            return default
        return cls(re.sub(r" at 0x\w+", "", repr(default)))

    def __repr__(self) -> str:
        return self.text


def members(cls: type) -> Iterator[str]:
    """Public methods, with their parameters, and attributes that a class of ours has."""
    found: dict[str, Any] = {}
    for base in reversed(ours(cls)):
        found |= vars(base)
    for name, value in found.items():
        # scikit-learn adds methods for its routing of metadata, each version its own.
        if name.startswith("_") or "metadata" in type(value).__module__:
            continue
        known = getattr(cls, name)
        yield f".{name}{parameters(known) if callable(known) else ' (attribute)'}"


def names() -> Iterator[str]:
    """One line for every public name, and for every member of a class."""
    described: set[type] = set()  # most classes have two addresses; `greenfold` is first
    for path in modules():
        if is_missing(path):
            continue
        module = importlib.import_module(path)
        for name in names_of(module):
            value, full = getattr(module, name), f"{path}.{name}"
            if isinstance(value, ModuleType):
                yield f"{full} (module)"
                continue
            yield f"{full}{parameters(value) if callable(value) else ''}"
            if inspect.isclass(value) and value not in described:
                described.add(value)
                yield from (f"{full}{member}" for member in members(value))


def options(command: Any, path: str) -> Iterator[str]:
    """One line for every argument and option of a command and those below it."""
    for one in command.params:
        if one.param_type_name == "argument":
            yield f"$ {path} {one.name.upper()}"
        else:
            yield f"$ {path} {'/'.join([*one.opts, *one.secondary_opts])}"
    for name, below in getattr(command, "commands", {}).items():
        yield from options(below, f"{path} {name}")


def commands() -> Iterator[str]:
    if is_missing("greenfold.cli"):
        return
    import typer

    from greenfold.cli.app import app

    yield from options(typer.main.get_command(app), "greenfold")


def surface() -> list[str]:
    return sorted({*names(), *commands()})


def recorded() -> list[str]:
    return RECORD.read_text("utf-8").splitlines() if RECORD.exists() else []


def of_what_is_missing(line: str) -> bool:
    """Whether a recorded line is of a part that cannot be looked at here."""
    if line.startswith("$"):
        return is_missing("greenfold.cli")
    return any(is_missing(name) and line.startswith(f"{name}.") for name in OPTIONAL)


def difference() -> list[str]:
    before = [line for line in recorded() if not of_what_is_missing(line)]
    lines = list(difflib.unified_diff(before, surface(), lineterm="", n=0))
    return [line for line in lines[2:] if not line.startswith("@@")]


def test_the_surface_is_the_one_recorded():
    changed = difference()
    advice = f"a change of the public surface is a decision: run `{COMMAND}` to record it"
    assert not changed, "\n".join([advice, *changed])


def test_a_change_is_noticed(monkeypatch):
    monkeypatch.setattr(greenfold, "unfold", lambda reservoir, *, n_steps: None)
    assert "+greenfold.unfold(reservoir, *, n_steps)" in difference()


@pytest.mark.parametrize(
    "start",
    [
        "greenfold.Reservoir.random(",
        "greenfold.reservoirpy.solve_input(",
        "$ greenfold fit ",
    ],
)
def test_every_kind_of_line_is_recorded(start):
    assert any(line.startswith(start) for line in recorded())


if __name__ == "__main__":
    changed = difference()
    kept = [line for line in recorded() if of_what_is_missing(line)]
    RECORD.write_text("\n".join(sorted({*surface(), *kept})) + "\n", "utf-8")
    for line in changed:
        print(line)
