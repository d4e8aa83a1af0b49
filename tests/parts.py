"""Optional parts: which there are, what installs them, and which code needs them.

The plain environment is that of `make test`: the library with the group `dev` of
pyproject.toml. Whatever else a test imports is an optional part, and the test says so with
``@pytest.mark.needs("torch")``; `conftest` skips it where the part is missing.

``python -m tests.parts``, a step of `make check`, names the imports that nothing guards. It
reads the files and imports none of them, so it finds them where every part is installed.
"""

from __future__ import annotations

import ast
import doctest
import functools
import importlib.util
import os
import re
import shutil
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src"
TESTS = ROOT / "tests"

#: Names by which distributions are imported, where they are not their own.
IMPORTED_AS = {
    "nest-simulator": "nest",
    "pytest-xdist": "xdist",
    "scikit-learn": "sklearn",
}
#: Packages that come with another one.
BROUGHT_BY = {"dask": "distributed", "numba": "aeon"}
CHROMIUM = ("chromium", "chromium-browser", "google-chrome", "chrome")
#: What no package installs, with what to do about it.
OTHERS = {
    "chromium": "install Chromium",
    "data": "set GREENFOLD_DATA to a folder of real data",
}


# -- What pyproject.toml names -------------------------------------------------------------


@functools.cache
def _project() -> tuple[list[str], dict[str, list[str]], dict[str, list]]:
    """Dependencies, extras and groups."""
    content = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    project = content["project"]
    extras = project["optional-dependencies"]
    return project["dependencies"], extras, content["dependency-groups"]


def _packages(entries: list) -> set[str]:
    """Import names of requirements, those of extras and groups in them included."""
    _, extras, groups = _project()
    found = set()
    for entry in entries:
        if isinstance(entry, dict):
            found |= _packages(groups[entry["include-group"]])
            continue
        name, inner = re.findall(r"^([\w.-]+)(?:\[([\w,\s-]+)\])?", entry)[0]
        if name == "greenfold":
            found |= {p for one in inner.split(",") for p in _packages(extras[one.strip()])}
        else:
            found.add(IMPORTED_AS.get(name, name.replace("-", "_")))
    return found


@functools.cache
def optional() -> set[str]:
    """Packages that some extra or group installs beyond the plain environment."""
    dependencies, extras, groups = _project()
    every = [entry for entries in (*extras.values(), *groups.values()) for entry in entries]
    plain = _packages([*dependencies, *groups["dev"]])
    return (_packages(every) | BROUGHT_BY.keys()) - plain


@functools.cache
def extra_of(package: str) -> str | None:
    """The smallest extra that installs a package."""
    _, extras, _ = _project()
    found = [name for name in extras if package in _packages(extras[name])]
    smallest = min(found, key=lambda name: len(_packages(extras[name])), default=None)
    return smallest or (extra_of(BROUGHT_BY[package]) if package in BROUGHT_BY else None)


# -- What this machine has -----------------------------------------------------------------


@functools.cache
def is_missing(part: str) -> bool:
    """Whether a package, Chromium ("chromium") or real data ("data") is not here."""
    if part == "chromium":
        return not any(map(shutil.which, CHROMIUM))
    if part == "data":
        return not os.environ.get("GREENFOLD_DATA")
    return importlib.util.find_spec(part.partition(".")[0]) is None


def reason(part: str) -> str:
    """Why a test is skipped, and what would run it."""
    extra = extra_of(part)
    if part in OTHERS:
        cure = OTHERS[part]
    elif extra:
        cure = f"pip install 'greenfold[{extra}]'"
    else:
        cure = "make heavy" if part in optional() else f"pip install {part}"
    return f"needs {part}: {cure}"


def summary(reasons: list[str]) -> str:
    """One line for all the tests that were skipped for these reasons."""
    found = [re.match(r"needs ([\w.]+): ", one) for one in reasons]
    parts = [match[1] for match in found if match]
    if not parts:
        return ""
    packages = sorted(set(parts) - OTHERS.keys())
    extras = sorted(set(filter(None, map(extra_of, packages))))
    wanted = [f"greenfold[{','.join(extras)}]"] if extras else []
    wanted += [one for one in packages if not extra_of(one)]
    lines = [f"{', '.join(wanted)} (make heavy)"] if wanted else []
    lines += [f"{one} ({OTHERS[one]})" for one in OTHERS if one in parts]
    tests = "1 test needs" if len(parts) == 1 else f"{len(parts)} tests need"
    return f"{tests} parts that are not here: {', '.join(lines)}"


# -- Which code needs what -----------------------------------------------------------------


def _is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)


