"""Install each built distribution, one after the other, and try it.

`python .ci/install.py dist`, after `python -m build`. Without extras, in an environment
that begins empty: what the library needs at run time must be among its dependencies.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import venv
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent


def is_complete(wheel: Path) -> None:
    """The wheel holds every tracked file of the package and nothing else."""
    command = ["git", "ls-files", "-z", "src/greenfold"]
    listed = subprocess.run(command, cwd=HERE.parent, capture_output=True, check=True)
    wanted = {name.removeprefix("src/") for name in listed.stdout.decode().split("\0")}
    packed = zipfile.ZipFile(wheel).namelist()
    differing = {name for name in packed if ".dist-info/" not in name} ^ (wanted - {""})
    if differing:
        sys.exit(f"{wheel.name} and the repository differ in {sorted(differing)}.")


def try_out(distributions: list[Path]) -> None:
    """Install each where no other is installed and run the smoke test."""
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        python = Path(folder) / ("Scripts" if sys.platform == "win32" else "bin") / "python"
        pip = [python, "-m", "pip", "--quiet", "--disable-pip-version-check"]
        for one in distributions:
            subprocess.run([*pip, "install", one.resolve()], cwd=folder, check=True)
            subprocess.run([python, "-I", HERE / "smoke.py"], cwd=folder, check=True)
            subprocess.run([*pip, "uninstall", "-y", "greenfold"], cwd=folder, check=True)
            print(f"{one.name}: installed and tried")


def main(folder: str) -> None:
    """Try the wheel of a folder first, which brings the dependencies, then its sdist."""
    wheels, sources = (sorted(Path(folder).glob(kind)) for kind in ("*.whl", "*.tar.gz"))
    if len(wheels) != 1 or len(sources) != 1:
        sys.exit(f"`{folder}` must hold one wheel and one sdist; got {wheels + sources}.")
    is_complete(wheels[0])
    try_out([*wheels, *sources])


if __name__ == "__main__":
    main(*sys.argv[1:])
