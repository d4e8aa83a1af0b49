"""`greenfold data`: list, find and download data sets."""

from pathlib import Path

from . import options
from .options import DATA_DIR, SYNTHETIC, Answer, arg, command

NAME = arg(
    ...,
    "NAME",
    help="Name of a data set in the UCR or UEA archive, such as ECG5000.",
    autocompletion=options.complete_dataset,
)


@command("greenfold data list --json")
def list_(data_dir: Path | None = DATA_DIR) -> Answer:
    """List the data sets on this machine."""
    from ..datasets.downloads import list_datasets

    found = list_datasets(data_dir)

    def show() -> None:
        lines = {**found, SYNTHETIC: "built in, synthetic"}
        width = max(map(len, lines))
        for name, path in lines.items():
            print(f"{name:<{width}}  {path}")

    record = [{"name": name, "path": path} for name, path in found.items()]
    return Answer({"datasets": record, "built_in": [SYNTHETIC]}, show)


@command("greenfold data path ECG5000")
def path(name: str = NAME, data_dir: Path | None = DATA_DIR) -> Answer:
    """Print the folder of a data set on this machine."""
    from ..datasets.downloads import dataset_path

    options.refuse_if(name == SYNTHETIC, f"{SYNTHETIC} is built in and has no folder")
    return _folder(name, dataset_path(name, data_dir))


@command("greenfold data fetch ECG5000")
def fetch(name: str = NAME, data_dir: Path | None = DATA_DIR) -> Answer:
    """Download a data set from the public archive into the cache."""
    from ..datasets.downloads import download_dataset

    return _folder(name, download_dataset(name, data_dir=data_dir))


def _folder(name: str, found: Path) -> Answer:
    return Answer({"name": name, "path": found}, lambda: print(found))
