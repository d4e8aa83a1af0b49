"""Fitted classifiers as files that hold numbers, not code.

A model file is an uncompressed zip archive: ``metadata.json`` and one ``.npy`` file per
array (so that ``numpy.load`` opens it too). It is written beside its place and moved there
at the end, so that a crash leaves the old file or the new one. Reading allows no pickles,
no compression and no more data than the file is long; whatever is wrong with a file, the
error is a `ModelFileError` and nothing of it has been executed.
"""

from __future__ import annotations

import ast
import io
import json
import math
import re
import zipfile
from dataclasses import asdict
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

import numpy as np

from .._files import replacing
from ..decisions import Decision
from ..diagnosis import EtaChoice
from ..gains import Gain
from ..reservoir import Reservoir
from ..systems import Network
from ..unfolding import Kernel
from ..validity import Validity
from .estimator import ReservoirClassifier
from .heads import Head
from .parameters import check_parameters

__all__ = ["ModelFileError", "load", "save"]

_FORMAT = "greenfold-model"
#: Raised when a reader of the older version would misunderstand the file.
_VERSION = 2
_METADATA = "metadata.json"
_METADATA_BYTES = 2**20
_HEADER_BYTES = 4096
#: Real numbers, truth values and text of fixed width; nothing that needs a pickle.
_DTYPE = re.compile(r"[<>|](?:[fiu][1248]|b1|U[1-9][0-9]{0,5})")


class ModelFileError(ValueError):
    """A file does not hold a classifier that this version can read."""


def save(classifier: ReservoirClassifier, path: str | Path) -> None:
    """Write a fitted classifier.

    Parameters
    ----------
    classifier : ReservoirClassifier
    path : str or Path
        Replaced if it exists, in one step at the end.

    Notes
    -----
    A ``random_state`` that is a generator is not kept, nor is what `partial_fit` would
    need to go on.
    """
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(classifier)
    arrays: dict[str, np.ndarray] = {}
    metadata = _describe(classifier, arrays)
    text = json.dumps(metadata, indent=1).encode()
    with (
        replacing(Path(path)) as stream,
        zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive,
    ):
        archive.writestr(_METADATA, text)
        for name, array in arrays.items():
            buffer = io.BytesIO()
            np.lib.format.write_array(buffer, np.ascontiguousarray(array), (1, 0), False)
            archive.writestr(f"{name}.npy", buffer.getvalue())


def load(path: str | Path) -> ReservoirClassifier:
    """Read a classifier that `save` wrote.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    ReservoirClassifier
        Fitted: predicts exactly as the saved one did.

    Raises
    ------
    ModelFileError
        If the file is damaged, of another kind or of a newer version.
    FileNotFoundError
        If there is no such file.
    """
    with open(path, "rb") as stream:
        try:
            metadata, arrays = _read_archive(stream)
            return _restore(metadata, arrays)
        except ModelFileError as error:
            raise ModelFileError(f"{path} can not be read: {error}") from None
        except Exception as error:  # a damaged file fails in more ways than can be listed
            reason = f"{type(error).__name__}: {error}".strip().rstrip(":")
            raise ModelFileError(
                f"{path} can not be read: it is damaged, or no greenfold model ({reason})."
            ) from None


# Writing


def _describe(
    classifier: ReservoirClassifier, arrays: dict[str, np.ndarray]
) -> dict[str, Any]:
    """Everything but the arrays, which are put into ``arrays``."""
    from .. import __version__

    heads: list[Head] = classifier.heads_
    decision: Decision = classifier.decision_
    scores = classifier.eta_scores_
    classes = classifier.classes_
    if classes.dtype.kind == "O":
        if not all(isinstance(label, str) for label in classes):
            raise TypeError(
                "labels must be numbers or text to be saved; got "
                f"{sorted({type(label).__name__ for label in classes})}."
            )
        arrays["classes"] = classes.astype(str)
    else:
        arrays["classes"] = classes
    for name in ("centre", "u", "v"):
        arrays[name] = np.stack([getattr(head, name) for head in heads])
    for name in ("scale", "soft_margin", "bound", "n_iter"):
        arrays[name] = np.array([getattr(head, name) for head in heads])
    kernels = [head.kernel for head in heads if head.kernel is not None]
    if kernels:
        arrays["kernel_linear"] = np.stack([kernel.linear for kernel in kernels])
        quadratic = [k.quadratic for k in kernels if k.quadratic is not None]
        if quadratic:
            arrays["kernel_quadratic"] = np.stack(quadratic)
    arrays["coupling"], arrays["threshold"] = decision.coupling, decision.threshold
    if scores is not None:
        arrays["etas"], arrays["eta_score"] = scores.etas, scores.score
        arrays["eta_accuracy"] = scores.accuracy
    validity = [None if h.validity is None else asdict(h.validity) for h in heads]
    names = getattr(classifier, "feature_names_in_", None)
    return {
        "format": _FORMAT,
        "version": _VERSION,
        "greenfold": __version__,
        "estimator": "ReservoirClassifier",
        "parameters": {
            name: _pack(name, value, arrays)
            for name, value in classifier.get_params(deep=False).items()
        },
        "reservoir": _pack_reservoir("network", classifier.reservoir_, arrays),
        "eta": classifier.eta_,
        "slope": decision.slope,
        "n_channels": classifier.n_channels_in_,
        "n_steps": classifier.n_features_in_,
        "any_length": classifier._any_length,
        "feature_names": None if names is None else list(names),
        "classes_are_objects": classes.dtype.kind == "O",
        "validity": validity,
    }


