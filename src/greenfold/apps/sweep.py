"""Run estimators on data sets and resamples, and compare the results."""

from __future__ import annotations

import ast
import csv
import difflib
import functools
import hashlib
import importlib
import inspect
import itertools
import pkgutil
import re
import socket
import time
import warnings
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import __version__
from .._base.arrays import on_device
from .._base.checks import device_name, must, needs, require
from .._base.files import plain, write_csv, write_figure, write_json
from ..datasets import DataError, MissingValueError, downloads, read_series
from ..datasets.parsed import SeriesArrays
from . import runner
from .runner import SEAL, Job, Summary, Workers

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Workers", "compare", "sweep"]

FORMAT = 1  # increase it if this module makes other results from the same configuration
_SUM_TOLERANCE = 1e-5  # of the sum of probabilities, as strict as tsml-eval's reader
_RESERVED = {"comparison", "failures"}  # folders that belong to no estimator

Part = tuple[Any, np.ndarray]  # series and labels
_CONVOLUTION = "aeon.classification.convolution_based:"
#: Estimators by their names in the literature and in aeon's results.
KNOWN = {
    "ReservoirClassifier": "greenfold.estimators.margin:ReservoirClassifier",
    "PooledReservoirClassifier": "greenfold.estimators.pooled:PooledReservoirClassifier",
    "ROCKET": f"{_CONVOLUTION}RocketClassifier",
    "MiniROCKET": f"{_CONVOLUTION}MiniRocketClassifier",
    "MR": f"{_CONVOLUTION}MultiRocketClassifier",
    "Hydra": f"{_CONVOLUTION}HydraClassifier",
    "MR-Hydra": f"{_CONVOLUTION}MultiRocketHydraClassifier",
    "Arsenal": f"{_CONVOLUTION}Arsenal",
    "QUANT": "aeon.classification.interval_based:QUANTClassifier",
    "DrCIF": "aeon.classification.interval_based:DrCIFClassifier",
    "TSF": "aeon.classification.interval_based:TimeSeriesForestClassifier",
    "RDST": "aeon.classification.shapelet_based:RDSTClassifier",
    "STC": "aeon.classification.shapelet_based:ShapeletTransformClassifier",
    "WEASEL-2": "aeon.classification.dictionary_based:WEASEL_V2",
    "Catch22": "aeon.classification.feature_based:Catch22Classifier",
    "FreshPRINCE": "aeon.classification.feature_based:FreshPRINCEClassifier",
    "1NN-DTW": "aeon.classification.distance_based:KNeighborsTimeSeriesClassifier",
    "PF": "aeon.classification.distance_based:ProximityForest",
    "HC2": "aeon.classification.hybrid:HIVECOTEV2",
}

_TEXT = re.compile(
    r"(?:(?P<label>[A-Za-z0-9][\w.+-]*)=)?(?P<target>[A-Za-z0-9][\w.-]*(?::[A-Za-z_]\w*)?)"
    r"(?:\((?P<parameters>.*)\))?",
    re.DOTALL | re.ASCII,
)
#: Parts of greenfold that no estimator imports, so changes there affect no result.
_ABOVE = {"apps", "cli"}


@dataclass(frozen=True)
class EstimatorSpec:
    """A description of an estimator, which can be sent to another machine."""

    label: str  # name of its folder of results
    target: str  # module:Class
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def load(self) -> type:
        """Return the class, or raise if there is no such module or class."""
        module, _, name = self.target.partition(":")
        try:
            found = getattr(importlib.import_module(module), name)
        except ModuleNotFoundError as error:
            if module.startswith("aeon.") and str(error.name).startswith("aeon"):
                needed = f"The estimator {self.label!r} needs aeon"
                raise ImportError(f"{needed}: pip install 'greenfold[sweep]'.") from None
            wrong = f"The module of the estimator `{self.target}` cannot be imported"
            raise ValueError(f"{wrong}: {error}.") from None
        except AttributeError:
            raise ValueError(f"The module `{module}` has no class {name!r}.") from None
        usable = inspect.isclass(found) and hasattr(found, "fit")
        require(usable, f"`{self.target}` is not a class with a `fit` method.")
        return found

    def make(self, seed: int) -> Any:
        """Return an unfitted estimator; the seed is its ``random_state`` if it has one."""
        kind, chosen = self.load(), dict(self.parameters)
        if "random_state" in inspect.signature(kind).parameters:
            chosen.setdefault("random_state", seed)
        try:
            return kind(**chosen)
        except TypeError as error:
            wrong = f"The estimator {self.label!r} does not take these parameters"
            raise ValueError(f"{wrong}: {error}.") from None

    def code(self) -> str:
        """Return the installed version, or a digest of sources that are not installed."""
        return _code_of(self.load().__module__)


