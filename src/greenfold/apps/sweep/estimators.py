"""Which estimator a text means, and by what code it is made."""

from __future__ import annotations

import ast
import difflib
import functools
import hashlib
import importlib
import inspect
import pkgutil
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

from ..._base.checks import require
from ..._base.files import plain
from ..runner import source_digest

_CONVOLUTION = "aeon.classification.convolution_based:"
#: Estimators by the names that the literature and aeon's results use.
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
#: Parts of greenfold that no estimator imports; a change there changes no result.
_ABOVE = {"apps", "cli"}


@dataclass(frozen=True)
class EstimatorSpec:
    """An estimator that can be sent to another machine."""

    label: str  # name of its folder of results
    target: str  # module:Class
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def load(self) -> type:
        """The class; a sentence if there is no such module or class."""
        module, _, name = self.target.partition(":")
        try:
            found = getattr(importlib.import_module(module), name)
        except ModuleNotFoundError as error:
            wanted = module.partition(".")[0]
            if wanted == "aeon" and (error.name or "").partition(".")[0] == "aeon":
                raise ImportError(
                    f"The estimator {self.label!r} needs aeon: pip install "
                    "'greenfold[sweep]'."
                ) from None
            raise ValueError(
                f"The module of the estimator `{self.target}` cannot be imported: {error}."
            ) from None
        except AttributeError:
            raise ValueError(f"The module `{module}` has no class {name!r}.") from None
        usable = inspect.isclass(found) and hasattr(found, "fit")
        require(usable, f"`{self.target}` is not a class with a `fit` method.")
        return found

    def make(self, seed: int | None) -> Any:
        """An unfitted estimator; the seed is its ``random_state`` where it has one."""
        kind = self.load()
        chosen = dict(self.parameters)
        known = inspect.signature(kind).parameters
        if "random_state" in known and seed is not None:
            chosen.setdefault("random_state", seed)
        try:
            return kind(**chosen)
        except TypeError as error:
            raise ValueError(
                f"The estimator {self.label!r} does not take these parameters: {error}."
            ) from None

    def code(self) -> str:
        """The installed version, or a digest of sources that are not installed."""
        return _code_of(self.load().__module__)


def parse_estimator(text: str | EstimatorSpec) -> EstimatorSpec:
    """The estimator that ``[label=]name[(parameter=value, ...)]`` means."""
    if isinstance(text, EstimatorSpec):
        return text
    found: Any = _TEXT.fullmatch(text.strip())
    forms = "a name, module:Class or 'name(parameter=value, ...)'"
    require(found, f"An estimator must be given as {forms}; got {text!r}.")
    parameters, label = _parameters(found["parameters"], text), found["label"]
    name, target = _resolve(found["target"])
    if label is None:
        shown = [f"{key}={value}" for key, value in parameters.items()]
        label = "-".join([name, *(re.sub(r"[^\w.+=-]+", "_", one) for one in shown)])
    return EstimatorSpec(label, target, parameters)


def _parameters(text: str | None, whole: str) -> dict[str, Any]:
    if not text:
        return {}
    try:
        call: Any = ast.parse(f"f({text})", mode="eval").body
        is_call = isinstance(call, ast.Call) and isinstance(call.func, ast.Name)
        named = is_call and not call.args and all(one.arg for one in call.keywords)
        require(named, "")  # one message for every way of being wrong
        found = {str(one.arg): ast.literal_eval(one.value) for one in call.keywords}
        plain(found)
    except (SyntaxError, ValueError, TypeError):
        raise ValueError(
            "The parameters of an estimator must be literals with a name, as in "
            f"'name(depth=3, kind=\"x\")'; got {whole!r}."
        ) from None
    return found


def _resolve(name: str) -> tuple[str, str]:
    """Name and ``module:Class``."""
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
    raise ValueError(
        f"There is no estimator {name!r} (any other class is given as module:Class); {hint}"
    )


@functools.cache
def _classes_of_aeon() -> dict[str, str]:
    """Classes in aeon's classification modules, by name."""
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
            continue  # needs what is not installed
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
    if Path(file).name != "__init__.py":
        digest = hashlib.sha256(Path(file).read_bytes()).hexdigest()[:16]
    else:
        digest = source_digest(folder, _ABOVE if top == "greenfold" else ())
    return f"{top} sources {digest}"
