"""Modules of JavaScript as one script: read in order, imports and exports taken away."""

from __future__ import annotations

import re
from importlib.resources import files

#: Each imports only from those before it.
MODULES = (
    "numbers",
    "eigen",
    "sphere",
    "network",
    "moments",
    "problem",
    "climb",
    "reference",
    "own_file",
    "address",
    "embed",
    "draw",
    "ring",
    "gauge",
    "clouds",
    "curves",
    "view",
    "words",
    "frame",
    "main",
)
_IMPORT = re.compile(r'^import\s+\{([^}]*)\}\s+from\s+"\./(\w+)\.js";\n', re.M)
_EXPORT = re.compile(r"^export (?=(?:async )?function|const|class|let)", re.M)
_EXPORTED = re.compile(r"^export (?:async )?(?:function\*?|const|let|class) +(\w+)", re.M)
_NAMES = re.compile(r"^(?:export )?(?:async )?(?:function\*?|const|let|class) +(\w+)", re.M)


def asset(name: str) -> str:
    """Text of a file that comes with the package."""
    return files("greenfold.explore").joinpath("assets", name).read_text(encoding="utf-8")


def script() -> str:
    """All modules as one script.

    Raises
    ------
    ValueError
        Where a module imports one that comes later, or two modules use one name: the
        script would mean something else than the modules do.
    """
    seen: dict[str, str] = {}
    exported: dict[str, list[str]] = {}
    parts = []
    for name in MODULES:
        text = asset(f"js/{name}.js")
        for names, module in _IMPORT.findall(text):
            for needed in filter(None, (one.strip() for one in names.split(","))):
                if needed not in exported.get(module, ()):
                    raise ValueError(
                        f"{name}.js imports {needed} of {module}.js, which does not come "
                        "before it or does not export that."
                    )
        for found in _NAMES.findall(text):
            if found in seen:
                raise ValueError(f"{found} is in {seen[found]}.js and in {name}.js.")
            seen[found] = name
        exported[name] = _EXPORTED.findall(text)
        body = _EXPORT.sub("", _IMPORT.sub("", text)).strip()
        parts.append(f"// {name}.js\n{body}\n")
    return "\n".join(parts)