def parse_estimator(text: str) -> EstimatorSpec:
    """Return the estimator that ``[label=]name[(parameter=value, ...)]`` describes."""
    found: Any = _TEXT.fullmatch(text.strip())
    forms = "a name, module:Class or 'name(parameter=value, ...)'"
    require(found, f"An estimator must be given as {forms}; got {text!r}.")
    parameters, label = {}, found["label"]
    try:
        call: Any = ast.parse(f"f({found['parameters'] or ''})", mode="eval").body
        is_call = isinstance(call, ast.Call) and isinstance(call.func, ast.Name)
        named = is_call and not call.args and all(one.arg for one in call.keywords)
        require(named, "")  # one message for all errors
        parameters = {str(one.arg): ast.literal_eval(one.value) for one in call.keywords}
        plain(parameters)
    except (SyntaxError, ValueError, TypeError):
        how = "be literals with a name, as in 'name(depth=3, kind=\"x\")'"
        wrong = f"The parameters of an estimator must {how}; got {text!r}."
        raise ValueError(wrong) from None
    name, target = _resolve(found["target"])
    if label is None:
        shown = [f"{key}={value}" for key, value in parameters.items()]
        label = "-".join([name, *(re.sub(r"[^\w.+=-]+", "_", one) for one in shown)])
    return EstimatorSpec(label, target, parameters)


def _resolve(name: str) -> tuple[str, str]:
    """Return name and ``module:Class`` of an estimator."""
    if ":" in name:
        return name.partition(":")[2], name
    known = {key.casefold(): key for key in KNOWN}
    key = known.get(name.casefold())
    if key is not None:
        return key, KNOWN[key]
    classes = _classes_of_aeon()
    if name in classes:
        return name, classes[name]
    among = {**known, **{one.casefold(): one for one in classes}}
    close = difflib.get_close_matches(name.casefold(), among, n=1, cutoff=0.6)
    hint = f"did you mean {among[close[0]]!r}?" if close else f"known: {', '.join(KNOWN)}."
    none = f"There is no estimator {name!r} (give any other class as module:Class)"
    raise ValueError(f"{none}; {hint}")


@functools.cache
def _classes_of_aeon() -> dict[str, str]:
    """Return the classes in aeon's classification modules, by name."""
    try:
        package = importlib.import_module("aeon.classification")
    except ImportError:
        return {}
    found = {}
    for entry in pkgutil.iter_modules(package.__path__, "aeon.classification."):
        if entry.name.rpartition(".")[2] in ("base", "tests"):
            continue
        try:
            module = importlib.import_module(entry.name)
        except ImportError:
            continue  # needs a package that is not installed
        for name in getattr(module, "__all__", ()):
            found[name] = f"{entry.name}:{name}"
    return found


@functools.cache
def _code_of(module: str) -> str:
    top = module.partition(".")[0]
    package = importlib.import_module(top)
    file = getattr(package, "__file__", None)
    folder = Path(file).resolve().parent if file else None
    for name in metadata.packages_distributions().get(top, ()):
        installed = Path(str(metadata.distribution(name).locate_file(top))).resolve()
        if folder is not None and installed in (folder, folder / top):
            return f"{name} {metadata.version(name)}"
    if file is None or folder is None:
        return top
    if Path(file).name == "__init__.py":
        digest = runner.source_digest(folder, _ABOVE if top == "greenfold" else ())
    else:
        digest = hashlib.sha256(Path(file).read_bytes()).hexdigest()[:16]
    return f"{top} sources {digest}"


@dataclass(frozen=True)
class Dataset:
    """A data set on this machine: its folder, and the digest and size of its files."""

    name: str
    folder: str
    digest: str
    size: int


