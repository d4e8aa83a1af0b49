"""Pins and bounds beside what pyproject.toml names; `make check` runs it.

Every dependency has a bound on both sides, its lower bound is the version in oldest.txt,
and pins.txt has one version each for just those packages that pyproject.toml names. The
conda recipe names the dependencies and those of the extra ``cli``, with the same bounds.
Workflows name every action by the hash of a commit.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

HERE = Path(__file__).resolve().parent


def pins(name: str) -> dict[str, Version]:
    """Versions of a file of plain pins."""
    lines = (HERE / name).read_text("utf-8").splitlines()
    pairs = [line.split("==") for line in lines if line and not line.startswith("#")]
    return {canonicalize_name(package): Version(version) for package, version in pairs}


def named(entries: list) -> dict[str, Requirement]:
    """Requirements by name, without greenfold itself and included groups."""
    found = [Requirement(entry) for entry in entries if isinstance(entry, str)]
    return {canonicalize_name(r.name): r for r in found if r.name != "greenfold"}


def of_the_recipe(project: dict, runtime: dict[str, Requirement]) -> list[str]:
    """What the conda recipe lacks or names otherwise; conda's matplotlib is -base."""
    recipe = (HERE.parent / "conda" / "recipe.yaml").read_text("utf-8")
    listed = recipe.partition("  run:\n")[2].partition("\ntests:")[0]
    given = {
        str(canonicalize_name(r.name.removesuffix("-base"))): r.specifier
        for r in map(Requirement, re.findall(r"^    - (\S.*)$", listed, re.M))
    }
    extras = ["cli", *re.findall(r"\w+", project["optional-dependencies"]["cli"][0])[1:]]
    wanted = [e for x in extras for e in project["optional-dependencies"][x]]
    names = named([*project["dependencies"], *wanted])
    wrong = [name for name in names if given.get(name) != runtime[name].specifier]
    return [f"conda/recipe.yaml: {runtime[name]} is not among run." for name in wrong]


def of_the_workflows() -> list[str]:
    """Actions that a tag names, which its owner can move."""
    folder = HERE.parent / ".github" / "workflows"
    used = [
        (path.name, action)
        for path in sorted(folder.glob("*.yml"))
        for action in re.findall(r"uses: ([^.\s]\S*)", path.read_text("utf-8"))
    ]
    loose = [one for one in used if not re.search(r"@[0-9a-f]{40}$", one[1])]
    return [f"{path}: {action} needs the hash of a commit." for path, action in loose]


def complaints() -> list[str]:
    """What does not fit together, a sentence each."""
    content = tomllib.loads((HERE.parent / "pyproject.toml").read_text("utf-8"))
    project = content["project"]
    extras = project["optional-dependencies"].values()
    runtime = named([*project["dependencies"], *(e for extra in extras for e in extra)])
    groups = content["dependency-groups"].values()
    tools = named([entry for group in groups for entry in group])
    current, oldest = pins("pins.txt"), pins("oldest.txt")

    found = []
    for name, requirement in runtime.items():
        bounds = {bound.operator: Version(bound.version) for bound in requirement.specifier}
        if bounds.keys() != {">=", "<"}:
            found.append(f"{requirement} needs a lower and an upper bound.")
        elif oldest.get(name) != bounds[">="]:
            found.append(f"{requirement}: oldest.txt has {oldest.get(name)}.")
        if name in current and current[name] not in requirement.specifier:
            found.append(f"{requirement}: pins.txt has {current[name]}.")
    # pip is what installs the groups, so none of them can name it.
    wanted = {*runtime, *tools, "pip"}
    found += [f"{name} has no version in pins.txt." for name in wanted - current.keys()]
    found += [f"pyproject.toml does not name {name}." for name in current.keys() - wanted]
    return sorted([*found, *of_the_recipe(project, runtime), *of_the_workflows()])


if __name__ == "__main__":
    sys.exit("\n".join(complaints()) or 0)