def _pack(name: str, value: Any, arrays: dict[str, np.ndarray]) -> Any:
    """A parameter in JSON; arrays go elsewhere under its name."""
    if isinstance(value, Network):
        return {"reservoir": _pack_reservoir(f"parameter_{name}", value, arrays)}
    if isinstance(value, dict):
        pairs = [[_plain(k), _plain(v)] for k, v in value.items()]
        return {"pairs": pairs}
    if name == "random_state" and not isinstance(value, int | np.integer):
        return None
    if value is None or isinstance(value, str | bool | int | float | np.generic):
        return _plain(value)
    dense = value.toarray() if hasattr(value, "toarray") else value
    arrays[f"parameter_{name}"] = np.asarray(dense, dtype=np.float64)
    return {"array": f"parameter_{name}"}


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _pack_reservoir(
    name: str, reservoir: Network, arrays: dict[str, np.ndarray]
) -> dict[str, Any]:
    gain = reservoir.gain
    if gain.kind is None:
        raise TypeError(f"the gain {gain.name} is made of code and can not be saved.")
    arrays[f"{name}_weights"] = reservoir.weights
    return {
        "weights": f"{name}_weights",
        "tau": reservoir.tau,
        "allow_unstable": reservoir.allow_unstable,
        "gain": gain.kind,
        "gain_parameters": dict(gain.parameters),
    }


# Reading


def _refuse(reason: str) -> NoReturn:
    raise ModelFileError(reason)


