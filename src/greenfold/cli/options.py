"""The options of the commands, and the decorator that makes a command from a function.

The parameters of a command are options (``size: int = opt(100, "Network")``) or groups of
options: frozen dataclasses whose fields are options. `command` merges both into one flat
signature for typer and passes the groups to the function. Modules with commands keep their
annotations as objects, because compiling them from text would slow down every start.
"""

import dataclasses
import functools
import inspect
import json
import math
import os
import re
import shlex
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    NamedTuple,
    TypeVar,
    dataclass_transform,
    get_type_hints,
)

import typer

from .._base.interrupts import raise_if_interrupted
from .._base.messages import Argument
from .._base.progress import display

if TYPE_CHECKING:
    import numpy as np

    from ..apps.runner import Workers
    from ..datasets.connectome import Connectome
    from ..networks.reservoir import Reservoir

#: The name of the built-in data set, which needs no files.
SYNTHETIC = "synthetic-heartbeats"
_Class = TypeVar("_Class")


# Making a command from a function


#: Names of types in the help.
_FORMS: dict[Any, str] = {int: "N", float: "NUMBER", Path: "PATH"}
#: The panel with the most important options, which the help shows first.
MAIN = "Options"


class _Option(NamedTuple):
    """An option, or a positional argument if ``names`` is None, before typer gets it."""

    default: Any
    names: tuple[str, ...] | None
    settings: dict[str, Any]
    sets: tuple[str, ...] = ()

    @property
    def repeats(self) -> bool:
        """Whether the option may be repeated; its values are then joined."""
        return self.settings.get("parser") is words

    def describe(self, help: str | None, panel: str | None = None) -> "_Option":
        """Return the option with this help and panel, unless it has its own."""
        place = self.settings.get("rich_help_panel") or panel
        settings = {"help": help, **self.settings, "rich_help_panel": place}
        return self._replace(settings=settings)

    def parameter(self, name: str, hint: object, default: object) -> inspect.Parameter:
        """Return a parameter for typer; ``name`` is also the default long option."""
        names, settings = self.names, self.settings
        if "parser" in settings:  # typer looks at the parser alone, but refuses a union
            hint = list[Any] if self.repeats else Any
        kinds = (one for one in _FORMS if hint in (one, one | None, list[one] | None))
        kind = next(kinds, None)
        if kind is not None:  # shorter than typer's type names
            settings = {"metavar": _FORMS[kind], **settings}
        if names is None:
            mark = typer.Argument(**settings)
        elif any(one.startswith("--") for one in names):
            mark = typer.Option(*names, **settings)
        else:
            mark = typer.Option(f"--{name.replace('_', '-')}", *names, **settings)
        given = inspect.Parameter.empty if default is ... else default
        return _keyword(name, Annotated[hint, mark], given)


def _keyword(
    name: str, annotation: object, default: object = inspect.Parameter.empty
) -> inspect.Parameter:
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, kind, default=default, annotation=annotation)


def opt(
    default: object = None,
    panel: str | None = None,
    *names: str,
    sets: str | tuple[str, ...] = (),
    **more: Any,
) -> Any:
    """Define an option, named after its parameter; ``names`` adds or replaces names.

    ``sets`` is what it sets in the library, if that has another name: an argument, or a
    value such as "missing='trim'" of a flag (and of its ``--no-…``). Errors about it name
    the option. All other keywords are passed to `typer.Option`. Its help is the line
    ``name : help`` in the docstring of the group or command.
    """
    sets = (sets,) if isinstance(sets, str) else sets
    return _Option(default, names, {"rich_help_panel": panel, **more}, sets)


def arg(default: object, metavar: str, **more: Any) -> Any:
    """Define a positional argument; the default ``...`` makes it required."""
    return _Option(default, None, {"metavar": metavar, **more})


