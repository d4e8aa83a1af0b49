"""What is studied, from a TOML file or under a name."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .networks import ARCHITECTURES
from .plan import AXES, SETTINGS, Grid


@dataclass(frozen=True)
class Plan:
    """Data sets and grids of networks."""

    datasets: list[str]
    grids: list[Grid]


def read_config(path: str | Path) -> Plan:
    """The plan in a TOML file.

    The file names ``datasets`` and one or more tables ``[[grid]]`` whose keys are those of
    `Grid`: its axes, its settings, and ``random`` and ``random_state`` of a random search.

    Parameters
    ----------
    path : str or Path
    """
    place = Path(path).expanduser()
    try:
        content = tomllib.loads(place.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"`{path}` is not a TOML file: {error}.") from None
    unknown = sorted(set(content) - {"datasets", "grid"})
    if unknown:
        raise ValueError(
            f"`{path}` may hold `datasets` and tables [[grid]]; got {', '.join(unknown)}."
        )
    datasets, tables = content.get("datasets", []), content.get("grid", [])
    if not isinstance(datasets, list) or not all(isinstance(d, str) for d in datasets):
        raise ValueError(f"`{path}`: `datasets` must be a list of names.")
    if not isinstance(tables, list) or not tables:
        raise ValueError(f"`{path}` has no table [[grid]], so that no network is named.")
    return Plan(datasets, [_grid(table, str(path)) for table in tables])


def _grid(table: dict[str, Any], where: str) -> Grid:
    known = (*AXES, *SETTINGS, "random", "random_state")
    unknown = sorted(set(table) - set(known))
    if unknown:
        raise ValueError(
            f"`{where}`: a grid knows {', '.join(known)}; got {', '.join(unknown)}."
        )
    return Grid(
        axes={k: v for k, v in table.items() if k in AXES},
        n_random=table.get("random"),
        settings={k: v for k, v in table.items() if k in SETTINGS},
        random_state=table.get("random_state", 0),
    )


#: By name: all architectures with equal N, clean and with noise inside, with their memory;
#: and random networks over N, g and τ.
PRESETS: dict[str, Plan] = {
    "architectures": Plan(
        ["ECG5000:1,2"],
        [
            Grid(
                {
                    "architecture": list(ARCHITECTURES),
                    "neurons": 50,
                    "seed": [0, 1, 2, 3],
                },
                settings={"memory": True},
            ),
            Grid(
                {
                    "architecture": list(ARCHITECTURES),
                    "neurons": 50,
                    "seed": [0, 1, 2, 3],
                    "inside": 0.03,
                },
            ),
            Grid(
                {
                    "neurons": [25, 50, 100],
                    "g": [0.3, 0.6, 0.9, 0.97],
                    "tau": [0.05, 0.125, 0.25, 0.5, 1.0],
                    "seed": [0, 1],
                },
            ),
        ],
    ),
}