def find_datasets(
    items: Iterable[str | Path], data_dir: str | Path | None = None, download: bool = True
) -> list[Dataset]:
    """Return data sets by name, folder, or ``.txt`` file with one name per line.

    Each data set is returned once. Without items, all data sets of the data directory are.
    """
    found: dict[str, Path] = {}
    for item in items:
        path, names = Path(item).expanduser(), [str(item)]
        if path.is_dir():
            folder = path.resolve()
            is_one = downloads.find_split(folder, folder.name, "train")
            own = {folder.name: folder} if is_one else downloads.datasets_below(folder)
            how = "each is a folder <Name> with the files <Name>_TRAIN and <Name>_TEST."
            none = f"The folder {str(folder)!r} holds no data sets: {how}"
            require(own, none, FileNotFoundError)
            found = own | found
            continue
        if path.suffix == ".txt" and path.is_file():
            lines = map(str.strip, path.read_text(encoding="utf-8").splitlines())
            names = [name for name in lines if name and not name.startswith("#")]
        for name in names:
            if name in found:
                continue
            try:
                found[name] = downloads.dataset_path(name, data_dir)
            except FileNotFoundError:
                if not download:
                    raise
                found[name] = downloads.download_dataset(name, data_dir=data_dir)
    if not items:
        found = downloads.list_datasets(data_dir)
        how = "name some, or put them into the directory that GREENFOLD_DATA names."
        require(found, f"There are no data sets to sweep over: {how}", FileNotFoundError)
    return [_describe(name, folder) for name, folder in found.items()]


def _files(name: str, folder: Path) -> list[Path]:
    found = []
    for split in ("train", "test"):
        path = downloads.find_split(folder, name, split)
        how = f"put {name}_{split.upper()} there, or leave the set out."
        none = f"The data set {name!r} in {folder} has no {split} split: {how}"
        require(path, none, FileNotFoundError)
        found.append(path)
    return found


def _describe(name: str, folder: Path) -> Dataset:
    contents = [path.read_bytes() for path in _files(name, folder)]
    digest = hashlib.sha256(b"".join(hashlib.sha256(one).digest() for one in contents))
    size = sum(map(len, contents))
    return Dataset(name, str(folder), digest.hexdigest()[:16], size)


def read_dataset(name: str, folder: str, digest: str) -> tuple[Part, Part]:
    """Return training and test series, with labels as text and padding cut off."""
    place = Path(folder)
    if not place.is_dir():  # another machine may keep the data elsewhere
        place = downloads.dataset_path(name)
    what = f"The files of {name!r} in {place}"
    why = "they differ between the machines or have changed since."
    wrong = f"{what} are not those that the sweep was planned with: {why}"
    require(_describe(name, place).digest == digest, wrong, DataError)

    def read(path: Path) -> Part:
        try:
            X, y = read_series(path, missing="trim")
        except MissingValueError:
            X, y = read_series(path, missing="keep")
        # Labels are text as in aeon: their order, "10" before "2", sets the resamples.
        return X, np.asarray(y).astype(str)

    train, test = map(read, _files(name, place))
    return train, test


def resampled(train: Part, test: Part, resample: int) -> tuple[Part, Part]:
    """Return a split: the provided split for 0, else aeon's resample with this seed."""
    if resample == 0:
        return train, test
    with needs("A resample other than 0", "sweep"):
        from aeon.benchmarking.resampling import stratified_resample_data
    (X, y), (X_test, y_test) = train, test
    same = "The resamples of aeon need the same classes in the training and the test split"
    got = f"got {len(set(y))} and {len(set(y_test))}."
    require(set(y) == set(y_test), f"{same}; {got}", DataError)
    arrays = isinstance(X, np.ndarray) and isinstance(X_test, np.ndarray)
    if not (arrays and X.shape[1:] == X_test.shape[1:]):
        X, X_test = ([np.atleast_2d(one) for one in part] for part in (X, X_test))
    made = stratified_resample_data(X, y, X_test, y_test, random_state=resample)
    return made[:2], made[2:]


def result_text(
    about: Sequence[object],
    remarks: str,
    parameters: str,
    times: Sequence[float],
    labels: np.ndarray,
    shares: np.ndarray,
) -> str:
    """Return the text of a result file of tsml-eval.

    ``about`` names data set, estimator and resample, and ``times`` are those of fit and
    prediction in seconds. Classes are numbers in the order of their names as text; as in
    tsml-eval, the prediction is the class with the largest of the ``shares``.
    """
    found = shares.argmax(axis=1)
    remarks, parameters = (" ".join(text.split()) for text in (remarks, parameters))
    name, estimator, resample = about
    first = f"{name},{estimator},TEST,{resample},MILLISECONDS,{remarks}"
    took = ",".join(f"{1e3 * one:.3f}" for one in times)
    accuracy = float(np.mean(labels == found))
    third = f"{accuracy!r},{took},-1,-1,{shares.shape[1]},N/A,-1,-1"
    rows = [
        f"{label},{one},,{','.join(map(repr, row))}"
        for label, one, row in zip(
            labels.tolist(), found.tolist(), shares.tolist(), strict=True
        )
    ]
    return "\n".join([first, parameters, third, *rows]) + "\n"