def _described(owner: object) -> tuple[str, dict[str, str]]:
    """Return the text of a docstring, and its lines ``name : help`` as a dict."""
    text, *found = re.split(r"^(\w+) : ", inspect.getdoc(owner) or "", flags=re.MULTILINE)
    helps = (" ".join(one.split()) for one in found[1::2])
    return text, dict(zip(found[::2], helps, strict=True))


@dataclass_transform(frozen_default=True, kw_only_default=True)
def group(panel: str) -> Callable[[type[_Class]], type[_Class]]:
    """Return a decorator for a group of options; ``panel`` is their default panel."""

    def make(cls: type[_Class]) -> type[_Class]:
        helps = _described(cls)[1]
        for name, one in list(vars(cls).items()):
            if isinstance(one, _Option):
                option = one.describe(helps.get(name), panel)
                field = dataclasses.field(default=one.default, metadata={"option": option})
                setattr(cls, name, field)
        return dataclasses.dataclass(frozen=True, kw_only=True, repr=False)(cls)

    return make


class Answer(NamedTuple):
    """The result of a command: a record for ``--json``, and a function that prints it."""

    record: dict[str, Any]
    show: Callable[[], None]
    failed: bool = False


class _Invocation:
    """The running command, as the user typed it."""

    def __init__(self) -> None:
        self.arguments: list[str] = []
        self.context: Any = None
        #: What the options set under another name, by the name of their parameter.
        self.sets: dict[str, tuple[str, ...]] = {}
        #: What the reader concluded about the data, printed above the answer.
        self.notes: list[str] = []

    def line(self) -> str:
        """Return the command line, ready to be typed again."""
        return shlex.join(["greenfold", *self.arguments])

    def option(self, argument: Argument) -> str | None:
        """Return the option that sets this argument of the library, or None."""
        for one in self.context.command.params if self.context else ():
            options = [name for name in one.opts if name[:2] == "--"][:1]
            sets, meant = self.sets.get(one.name, ()), str(argument).strip("`")
            if meant in sets:  # an option of several words sets all of its arguments
                names = [*options, *one.secondary_opts]
                return names[min(sets.index(meant), len(names) - 1)]
            if options and argument.name == one.name:
                value = "" if argument.value is None else argument.value
                value = ",".join(map(str, value)) if isinstance(value, list) else value
                return f"{options[0]} {value}".rstrip()
        return None

    def typed(self, argument: Argument) -> str | None:
        """Return the option that sets this argument, if the user typed it."""
        option = self.option(argument)
        return option if option in self.given() else None

    def given(self, *names: str) -> list[str]:
        """Return the options that the user typed, or those of the named parameters."""
        return [
            one.opts[0]
            for one in (self.context.command.params if self.context else ())
            if (not names or one.name in names)
            and self.context.get_parameter_source(one.name).name == "COMMANDLINE"
        ]

    def files_read(self, *written: str) -> dict[str, str]:
        """Return the files that the command reads, each with its option or argument."""
        found = {}
        for one in self.context.command.params if self.context else ():
            value = self.context.params.get(one.name)
            given = one.name not in written and isinstance(value, str | Path)
            if given and os.path.isfile(value):
                is_option = one.param_type_name == "option"
                found[os.path.realpath(value)] = one.opts[0] if is_option else one.metavar
        return found

    def refuse(self, why: str, *names: str) -> None:
        """Raise if the user typed one of the named parameters."""
        for option in self.given(*names):
            raise typer.BadParameter(f"{option} {why}")


invocation = _Invocation()


