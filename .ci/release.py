"""Check that a tag may be released; print its notes, the changelog's section.

`python .ci/release.py v1.2.3`. Version, citation and changelog must name the version of
the tag. Only the standard library is used: nothing is installed before a release.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def found(pattern: str, path: str) -> str:
    """What the group of the pattern matches in a file, or nothing."""
    match = re.search(pattern, (ROOT / path).read_text("utf-8"), re.M | re.S)
    return match[1] if match else ""


def notes(tag: str) -> str:
    """The changelog's section of a tag, if all files agree that it is the version."""
    version = tag.removeprefix("v")
    if tag != f"v{version}" or not re.fullmatch(r"\d+\.\d+\.\d+((a|b|rc)\d+)?", version):
        sys.exit(f"The tag must be v and a version, as in v1.2.3; got {tag}.")
    source = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    names = {
        source["tool"]["hatch"]["version"]["path"]: r'^__version__ = "([^"]+)"',
        "CITATION.cff": r"^version: (\S+)",
        "conda/recipe.yaml": r'^  version: "([^"]+)"',
    }
    for path, pattern in names.items():
        if (named := found(pattern, path)) != version:
            sys.exit(f"{path} names version {named or 'none'}; the tag is {tag}.")
    section = rf"^## \[{re.escape(version)}\] - \d{{4}}-\d\d-\d\d\n(.*?)(?=^## |^\[|\Z)"
    if not (text := found(section, "CHANGELOG.md").strip()):
        sys.exit(f"CHANGELOG.md has no section `## [{version}] - YYYY-MM-DD`.")
    return text


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    print(notes(sys.argv[1]))