def read_accuracy(path: str | Path) -> float:
    """Return the accuracy in a result file; raise DataError if the file is damaged."""
    content = Path(path).read_bytes()
    damaged = f"The result file {str(path)!r} is damaged: run the sweep again to redo it."
    require(runner.is_whole(content), damaged, DataError)
    try:
        first, _, third, *lines = (one.split(",") for one in content.decode().splitlines())
        rows, stated, n_classes = (
            [row for row in lines if any(row)],
            float(third[0]),
            third[5],
        )
        shares = np.array([row[3 : 3 + int(n_classes)] for row in rows], dtype=float)
        whole = shares.shape == (len(rows), int(n_classes))
        require(first[2].upper() == "TEST" and rows and whole, "")
        accuracy = float(np.mean([int(row[0]) == int(row[1]) for row in rows]))
    except (ValueError, IndexError):
        what = "is not a complete result in tsml-eval's format."
        raise DataError(f"The file {str(path)!r} {what}") from None
    wrong = f"an accuracy of {stated:g}, but its predictions have {accuracy:g}."
    right = abs(accuracy - stated) <= 1e-9
    require(right, f"The file {str(path)!r} states {wrong}", DataError)
    return accuracy


def experiment(configuration: Mapping[str, Any], context: Mapping[str, Any]) -> str:
    """Run one estimator on one resample and return the text of the result file."""
    named = (configuration[key] for key in ("label", "estimator", "parameters"))
    spec, data = EstimatorSpec(*named), configuration["data"]
    runner.must_be_planned_with(configuration["code"], spec.code())
    parts = read_dataset(data["name"], context["folder"], data["digest"])
    (X_train, y_train), (X_test, y_test) = resampled(*parts, configuration["resample"])
    classes = np.unique(np.concatenate([y_train, y_test]))
    estimator, device = spec.make(configuration["seed"]), context.get("device", "cpu")
    X_train, X_test = (
        _as_taken(X, estimator, spec.label, device) for X in (X_train, X_test)
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # many estimators would repeat them
        start = time.perf_counter()
        estimator.fit(X_train, np.searchsorted(classes, y_train))
        fitted = time.perf_counter()
        shares = _probabilities(estimator, X_test, len(y_test), len(classes), spec.label)
        done = time.perf_counter()
    encoder = {str(label): i for i, label in enumerate(classes)}
    remarks = f"{SEAL} Generated by greenfold {__version__} with {configuration['code']}. "
    parameters = "No Parameter Info"
    with suppress(AttributeError, TypeError):
        parameters = str(estimator.get_params())
    return result_text(
        (
            data["name"],
            f"{spec.label} ({type(estimator).__name__})",
            configuration["resample"],
        ),
        f"{remarks}Encoder dictionary: {encoder}",
        parameters,
        (fitted - start, done - fitted),
        np.searchsorted(classes, y_test),
        shares,
    )


def _as_taken(X: SeriesArrays, estimator: object, label: str, device: str) -> Any:
    """Return series in the shape that the estimator's library expects."""
    origin = {kind.__module__.partition(".")[0] for kind in type(estimator).__mro__}
    if "aeon" in origin:
        if isinstance(X, list):
            return [np.atleast_2d(one) for one in X]
        return X[:, None, :] if X.ndim == 2 else X
    if "greenfold" in origin:
        return on_device(X, device)
    if "sklearn" not in origin:
        return X
    if isinstance(X, list):
        what = "treats the values of a series as features, but the series have"
        raise DataError(f"{label} {what} unequal lengths.")
    return X.reshape(len(X), -1)


def _probabilities(
    estimator: Any, X: SeriesArrays, n_cases: int, n_classes: int, label: str
) -> np.ndarray:
    """Return the probabilities of all classes; raise if they are not valid."""
    returned = f"{label} returned probabilities"
    if hasattr(estimator, "predict_proba"):
        found = np.asarray(estimator.predict_proba(X), dtype=float)
        own = np.asarray(getattr(estimator, "classes_", range(n_classes)))
        fits = found.ndim == 2 and found.shape[1] == len(own)
        require(fits, f"{returned} of shape {found.shape} for {len(own)} classes.")
        shares = np.zeros((len(found), n_classes))
        shares[:, own.astype(int)] = found
    else:
        labels = np.asarray(estimator.predict(X))
        known = np.isin(labels, np.arange(n_classes)).all()
        require(known, f"{label} predicted labels that are not classes of the set.")
        shares = np.eye(n_classes)[labels.astype(int)]
    bad, n = int((~np.isfinite(shares)).any(axis=1).sum()), len(shares)
    require(not bad, f"{returned} that are not finite for {bad} of {n} series.")
    whole = (np.abs(shares.sum(axis=1) - 1) <= _SUM_TOLERANCE).all() and (shares >= 0).all()
    require(whole, f"{returned} that do not add up to one.")
    require(n == n_cases, f"{label} returned {n} predictions for {n_cases} series.")
    return shares


def sweep(
    estimators: Iterable[str],
    datasets: Iterable[str | Path] = (),
    resamples: int | Iterable[int] = 1,
    folder: str | Path = "results",
    *,
    data_dir: str | Path | None = None,
    download: bool = True,
    seed: int | None = None,
    device: str = "cpu",
    workers: Workers | None = None,
) -> Summary:
    """Run estimators on resamples of data sets, with one result file each.

    Results are in the layout and format of tsml-eval,
    ``<estimator>/Predictions/<dataset>/testResample<k>.csv``. Results of the same
    estimator, parameters, code, data and seed are kept; stale and damaged results are
    computed again. Failures are recorded in ``<folder>/failures``; the next run tries them
    again.

    Parameters
    ----------
    estimators : iterable of str
        ``[label=]name[(parameter=value, ...)]``: the name of a classifier of greenfold or
        aeon, or ``module:Class``; values are Python literals.
    datasets : iterable of str or Path
        Names, folders, or text files with names; by default all data sets of the data
        directory.
    resamples : int or iterable of int, default 1
        Number of resamples, counted from 0, or a list of their numbers. Resample 0 is the
        provided split; resample k is the stratified resample of aeon and tsml-eval with
        seed k.
    folder, data_dir : str or Path
        Folder of the results, and folder of the data (by default ``GREENFOLD_DATA``).
    download : bool, default True
        Whether to download a data set that is not on this machine.
    seed : int, optional
        ``random_state`` of every estimator; by default the number of the resample, as in
        tsml-eval.
    device : str, default "cpu"
        Device for greenfold's own estimators; "cuda" or "cuda:1", … needs PyTorch. Series
        of several lengths and other estimators stay on the host.
    workers : Workers, optional
        Where the jobs run; by default in a process per core, or in one with a GPU.

    Returns
    -------
    Summary
        Numbers of results that were found, made, and failed.

    Examples
    --------
    >>> from greenfold.apps.sweep import compare, sweep
    >>> names = ["PooledReservoirClassifier", "MiniROCKET"]
    >>> done = sweep(names, ["Coffee", "GunPoint"], 5)  # doctest: +SKIP
    >>> print(compare("results"))  # doctest: +SKIP
    """
    # Check all arguments before computing anything.
    workers = workers or Workers()
    if device_name(device) != "cpu" and workers.dask is None:
        on_device(np.zeros(1), device)
        workers = replace(workers, n_jobs=workers.n_jobs or 1)
    specs = [parse_estimator(one) for one in estimators]
    require(specs, "`estimators` must name at least one estimator.")
    labels = [spec.label for spec in specs]
    for label in labels:
        wrong = f"An estimator cannot be called {label!r}: that folder has another purpose."
        require(label.casefold() not in _RESERVED, wrong)
        wrong = f"Two estimators are called {label!r}: name one, as in 'other={label}'."
        require(labels.count(label) == 1, wrong)
    for spec in specs:
        spec.make(0)
    downloads.data_directory(data_dir)  # raise if it is wrong, instead of downloading
    numbers = range(resamples) if isinstance(resamples, int) else sorted(set(resamples))
    wanted = "be a positive number, or a list of numbers from 0 on"
    must(numbers and numbers[0] >= 0, "resamples", wanted, resamples)
    if numbers[-1] > 0:
        with needs("A resample other than 0", "sweep"):
            importlib.import_module("aeon")
    jobs = [
        _job(spec, source, number, number if seed is None else seed, device)
        for source in find_datasets(list(datasets), data_dir, download)
        for number in numbers
        for spec in specs
    ]
    return runner.run_jobs(jobs, folder, workers, label="sweep")


def _job(spec: EstimatorSpec, data: Dataset, resample: int, seed: int, device: str) -> Job:
    # Results of a GPU differ in the last digits, so their hash includes the device.
    place = {} if device == "cpu" else {"device": device.partition(":")[0]}
    return Job(
        path=f"{spec.label}/Predictions/{data.name}/testResample{resample}.csv",
        work=experiment,
        configuration={
            "format": FORMAT,
            "label": spec.label,
            "estimator": spec.target,
            "parameters": dict(spec.parameters),
            "code": spec.code(),
            "seed": seed,
            "data": {"name": data.name, "digest": data.digest},
            "resample": resample,
            **place,
        },
        context={"folder": data.folder, "device": device},
        weight=float(data.size),
        title=f"{data.name} {resample} {spec.label}",
    )


_PATTERN = "*/Predictions/*/testResample*.csv"
#: Suffix of the names of estimators with published results.
PUBLISHED = " (published)"
#: Published results to compare with by default.
_DEFAULT = ("ROCKET", "MiniROCKET", "MR-Hydra", "HC2")
_DIGITS = 4  # digits after the point in the tables of published results
#: Names of those tables by resamples, in the folder ``reference`` of the data directory.
_TABLES = {(0,): "ucr_default_split.csv", tuple(range(30)): "ucr_mean_30_resamples.csv"}
_PATIENCE = 15.0  # seconds to wait for the archive
#: Smallest numbers of estimators and of data sets for a test of the ranking.
_MIN_ESTIMATORS, _MIN_SETS = 3, 3

Scores = dict[str, dict[str, float]]
Results = dict[str, dict[str, dict[int, float]]]


@dataclass(frozen=True)
class Comparison:
    """Accuracies of several estimators on the same splits of the same data sets."""

    estimators: list[str]  # first those in the folder, then those with " (published)"
    datasets: list[str]
    accuracy: np.ndarray  # mean over the resamples, (n_datasets, n_estimators)
    resamples: list[int]
    left_out: list[str] = field(default_factory=list)  # sets that some estimator lacks
    notes: list[str] = field(default_factory=list)

    @property
    def own(self) -> list[str]:
        """Return the estimators whose results are in the folder."""
        return [one for one in self.estimators if not one.endswith(PUBLISHED)]

    @property
    def mean_accuracy(self) -> np.ndarray:
        """Return the mean over the data sets, shape (n_estimators,)."""
        return self.accuracy.mean(axis=0)

    @property
    def mean_rank(self) -> np.ndarray:
        """Return the mean rank over the data sets, 1 the best, shape (n_estimators,)."""
        from scipy.stats import rankdata  # slow to import, and workers do not need it

        return rankdata(-self.accuracy, axis=1).mean(axis=0)

    @property
    def basis(self) -> str:
        """Return a phrase that names the data sets and resamples behind the numbers."""
        total = len(self.datasets) + len(self.left_out)
        sets = f"{len(self.datasets)} of {total}" if self.left_out else f"{total}"
        if self.resamples == [0]:
            return f"{sets} data sets, the provided split"
        first, last, n = self.resamples[0], self.resamples[-1], len(self.resamples)
        in_a_row = n > 1 and last - first == n - 1
        shown = f"{first}–{last}" if in_a_row else ", ".join(map(str, self.resamples))
        return f"{sets} data sets, mean of {n} resamples ({shown})"

    def record(self) -> dict[str, Any]:
        """Return everything as JSON values, with the version of greenfold."""
        about = {"greenfold": __version__, "basis": self.basis}
        means = {"mean_accuracy": self.mean_accuracy, "mean_rank": self.mean_rank}
        return {**about, "n_datasets": len(self.datasets), **asdict(self), **means}

    def __str__(self) -> str:
        width, ranks = max(map(len, self.estimators)), self.mean_rank
        lines = [f"Mean accuracy and mean rank, {self.basis}:"]
        for i in np.argsort(-self.mean_accuracy, kind="stable"):
            name, mean = f"{self.estimators[i]:{width}}", self.mean_accuracy[i]
            lines.append(f"{name}  {mean:.4f}  {ranks[i]:.2f}")
        return "\n".join(lines)


def compare(
    folder: str | Path,
    *,
    published: Iterable[str] | None = None,
    estimators: Iterable[str] | None = None,
    data_dir: str | Path | None = None,
) -> Comparison:
    """Return the accuracies of all estimators in a folder of results.

    A data set counts if every estimator has every resample; other data sets are listed in
    ``left_out``. Raises FileNotFoundError if no data set has results of every estimator.

    Parameters
    ----------
    folder : str or Path
        Results in the layout of tsml-eval, written by `greenfold.apps.sweep.sweep` or
        tsml-eval.
    published : iterable of str, optional
        Estimators with published results to compare with; by default ROCKET, MiniROCKET,
        MR-Hydra and HC2. An empty list means none.
    estimators : iterable of str, optional
        Estimators in the folder to compare; by default all.
    data_dir : str or Path, optional
        Data directory whose folder ``reference`` holds tables of published results; by
        default the environment variable ``GREENFOLD_DATA``.

    Returns
    -------
    Comparison
        ``accuracy`` of shape (n_datasets, n_estimators), ``mean_rank`` and ``notes``; it
        prints as a table.
    """
    scores, notes = read_folder(folder)
    here, there = f"The folder {str(folder)!r}", ", ".join(scores) or "none"
    wanted = list(scores if estimators is None else estimators)
    missing = ", ".join(one for one in wanted if one not in scores)
    lacks = f"{here} has no results of {missing}; it has results of {there}."
    require(not missing, lacks, FileNotFoundError)
    place = "<estimator>/Predictions/<dataset>/testResample<k>.csv"
    none = f"{here} holds no results ({place}): run a sweep first."
    require(scores, none, FileNotFoundError)
    scores = {one: scores[one] for one in wanted}
    sets = sorted({name for own in scores.values() for name in own})
    datasets, resamples = _complete(scores, sets)
    means = {
        label: {one: float(np.mean([own[one][k] for k in resamples])) for one in datasets}
        for label, own in scores.items()
    }
    wanted = _DEFAULT if published is None else published
    found, more = _published_accuracies(wanted, datasets, resamples, data_dir)
    notes += more
    for name, known in found.items():
        if known:
            means[f"{name}{PUBLISHED}"] = known
        else:
            notes.append(f"There are no published results of {name} on these sets.")
    common = [one for one in datasets if all(one in known for known in means.values())]
    none = "There is no data set with results of all the published estimators"
    require(common, f"{none}: compare with fewer.", FileNotFoundError)
    accuracy = np.array([[known[one] for known in means.values()] for one in common])
    if found:
        # Published tables have few digits; more digits of ours would turn ties into wins.
        accuracy = accuracy.round(_DIGITS)
    left_out = [one for one in sets if one not in common]
    return Comparison(list(means), common, accuracy, resamples, left_out, notes)


def read_folder(folder: str | Path) -> tuple[Results, list[str]]:
    """Return accuracies by estimator, data set and resample, and notes on damaged files."""
    found: Results = {}
    notes = []
    for path in sorted(Path(folder).expanduser().glob(_PATTERN)):
        number = path.stem.removeprefix("testResample")
        if not (number.isdecimal() and path.is_file()):
            continue
        try:
            accuracy = read_accuracy(path)
        except DataError as error:
            notes.append(str(error))
        else:
            own = found.setdefault(path.parents[2].name, {})
            own.setdefault(path.parent.name, {})[int(number)] = accuracy
    return found, notes


def _complete(scores: Results, sets: Sequence[str]) -> tuple[list[str], list[int]]:
    """Return the complete data sets and the resamples that all estimators have."""
    asked = sorted({k for own in scores.values() for one in own.values() for k in one})
    for numbers in (asked, [0]):
        found = set(sets)
        for own in scores.values():
            found &= {one for one, k in own.items() if set(numbers) <= k.keys()}
        if found:
            return sorted(found), numbers
    none = f"no data set with results of all the estimators ({', '.join(scores)})"
    raise FileNotFoundError(f"There is {none}: finish the sweep, or compare fewer.")


def write_tables(comparison: Comparison, folder: Path, results: str | Path) -> list[Path]:
    """Write the record, the table, and one file per estimator in aeon's format."""
    lines = zip(comparison.datasets, comparison.accuracy, strict=True)
    rows = [[name, *(f"{one:.6f}" for one in line)] for name, line in lines]
    table = [["dataset", *comparison.estimators], *rows]
    written = [write_csv(folder / "accuracy.csv", table), folder / "comparison.json"]
    write_json(written[1], plain(comparison.record()))
    scores, numbers = read_folder(results)[0], comparison.resamples
    for label in comparison.own:
        own = scores[label]
        rows = [[name, *(own[name][k] for k in numbers)] for name in comparison.datasets]
        place = folder / "classification" / "accuracy" / f"{label}_accuracy.csv"
        written.append(write_csv(place, [["Resamples:", *numbers], *rows]))
    return written


def _published_accuracies(
    names: Iterable[str],
    datasets: Sequence[str],
    resamples: Sequence[int],
    data_dir: str | Path | None,
) -> tuple[Scores, list[str]]:
    """Return published accuracies on the same resamples, and notes on missing results.

    Tables of the data directory are read first; the rest is requested from the archive.
    """
    table = _table(resamples, data_dir)
    found: Scores = {}
    notes, missing, reason = [], [], ""
    for name in names:
        known = table.get(name.casefold(), {})
        try:
            # If the archive did not answer once, do not ask it again.
            if known.keys().isdisjoint(datasets) and not reason:
                known = _from_archive(name, datasets, resamples)
        except (OSError, ImportError, EOFError) as error:
            reason = " ".join(str(error).split())[:120] or type(error).__name__
        except ValueError as error:  # a name unknown to aeon, or a broken table
            notes.append(f"No published results of {name}: {error}")
            continue
        if reason and known.keys().isdisjoint(datasets):
            missing.append(name)
        else:
            found[name] = {one: known[one] for one in datasets if one in known}
    if missing:
        none = f"No published results of {', '.join(missing)} on these resamples were found"
        why = f"and the archive could not be asked ({reason.rstrip('.')})."
        notes.append(f"{none}, {why}")
    return found, notes


def _table(resamples: Sequence[int], data_dir: str | Path | None) -> Scores:
    """Return the published table of these resamples by lower-case estimator, or {}."""
    name, root = _TABLES.get(tuple(resamples)), downloads.data_directory(data_dir)
    if name is None or root is None or not (path := root / "reference" / name).is_file():
        return {}
    with open(path, newline="", encoding="utf-8") as stream:
        rows = {row.pop("dataset"): row for row in csv.DictReader(stream)}
    labels = {label for row in rows.values() for label in row}
    return {
        label.casefold(): {
            one: float(row[label]) for one, row in rows.items() if row[label]
        }
        for label in labels
    }


def _from_archive(name: str, datasets: Sequence[str], resamples: Sequence[int]) -> dict:
    from aeon.benchmarking.results_loaders import get_estimator_results

    # aeon reads its tables with pandas, which has no timeout of its own.
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(_PATIENCE)
    try:
        scores = get_estimator_results([name], list(datasets), num_resamples=None)[name]
    finally:
        socket.setdefaulttimeout(before)
    return {
        one: float(sum(values[k] for k in resamples) / len(resamples))
        for one, values in scores.items()
        if len(values) > max(resamples)
    }


def draw(comparison: Comparison, folder: Path, kind: str = "svg") -> list[Path]:
    """Write the critical-difference diagram and the pairwise scatters, drawn by aeon."""
    with needs("A figure of a comparison", "sweep"):
        import matplotlib
        import seaborn  # noqa: F401 - aeon asks for it when it draws
        from aeon.visualisation import plot_critical_difference, plot_pairwise_scatter
        from matplotlib import pyplot
    folder.mkdir(parents=True, exist_ok=True)
    written, before = [], set(pyplot.get_fignums())
    names, n_sets = comparison.estimators, len(comparison.datasets)

    def write(figure: Figure, *name: str) -> None:
        words = (re.sub(r"[^\w.+=-]+", "-", word).strip("-") for word in name)
        target = folder / f"{'_'.join(words)}.{kind}"
        written.append(write_figure(target, figure, bbox_inches="tight"))

    style: Any = {"font.family": "DejaVu Sans", "svg.fonttype": "path", "svg.hashsalt": "g"}
    try:
        with matplotlib.rc_context(style), warnings.catch_warnings():
            # With ties or few sets, scipy warns about approximate p-values.
            warnings.simplefilter("ignore")
            if n_sets >= _MIN_SETS and len(names) >= _MIN_ESTIMATORS:
                figure, *_ = plot_critical_difference(comparison.accuracy, names)
                # The title goes above the diagram, whose axes fill the figure.
                figure.suptitle(f"Mean rank of the accuracy, {comparison.basis}", y=1.06)
                write(figure, "critical_difference")
            title, tested = f"Accuracy, {comparison.basis}", n_sets >= _MIN_SETS
            columns = zip(names, comparison.accuracy.T, strict=True)
            for (a, first), (b, second) in itertools.combinations(columns, 2):
                if a in comparison.own:
                    look = {"title": title, "statistic_tests": tested}
                    figure, axes = plot_pairwise_scatter(first, second, a, b, **look)
                    for axis in (axes.xaxis, axes.yaxis):
                        axis.label.set_size("medium")  # it would overlap the legend
                    write(figure, "scatter", a, b)
    finally:
        for number in set(pyplot.get_fignums()) - before:
            pyplot.close(number)
    return written