def command(example: str) -> Callable[[Callable[..., Answer]], Any]:
    """Return a decorator that makes a command, which also takes ``--json`` and ``--debug``.

    If the function has a parameter ``json``, it gets the value of that option.
    """

    def register(function: Callable[..., Answer]) -> Any:
        hints, (text, helps) = get_type_hints(function), _described(function)
        groups: dict[str, list[str]] = {}
        options: dict[str, tuple[_Option, object, object]] = {}  # with type and default
        for name, one in inspect.signature(function).parameters.items():
            if isinstance(one.default, _Option):
                option = one.default.describe(helps.get(name))
                options[name] = option, hints[name], option.default
                continue
            own = get_type_hints(hints[name])
            groups[name] = list(own)
            for each in dataclasses.fields(hints[name]):
                option = each.metadata["option"]
                if each.name in helps:  # the command has its own help
                    option = option._replace(
                        settings=option.settings | {"help": helps[each.name]}
                    )
                options[each.name] = option, own[each.name], getattr(one.default, each.name)
        if "json" not in hints:
            options["json"] = JSON, bool, False
        # `app` reads this option from the command line.
        debug = opt(False, "Output", help="Show the traceback of an error.")
        options["debug"] = debug, bool, False
        flat = [_keyword("ctx", typer.Context)]
        flat += [one.parameter(name, *more) for name, (one, *more) in options.items()]
        sets = {name: option.sets for name, (option, *_) in options.items()}
        repeated = [name for name, (option, *_) in options.items() if option.repeats]

        @functools.wraps(function)
        def run(ctx: typer.Context, debug: bool, **given: Any) -> None:
            invocation.context, invocation.sets, invocation.notes = ctx, sets, []
            as_json = given["json"] if "json" in hints else given.pop("json")
            for name in repeated:
                given[name] = given[name] and [one for part in given[name] for one in part]
            for name, fields in groups.items():
                given[name] = hints[name](**{each: given.pop(each) for each in fields})
            try:
                answer = function(**given)
            except KeyboardInterrupt as error:
                for note in getattr(error, "__notes__", ()):
                    print(f"greenfold: {note}", file=sys.stderr)
                raise
            if as_json:
                from .._base.files import plain

                # Invalid text (lone surrogates) stays escaped, so that any reader can
                # parse it.
                print(json.dumps(plain(answer.record), indent=2, allow_nan=False))
            else:
                for note in dict.fromkeys(invocation.notes):
                    print(note)
                answer.show()
            if answer.failed:
                raise typer.Exit(1)

        made: Any = run
        made.__signature__ = inspect.Signature(flat)
        made.__annotations__ = {one.name: one.annotation for one in flat}
        # Paragraphs without line breaks, because the terminal wraps them.
        made.__doc__ = "\n\n".join(" ".join(part.split()) for part in text.split("\n\n"))
        made.epilog = f"Example: [bold]{example}[/bold]"
        return made

    return register


# Readers of values that typer cannot parse


def reader(
    read: Callable[[str], Any],
    form: str,
    wanted: str,
    allowed: Callable[[Any], object] = lambda _: True,
) -> dict[str, Any]:
    """Return the settings of an option that is read by a function.

    ``form`` is the form of the value in the help; other values "must be ``wanted``".
    """

    def checked(text: str) -> object:
        with suppress(ValueError):
            if allowed(value := read(text)):
                return value
        raise typer.BadParameter(f"must be {wanted}, not {text!r}")

    return {"parser": checked, "metavar": form}


def number_or(word: str) -> dict[str, Any]:
    """Return the settings of an option for a positive number or this word."""
    return reader(
        lambda text: text if text == word else float(text),
        f"NUMBER|{word}",
        f"a positive number or '{word}'",
        lambda one: one == word or 0 < one < math.inf,
    )


def words(text: str) -> list[str]:
    """Split ``A,B`` into words."""
    return [one.strip() for one in text.split(",") if one.strip()]


def several(kind: Callable[[str], Any]) -> Callable[[str], list[Any]]:
    """Return a function that splits ``2,5`` into values of a kind."""
    return lambda text: [kind(one) for one in text.split(",")]