def _read_archive(stream: BinaryIO) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Metadata and arrays, with no more memory than the file is long."""
    length = stream.seek(0, io.SEEK_END)
    stream.seek(0)
    with zipfile.ZipFile(stream) as archive:
        members = archive.infolist()
        if len({member.filename for member in members}) != len(members):
            _refuse("a part of it occurs twice.")
        if any(member.compress_type != zipfile.ZIP_STORED for member in members):
            _refuse("it is compressed, which a greenfold model is not.")
        # Stored parts can not be longer together than the file, unless they overlap.
        if sum(member.file_size for member in members) > length:
            _refuse("its parts are longer than the file.")
        content = {member.filename: archive.read(member) for member in members}
    text = content.pop(_METADATA, None)
    if text is None or len(text) > _METADATA_BYTES:
        _refuse("it is not a greenfold model, having no metadata.")
    metadata = json.loads(text)
    if not isinstance(metadata, dict) or metadata.get("format") != _FORMAT:
        _refuse("it is not a greenfold model.")
    version = metadata.get("version")
    if version != _VERSION:
        _refuse(
            f"it has the format version {version!r} and this greenfold reads version "
            f"{_VERSION}; update greenfold, or save the model again."
        )
    arrays = {}
    for name, data in content.items():
        if not name.endswith(".npy"):
            _refuse(f"it has an unknown part {name!r}.")
        arrays[name.removesuffix(".npy")] = _read_array(name, data)
    return metadata, arrays


def _read_array(name: str, data: bytes) -> np.ndarray:
    """One .npy file, by its documented layout.

    Not numpy's reader: it allocates what a header asks for before it looks at the data.
    """
    if data[:6] != b"\x93NUMPY" or data[6:8] != b"\x01\x00":
        _refuse(f"its part {name!r} is not an array.")
    start = 10 + int.from_bytes(data[8:10], "little")
    if start > min(_HEADER_BYTES, len(data)):
        _refuse(f"its part {name!r} has a wrong header.")
    header = ast.literal_eval(data[10:start].decode("latin-1").strip())
    kind, shape = header["descr"], header["shape"]
    if not isinstance(kind, str) or not _DTYPE.fullmatch(kind):
        _refuse(f"its part {name!r} holds something else than numbers or text.")
    sizes = isinstance(shape, tuple) and all(type(n) is int and n >= 0 for n in shape)
    if not sizes or header["fortran_order"] is not False:
        _refuse(f"its part {name!r} has a wrong shape.")
    dtype = np.dtype(kind)
    if math.prod(shape) * dtype.itemsize != len(data) - start:
        _refuse(f"its part {name!r} is not as long as it should be.")
    return np.frombuffer(data, dtype, offset=start).reshape(shape).copy()


def _restore(
    metadata: dict[str, Any], arrays: dict[str, np.ndarray]
) -> ReservoirClassifier:
    given = {
        name: _unpack(name, value, arrays) for name, value in metadata["parameters"].items()
    }
    classifier = ReservoirClassifier(**given)
    check_parameters(classifier)
    classes = arrays["classes"]
    if classes.ndim != 1 or len(np.unique(classes)) != len(classes) or len(classes) < 2:
        _refuse("its classes are not distinct labels.")
    network = _unpack_reservoir(metadata["reservoir"], arrays)
    n_heads = 1 if len(classes) == 2 else len(classes)
    shape = int(metadata["n_channels"]), int(metadata["n_steps"])
    wanted = {
        "centre": (n_heads, *shape),
        "u": (n_heads, network.n_neurons, shape[0]),
        "v": (n_heads, network.n_neurons),
        "scale": (n_heads,),
        "soft_margin": (n_heads,),
        "bound": (n_heads,),
        "n_iter": (n_heads,),
        "kernel_linear": (n_heads, *shape),
        "kernel_quadratic": (n_heads, *shape, *shape),
        "coupling": (n_heads, n_heads),
        "threshold": (n_heads,),
    }
    optional = {"kernel_linear", "kernel_quadratic"}
    for name, size in wanted.items():
        if name in optional and name not in arrays:
            continue
        array = arrays[name]
        if array.shape != size or array.dtype.kind not in "iuf":
            _refuse(f"its array {name!r} has shape {array.shape} instead of {size}.")
        if name != "bound" and not np.isfinite(array).all():
            _refuse(f"its array {name!r} is not finite.")
    validity = metadata["validity"]
    if len(validity) != n_heads:
        _refuse("its diagnosis of the expansion does not fit its classes.")
    linear, quadratic = arrays.get("kernel_linear"), arrays.get("kernel_quadratic")
    heads = [
        Head(
            centre=arrays["centre"][i],
            scale=float(arrays["scale"][i]),
            u=arrays["u"][i],
            v=arrays["v"][i],
            kernel=None
            if linear is None
            else Kernel(linear[i], None if quadratic is None else quadratic[i]),
            soft_margin=float(arrays["soft_margin"][i]),
            bound=float(arrays["bound"][i]),
            n_iter=int(arrays["n_iter"][i]),
            validity=None if validity[i] is None else Validity(**validity[i]),
        )
        for i in range(n_heads)
    ]
    classifier.classes_ = (
        classes.astype(object) if metadata["classes_are_objects"] else classes
    )
    classifier.n_channels_in_, classifier.n_features_in_ = shape
    classifier._any_length = bool(metadata["any_length"])
    if metadata["feature_names"] is not None:
        names = np.array([str(n) for n in metadata["feature_names"]], dtype=object)
        classifier.feature_names_in_ = names  # pyright: ignore[reportAttributeAccessIssue]
    classifier.reservoir_ = network
    classifier.eta_ = float(metadata["eta"])
    classifier.eta_scores_ = None
    if "etas" in arrays:
        etas, score, accuracy = (
            arrays[name] for name in ("etas", "eta_score", "eta_accuracy")
        )
        if etas.ndim != 1 or score.shape != etas.shape or len(accuracy) != len(etas):
            _refuse("its record of the choice of eta does not fit together.")
        classifier.eta_scores_ = EtaChoice(etas, accuracy, score, classifier.eta_)
    slope = float(metadata["slope"])
    decision = Decision(arrays["coupling"], arrays["threshold"], slope)
    classifier._publish(heads, decision)
    return classifier


def _unpack(name: str, value: Any, arrays: dict[str, np.ndarray]) -> Any:
    if not isinstance(value, dict):
        return value
    if set(value) == {"array"}:
        return arrays[value["array"]]
    if set(value) == {"pairs"}:
        return {key: float(weight) for key, weight in value["pairs"]}
    if set(value) == {"reservoir"}:
        return _unpack_reservoir(value["reservoir"], arrays)
    return _refuse(f"its parameter {name!r} is of no known kind.")


def _unpack_reservoir(
    described: dict[str, Any], arrays: dict[str, np.ndarray]
) -> Reservoir:
    gain = Gain.of_kind(described["gain"], described["gain_parameters"])
    return Reservoir(
        arrays[described["weights"]],
        float(described["tau"]),
        gain,
        bool(described["allow_unstable"]),
    )
