"""Formats of text whose header describes the data: ``.ts`` of sktime and aeon, and ARFF.

The tests check our ARFF reader against `scipy.io.arff`. The library does not use SciPy's
reader, which silently drops surplus values of a row, reads ``1_0`` as ten, and cannot say
which series is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from .parsed import DataError, Labels, Parsed, lines_of, parse_values, refuse_data


def _split_at_data(
    content: bytes, comment: str, kind: str
) -> tuple[list[tuple[int, str]], list[str]]:
    """Return the numbered header lines and the data lines, without comments."""
    numbered = enumerate((line.strip() for line in lines_of(content)), start=1)
    full = [(n, line) for n, line in numbered if line and line[0] != comment]
    for i, (_, line) in enumerate(full):
        if line.split(maxsplit=1)[0].lower() == "@data":
            return full[:i], [line for _, line in full[i + 1 :]]
    raise DataError(f"has no @data tag: is it a complete {kind} file?")


# A "(time stamp,value)" pair; only time stamps may contain colons and blanks.
_STAMPED = re.compile(r"\(([^()]*),([^(),]*)\)\s*,?")


def parse_ts(content: bytes, labels: Labels) -> Parsed:
    """Parse a ``.ts`` file; drop time stamps, and keep the case of labels, unlike aeon."""
    head, rows = _split_at_data(content, "#", ".ts")
    tags, classes = _read_tags(head)
    labelled = tags["classlabel"] or tags["targetlabel"]
    undeclared = "declares no class labels: add a `@classLabel true ...` tag."
    refuse_data(labels == "required" and not labelled, undeclared)

    series, written = list[NDArray[np.float64]](), list[str]()
    for case, row in enumerate(rows):
        at = f"series {case} (counting from 0)"
        body, colon, label = row.rpartition(":") if labelled else (row, ":", "")
        refuse_data(not colon, f"has no label after a colon in {at}: is the file complete?")
        plain = (channel.split(",") for channel in body.split(":"))
        channels = _stamped_channels(body, at) if tags["timestamps"] else list(plain)
        many = f"declares univariate series but has {len(channels)} channels in {at}"
        cure = "correct the series or the header."
        refuse_data(tags["univariate"] and len(channels) > 1, f"{many}: {cure}")
        short, long = min(map(len, channels)), max(map(len, channels))
        differ = f"has channels of {short} to {long} steps in {at}"
        cure = "the channels of a series need the same length."
        refuse_data(short != long, f"{differ}: {cure}")
        series.append(parse_values(channels, f"series {case}"))
        written.append(label)
        n_steps = series[0].shape[1]
        differ = f"has {long} steps in series {case} and {n_steps} in series 0"
        cure = "complete it, or declare `@equalLength false`."
        wrong = tags["equallength"] and long != n_steps
        refuse_data(wrong, f"declares equal lengths but {differ}: {cure}")
    unequal = not tags["equallength"]
    if tags["targetlabel"]:
        targets = [parse_values([[y]], f"series {i}").item() for i, y in enumerate(written)]
        return Parsed(series, np.array(targets), None, unequal)
    return Parsed(series, written if labelled else None, classes, unequal)


def _read_tags(head: Iterable[tuple[int, str]]) -> tuple[dict[str, bool], list[str]]:
    """Return the tags that control reading, with aeon's defaults, and the classes."""
    # Ignore the other tags: they repeat the data, and some archive files get them wrong.
    tags = {"timestamps": False, "univariate": True, "equallength": True}
    tags |= {"classlabel": True, "targetlabel": False}
    classes: list[str] = []
    for line_number, line in head:
        word, *values = line.split()
        tag = word[1:].lower()
        # Lines without @ are comments; not all files of the archive mark them with a #.
        if word[0] != "@" or tag not in tags:
            continue
        answer = values[0].lower() if values else ""
        bad = f"has the tag @{tag} in line {line_number} without `true` or `false`"
        refuse_data(answer not in ("true", "false"), f"{bad}: add the value.")
        tags[tag] = answer == "true"
        if tag == "classlabel":
            classes = values[1:]
    return tags, classes