def ranges(text: str) -> list[int]:
    """Return the sorted numbers of a text such as ``1-10``, ``1,2,5`` or a mix of both."""
    found: set[int] = set()
    for part in text.split(","):
        first, dash, last = part.partition("-")
        found |= set(range(int(first), int(last if dash else first) + 1))
    return sorted(found)


WORDS = {"parser": words, "metavar": "A[,B,…]"}
COUNTS = reader(
    several(int), "K[,…]", "whole numbers of at least 1", lambda found: min(found) >= 1
)
ORDER = reader(
    lambda text: text if text == "exact" else int(text),
    "0…5|exact",
    "0 to 5 or 'exact'",
    ("exact", *range(6)).__contains__,
)
_SEEDS = reader(
    int, "N", "a whole number from 0 to 4294967295", lambda one: 0 <= one < 2**32
)


# Options that several commands share


def complete_dataset(incomplete: str) -> list[str]:
    """Return names of data sets on this machine, or nothing if listing them fails."""
    from ..datasets.downloads import list_datasets

    try:
        return [name for name in list_datasets() if name.startswith(incomplete)]
    except (OSError, ValueError):
        return []


DATA = arg(
    ...,
    "DATA",
    help="Data set ([bold]greenfold data list[/bold]) or file: .ts, .tsv, .txt, .csv, "
    ".arff, .npz or .npy, also with .gz; .h5, .zarr or .parquet, which may be larger than "
    "memory. Each line of a table is one series, with its label first. [bold]-[/bold] "
    "reads standard input and needs --format.",
    autocompletion=complete_dataset,
)
MODEL = arg(..., "MODEL", help="Model saved by fit.")
JSON = opt(False, "Output", help="Print only JSON.")
REPORT = opt(None, MAIN, help="Write a report to this HTML file.")
JOBS = opt(None, "Output", "-j", help="Number of threads; one by default.", sets="n_jobs")
DURATION = opt(10.0, "Network", help="Duration of the longest series.")
DATA_DIR = opt(
    None, "Data", help="Directory with data sets; by default the value of GREENFOLD_DATA."
)
PART = opt("test", "Data", help="Part of the data set to use.")
PartName = Literal["train", "test", "all"]


def seed(what: str, panel: str | None = MAIN, default: int | None = 0) -> Any:
    """Define the option --seed; ``what`` is its help."""
    return opt(default, panel, help=what, **_SEEDS)


SEED = seed("Seed for the network, random projections and splits.")
DATA_SEED = seed("Seed for the built-in synthetic series and for noise.", "Data")


def holdout(default: float, least: float) -> Any:
    """Define the option --holdout."""
    what = "Share of a file's series to hold out for testing, at most 0.9."
    return opt(default, MAIN, help=what, min=least, max=0.9)


#: The options of `Reading` that are for tables alone.
TABLE = ("label_column", "series_column", "drop", "decimal", "encoding")


@group("Data")
class Reading:
    """How DATA is read.

    trim : Cut off missing values at the end of each series.
    format : Format of DATA, if it has no known suffix: ts, tsv, txt, csv, arff, npz or npy.
    label_column : Column with the labels of a table: its name, its number from 0, or last.
    series_column : Column that tells the series apart, in a table of one sample per line.
    drop : Columns of a table to leave out, such as dates: names or numbers, with commas.
    decimal : Decimal mark of a table, a point or a comma.
    encoding : Encoding of a table that is not in UTF-8, such as latin-1.
    """

    data_dir: Path | None = DATA_DIR
    trim: bool = opt(False, sets="missing='trim'")
    format: str | None = opt(None, metavar="FORMAT")
    label_column: str | None = opt(None, metavar="COLUMN")
    series_column: str | None = opt(None, metavar="COLUMN")
    drop: list[str] | None = opt(None, **WORDS)
    decimal: Literal[".", ","] | None = opt(None, metavar="MARK")
    encoding: str | None = opt(None, metavar="NAME")
    classes = None