def _asks(node: ast.AST) -> bool:
    """Whether some code asks what is installed."""
    return not {"find_spec", "is_missing"}.isdisjoint(_words(node))


def _is_conditional(node: ast.AST) -> bool:
    """Whether what stands in a statement is imported only where it can be."""
    if isinstance(node, ast.If):
        return _asks(node.test)
    if isinstance(node, ast.Try):
        return any(
            "ImportError" in ast.dump(one.type) or "ModuleNotFound" in ast.dump(one.type)
            for one in node.handlers
            if one.type and not isinstance(one.body[-1], ast.Raise)
        )
    return False


def imports(node: ast.AST, package: str = "", deep: bool = True) -> Iterator[tuple]:
    """Line and full name of everything a piece of code imports, if it runs.

    `package` resolves relative imports. Without `deep`, functions are left out, as they do
    not run when the module is imported.
    """
    for child in ast.iter_child_nodes(node):
        if _is_type_checking(child) or _is_conditional(child):
            continue
        if (
            isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            and not deep
        ):
            continue
        if isinstance(child, ast.Import):
            yield from ((child.lineno, name.name) for name in child.names)
        elif isinstance(child, ast.ImportFrom):
            base = child.module or ""
            if child.level:
                above = package.split(".")[: len(package.split(".")) - child.level + 1]
                base = ".".join([*above, *([base] if base else [])])
            yield child.lineno, base
            yield from ((child.lineno, f"{base}.{name.name}") for name in child.names)
        elif isinstance(child, ast.Call) and isinstance(child.func, ast.Attribute):
            called, given = child.func.attr, child.args[:1]
            if called in ("importorskip", "import_module"):
                yield from (
                    (child.lineno, one.value)
                    for one in given
                    if isinstance(one, ast.Constant) and isinstance(one.value, str)
                )
        yield from imports(child, package, deep)


def file_of(module: str) -> Path | None:
    """Where a module of the library is written."""
    if not module.startswith("greenfold"):
        return None
    path = SOURCE.joinpath(*module.split("."))
    for candidate in (path / "__init__.py", path.with_suffix(".py")):
        if candidate.exists():
            return candidate
    return None


def _package_of(path: Path, root: Path) -> str:
    return ".".join(path.relative_to(root).parent.parts)


@functools.cache
def _imported_by(module: str) -> frozenset[str]:
    """What a module of the library imports when it is imported, its packages included."""
    path = file_of(module)
    if path is None:
        return frozenset()
    tree = ast.parse(path.read_text("utf-8"))
    found = {name for _, name in imports(tree, _package_of(path, SOURCE), deep=False)}
    return frozenset({*found, *filter(None, [module.rpartition(".")[0]])})


@functools.cache
def needed_by(module: str) -> frozenset[str]:
    """Optional parts without which a module cannot be imported."""
    seen, ahead = set(), [module]
    while ahead:
        name = ahead.pop()
        if name not in seen:
            seen.add(name)
            ahead += _imported_by(name)
    return frozenset({name.partition(".")[0] for name in seen} & optional())


def examples() -> Iterator[tuple[str, str]]:
    """Module and name of every docstring that has examples."""
    for path in sorted(SOURCE.rglob("*.py")):
        text = path.read_text("utf-8")
        if ">>>" in text:
            inner = path.relative_to(SOURCE).with_suffix("").parts
            module = ".".join(inner[:-1] if inner[-1] == "__init__" else inner)
            found = _docstrings(ast.parse(text))
            yield from ((module, name) for name, docstring in found if ">>>" in docstring)


def needed_by_examples(module: str, name: str) -> set[str]:
    """Optional parts that the examples of a docstring need: to be reached, and to run."""
    path = file_of(module)
    assert path is not None
    docstring = dict(_docstrings(ast.parse(path.read_text("utf-8"))))[name]
    code = "".join(one.source for one in doctest.DocTestParser().get_examples(docstring))
    inside = (needed_by(imported) for _, imported in imports(ast.parse(code)))
    return set(needed_by(module).union(*inside))