def _stamped_channels(body: str, at: str) -> list[list[str]]:
    """Return the values of ``(stamp,value),...:(stamp,value),...``."""
    channels = [part + ")" for part in body.split("):")]
    channels[-1] = channels[-1][:-1]
    wrong = any(_STAMPED.sub("", channel).strip() for channel in channels)
    none = f"declares time stamps but has none in the form (stamp,value) in {at}"
    refuse_data(wrong, f"{none}: correct the series or the header.")
    return [[value for _, value in _STAMPED.findall(channel)] for channel in channels]


_ATTRIBUTE = re.compile(r"""@attribute\s+('[^']*'|"[^"]*"|\S+)\s+(.+)""", re.IGNORECASE)
_NOMINAL_VALUE = re.compile(r"""'[^']*'|"[^"]*"|[^,]+""")
_RELATIONAL = re.compile(r"""(?:'([^']*)'|"([^"]*)")\s*(?:,(.*))?""")
_NUMERIC = ("numeric", "real", "integer")
_ARFF = "an archive ARFF file has numeric attributes"


def parse_arff(content: bytes, labels: Labels) -> Parsed:
    r"""Parse rows ``value,value,label`` or, if relational, ``'channel\nchannel',label``."""
    head, rows = _split_at_data(content, "%", "ARFF")
    n_steps, relational, classes = _read_attributes(head)
    lacks = "class" if n_steps else "values"
    wrong = not n_steps or (classes is None and labels == "required")
    refuse_data(wrong, f"declares no {lacks} before @data: {_ARFF}, then the class.")

    series, written = [], []
    for case, row in enumerate(rows):
        at = f"series {case} (counting from 0)"
        if relational:
            found = _RELATIONAL.fullmatch(row)
            if found is None or (found[3] is None) != (classes is None):
                form = r"'channel\nchannel'" + ("" if classes is None else ",label")
                raise DataError(f"does not give {at} in the form {form}: correct that row.")
            body, label = found[1] or found[2] or "", found[3]
        else:
            body, _, label = (row, "", "") if classes is None else row.rpartition(",")
        bodies = body.split("\\n") if relational else [body]
        channels = [channel.split(",") for channel in bodies]
        for n in map(len, channels):
            wrong = f"has the wrong number of values in {at}, {n} instead of the {n_steps}"
            cure = "complete or correct that row."
            refuse_data(n != n_steps, f"{wrong} that the header declares: {cure}")
        series.append(parse_values(channels, f"series {case}"))
        written.append(label)
    return Parsed(series) if classes is None else Parsed(series, written, classes)


def _read_attributes(head: Iterable[tuple[int, str]]) -> tuple[int, bool, list[str] | None]:
    """Return the number of steps, whether they are relational, and the classes."""
    n_steps, relational, classes = 0, False, None
    inside = False  # between `@attribute ... relational` and `@end`
    for line_number, line in head:
        tag = line.split(maxsplit=1)[0].lower()
        if tag in ("@relation", "@end"):
            inside = inside and tag != "@end"
            continue
        attribute = _ATTRIBUTE.fullmatch(line)
        # Anything after the class would be read as the class.
        if attribute is None or classes is not None:
            wrong = f"has {line[:40]!r} in line {line_number}, which does not belong in its"
            raise DataError(f"{wrong} header: {_ARFF}, then the class.")
        kind = attribute[2].strip()
        if kind.lower() == "relational" and not n_steps and not relational:
            relational = inside = True
        elif kind.lower().startswith(_NUMERIC) and (inside or not relational):
            n_steps += 1
        elif kind.startswith("{") and kind.endswith("}") and not inside:
            classes = [value.strip() for value in _NOMINAL_VALUE.findall(kind[1:-1])]
        else:
            wrong = f"has an attribute of type {kind[:40]!r} in line {line_number}"
            raise DataError(f"{wrong}: {_ARFF}, then a class such as {{1,2}}.")
    return n_steps, relational, classes