@group("Data")
class Labelled(Reading):
    """How DATA is read with its labels.

    y : File with one label per series, if DATA has no labels: .npy, or text with one label
        per line.
    classes : Use only these classes; a single class is compared with all others.
    """

    y: Path | None = opt()
    classes: list[str] | None = opt(None, MAIN, **WORDS)


@group("Data")
class Tested(Labelled):
    """How DATA and the test series are read.

    test : File with test series, if DATA is a file.
    """

    test: Path | None = opt(None, MAIN)


#: What --columns names, in this order.
EDGE_COLUMNS = "source", "target", "weight", "sign"
_COLUMNS = reader(
    words,
    "SOURCE,TARGET[,WEIGHT[,SIGN]]",
    "two to four names of columns",
    lambda names: 2 <= len(names) <= len(EDGE_COLUMNS),
)


class OwnWeights(NamedTuple):
    """The weights in a file, and the connectome in a list of edges."""

    weights: Any
    edges: "Connectome | None" = None


@group("Network")
class NetworkOptions:
    """A random network, or your own.

    neurons : Number of neurons.
    g : Spread g of the random weights, approximately their spectral radius; a list of edges
        is scaled to this spectral radius.
    weights : File with your own weights, in place of a random network: a square matrix as
        .npy, .npz, .csv, .tsv or .txt, where row i holds the connections to neuron i; or a
        list of edges between named cells, with a header line, or as .parquet.
    columns : Columns of a list of edges; those of FlyWire, neuPrint, and source, target and
        weight are known.
    inhibitory : Cells of a list of edges that inhibit, if it has no column of signs: names,
        patterns ('GABA*'), or a file whose first column lists them.
    cells : File whose first column lists all cells of a list of edges.
    """

    neurons: int = opt(100, MAIN, "-n", min=1, sets="n_neurons")
    g: float = opt(0.9, sets="spectral_radius")
    weights: Path | None = opt()
    columns: Any = opt(None, **_COLUMNS, sets=EDGE_COLUMNS)
    inhibitory: Any = opt(None, **WORDS)
    cells: Path | None = opt()

    @functools.cached_property
    def own(self) -> "OwnWeights | None":
        """The network in the file, or None for a random network."""
        if self.weights is None:
            why = "is for a list of edges; it needs --weights"
            invocation.refuse(why, "columns", "inhibitory", "cells")
            return None
        invocation.refuse("is for random networks; leave it out with --weights", "neurons")
        from .inputs import read_network

        return OwnWeights(*read_network(self, self.weights))

    def reservoir(self, tau: float, rng: "int | np.random.Generator") -> "Reservoir":
        """Return the network, with the same time constant for all neurons."""
        from ..networks.reservoir import Reservoir

        if self.own is not None:
            return Reservoir(self.own.weights, tau=tau)
        return Reservoir.random(self.neurons, g=self.g, tau=tau, rng=rng)


@group("Network")
class Classifier(NetworkOptions):
    """Parameters of `ReservoirClassifier`.

    order : 0 for the linear network, 1 for the paper's first order in α, or 'exact' to
        integrate the network.
    alpha : Non-linearity α of the gain y + αy², for orders of at least 1.
    tau : Time constant τ of the neurons, in the unit of the duration, or 'auto'.
    eta : Weight η of the variance in the soft margin κ, or 'cv' to choose it by
        cross-validation.
    noise : Standard deviation of the noise on every neuron's state at the readout.
    device : Device that runs the network: cpu, cuda or cuda:1, … (PyTorch).
    """

    order: int | str = opt("0", **ORDER)
    alpha: float = opt(0.05)
    tau: float | str = opt("0.25", **number_or("auto"))
    duration: float = DURATION
    eta: float | str = opt("cv", MAIN, **number_or("cv"))
    noise: float = opt(0.0, MAIN, min=0, sets="readout_noise")
    jobs: int | None = JOBS
    device: str = opt("cpu", "Output", metavar="NAME")

    def parameters(self) -> dict[str, Any]:
        """Return the parameters of the estimator, except order and noise."""
        if self.order == 0:
            invocation.refuse("is for non-linear networks; it needs --order", "alpha")
        found = pick(self, "alpha", "g", "tau", "duration", "eta")
        found |= {"n_neurons": self.neurons, "n_jobs": self.jobs}
        return found if self.own is None else {**found, "reservoir": self.own.weights}