def _docstrings(node: ast.AST, above: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(node, ast.Module):
        yield "", ast.get_docstring(node) or ""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            name = f"{above}{child.name}"
            yield name, ast.get_docstring(child) or ""
            yield from _docstrings(child, f"{name}.")


# -- Which tests say what they need --------------------------------------------------------


def _guards(node: ast.AST) -> set[str]:
    """Parts named by every `needs(...)` in a piece of code."""
    return {
        argument.value
        for call in ast.walk(node)
        if isinstance(call, ast.Call)
        and getattr(call.func, "attr", getattr(call.func, "id", "")) == "needs"
        for argument in call.args
        if isinstance(argument, ast.Constant) and isinstance(argument.value, str)
    }


class _Definition:
    """A function, or a name that is set, at the top of a module or of a class."""

    def __init__(self, name: str, node: ast.AST, guards: set[str]) -> None:
        self.name, self.node = name, node
        self.is_function = isinstance(node, ast.FunctionDef)
        self.is_test = self.is_function and name.startswith("test")
        # Of a function the decorators count, of a list of parameters whatever is in it.
        marks = node.decorator_list if isinstance(node, ast.FunctionDef) else [node]
        self.guards = guards.union(*map(_guards, marks))
        self.marked_by = {
            n.id for m in marks for n in ast.walk(m) if isinstance(n, ast.Name)
        }
        self.mentions = set(_words(node))


def _words(node: ast.AST) -> Iterator[str]:
    """Names, arguments (which ask for fixtures), attributes and strings in some code."""
    for one in ast.walk(node):
        if isinstance(one, ast.Name):
            yield one.id
        elif isinstance(one, ast.arg):
            yield one.arg
        elif isinstance(one, ast.Attribute):
            yield one.attr
        elif isinstance(one, ast.Constant) and isinstance(one.value, str):
            yield one.value


def _definitions(body: list[ast.stmt], guards: set[str]) -> Iterator[_Definition]:
    for node in body:
        if isinstance(node, ast.FunctionDef):
            yield _Definition(node.name, node, guards)
        elif isinstance(node, ast.ClassDef):
            own = guards.union(*map(_guards, node.decorator_list))
            yield from _definitions(node.body, own | _module_guards(node.body))
            if not node.name.startswith("Test"):  # a helper: whoever names it uses it all
                yield _Definition(node.name, node, guards)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for name in (n for t in targets for n in ast.walk(t)):
                if isinstance(name, ast.Name):
                    yield _Definition(name.id, node, guards)


def _module_guards(body: list[ast.stmt]) -> set[str]:
    marks = [
        node
        for node in body
        if isinstance(node, ast.Assign)
        and any(isinstance(t, ast.Name) and t.id == "pytestmark" for t in node.targets)
    ]
    return set().union(*map(_guards, marks))


def unguarded(files: dict[Path, str]) -> list[str]:
    """Imports of optional parts that no `needs` guards, a sentence each.

    A test is guarded by its marks, those of its parameters, of its class and of its module;
    a fixture or a helper where everything that names it is.
    """
    found, inside, reached = [], [], {}
    everything: list[tuple[Path, _Definition]] = []
    for path, text in files.items():
        tree, package = ast.parse(text), _package_of(path, ROOT)
        reached[path] = {name for _, name in imports(tree, package)}
        for line, name in imports(tree, package, deep=False):
            found += [
                f"{_place(path, line)} imports {part} with the module; import it in a test "
                f'or a fixture, marked with `@pytest.mark.needs("{part}")`.'
                for part in needed_by(name)
            ]
        for one in _definitions(tree.body, _module_guards(tree.body)):
            everything.append((path, one))
            if isinstance(one.node, ast.FunctionDef) and not _asks(one.node):
                inside += [
                    (path, one, line, part)
                    for line, name in imports(one.node, package)
                    for part in needed_by(name)
                ]
    marks = {one.name: one.guards for _, one in everything if not one.is_function}

    def is_in_reach(path: Path, user: Path) -> bool:
        if path.name == "conftest.py":
            return user.is_relative_to(path.parent)
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        return user == path or module in reached[user]

    def open_ends(path: Path, one: _Definition, part: str, seen: frozenset) -> set[str]:
        """Names of what reaches a definition without saying that it needs the part."""
        guards = one.guards.union(*(marks.get(name, set()) for name in one.marked_by))
        if one in seen or guards & {part, BROUGHT_BY.get(part)}:
            return set()
        users = [
            (where, other)
            for where, other in everything
            if one.name in other.mentions and other is not one and is_in_reach(path, where)
        ]
        if one.is_test or not users:
            return {one.name}
        return set().union(*(open_ends(*user, part, seen | {one}) for user in users))

    for path, one, line, part in inside:
        found += [
            f"{_place(path, line)} imports {part}; mark {name} with "
            f'`@pytest.mark.needs("{part}")`.'
            for name in open_ends(path, one, part, frozenset())
        ]
    return sorted(set(found))


def _place(path: Path, line: int) -> str:
    return f"{path.relative_to(ROOT)}:{line}"


def complaints() -> list[str]:
    """What is wrong with the tests as they are."""
    return unguarded(
        {path: path.read_text("utf-8") for path in sorted(TESTS.rglob("*.py"))}
    )


if __name__ == "__main__":
    sys.exit("\n".join(complaints()) or 0)