@group("Where it runs")
class Runs:
    """How and where jobs run, and the format of their figures.

    figures : Format of the figures.
    jobs : Number of processes; all cores by default.
    dask : Address of a dask scheduler, such as tcp://10.0.0.1:8786, to run there instead of
        on this machine.
    redo : Compute finished results again.
    """

    figures: Literal["svg", "png", "pdf", "none"] = opt("svg", "Output")
    jobs: int | None = opt(None, None, "-j", min=1)
    dask: str | None = opt(None, metavar="ADDRESS")
    redo: bool = opt(False, "Options")
    data_dir: Path | None = DATA_DIR

    def workers(self) -> "Workers":
        """Return where the jobs run."""
        from ..apps.runner import Workers

        if self.dask is not None:
            invocation.refuse("is for this machine; leave it out with --dask", "jobs")
        return Workers(self.jobs, self.dask, self.redo)


# Checks before the work begins


def refuse_if(wrong: object, why: str) -> None:
    """Raise a usage error with this reason if ``wrong``."""
    if wrong:
        raise typer.BadParameter(why)


def check_targets(**paths: Path | None) -> None:
    """Raise if a file cannot be written or is also read, or if a page cannot be made."""
    from .._base.files import is_standard_output

    seen = invocation.files_read(*paths)
    for name, path in paths.items():
        if path is None:
            continue
        option, real = f"--{name}", Path(os.path.realpath(path.expanduser()))
        what = f"{option} {str(path)!r}"
        try:
            kind = os.stat(real).st_mode
        except FileNotFoundError:
            kind = stat.S_IFREG  # a new file, or a link to a file that does not exist yet
        except OSError as error:
            raise typer.BadParameter(f"{what} cannot be used: {error.strerror}") from None
        device, plain = stat.S_ISBLK(kind) or stat.S_ISSOCK(kind), stat.S_ISREG(kind)
        mixed = "is standard output, which is for results; name a file"
        refuse_if(stat.S_ISDIR(kind), f"{what} is a directory; name a file")
        refuse_if(device, f"{what} is neither a file nor a pipe; name a file")
        refuse_if(is_standard_output(path), f"{what} {mixed}")
        lost = plain and not real.parent.is_dir()
        refuse_if(lost, f"{what} is in a folder that does not exist")
        if plain:
            other = seen.setdefault(str(real), option)
            refuse_if(other != option, f"{option} and {other} are the same file")
    if paths.get("report"):
        need("matplotlib", "jinja2")


def need(*packages: str, extra: str = "report") -> None:
    """Raise ImportError if a package is missing; call this before the work begins."""
    from .._base.checks import needs

    with needs("A page or figure", extra):
        for name in packages:
            import_module(name)


# Output of a command


def pick(source: object, *names: str) -> dict[str, Any]:
    """Return the named attributes of an object as a dict."""
    return {name: getattr(source, name) for name in names}


@contextmanager
def progress(total: float) -> Iterator[Callable[..., None]]:
    """Show the progress of steps whose weights sum to ``total``; stop at Ctrl-C.

    Yields ``step(text, weight=1.0)``; call it when a step begins.
    """
    pending = 0.0
    with display() as shown, shown.bar("", total) as bar:

        def step(text: str, weight: float = 1.0) -> None:
            nonlocal pending
            raise_if_interrupted()
            bar.advance(pending, text)
            pending = weight

        yield step
    raise_if_interrupted()
