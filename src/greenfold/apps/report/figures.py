"""The figures of a report and of a mask's page, as SVG in the colours of the page.

Figures contain no text from the user. Names of classes and data sets are in HTML legends
next to them, where they are escaped and any script can be displayed.
"""

import io
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullFormatter
from numpy.typing import ArrayLike

from ... import ReservoirClassifier, optimize
from ...analysis import curves as margin_curves
from ...analysis.masks import MaskStudy
from ...analysis.stretches import StretchScores
from ...estimators.series import read_aligned
from ...math.margins import state_moments
from ...math.sphere import maximize_on_sphere
from ..style import BASE
from .comparison import Row, Split, first_frame

#: Width and height in inches: 384 CSS pixels, so that 9 pt stay readable on a phone.
WIDTH, HEIGHT = 4.0, 2.7
#: Colour codes of the hues; `_to_svg` replaces each code with the page's CSS variable.
_NAMES = ("solved", "random", "a", "b", "c", "d", "e", "ink", "grid", "bound")
CODES = {name: f"#0a0c{i:02x}" for i, name in enumerate(_NAMES)}
SOLVED, RANDOM, TEXT, LIMIT = "solved", "random", "ink", "bound"
INK, GRID = CODES["ink"], CODES["grid"]
#: Opacity of a band.
_PALE = 0.25
#: Lines also differ by dash.
DASHES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1.5, 1.5)), (0, (6, 2, 1.5, 2)))
DASHED, DOTTED = 1, 2
#: Largest numbers of classes and channels on a page, and of inputs of a mask.
MAX_CLASSES, MAX_CHANNELS, MAX_INPUTS = 5, 4, 200
_N_TIMES = 40  # readout times of a curve; more would not be visible
_NUMBERS = 2**25  # numbers held at once for trajectories of a non-linear network (256 MiB)

_INKED = ("axes.edgecolor", "axes.labelcolor", "text.color", "xtick.color", "ytick.color")
_LOOK: dict[Any, Any] = BASE | dict.fromkeys(_INKED, INK) | {"grid.color": GRID}
_LOOK |= dict.fromkeys(("axes.facecolor", "figure.facecolor"), "none")
_TIME, _KAPPA = "time t", "soft margin κ (unit of the states)"
_ALONG, _SHARE = "readout v·y(T) (unit of the states)", "share of the class (%)"


def line_style(hue: str, dash: int = 0) -> dict[str, Any]:
    """Return colour and dash of a line, for matplotlib."""
    return {"color": CODES[hue], "linestyle": DASHES[dash % len(DASHES)]}


class Key(NamedTuple):
    """One entry of a legend: text, hue, and SVG dash pattern, "fill", "dot" or "ring"."""

    label: str
    hue: str
    dash: str = "none"
    opacity: float = 1.0


@dataclass
class Picture:
    """A figure on the page, its axes (one below the other), and its SVG once drawn."""

    figure: Figure
    all_axes: list[Any]
    title: str
    name: str = ""
    svg: str = ""
    caption: str = ""
    keys: list[Key] = field(default_factory=list)

    @property
    def axes(self) -> Any:
        """Return the first axes."""
        return self.all_axes[0]

    def line(
        self,
        x: ArrayLike,
        y: ArrayLike,
        hue: str,
        dash: int = 0,
        label: str = "",
        *,
        lw: float | None = None,
        alpha: float | None = None,
    ) -> None:
        """Draw a line, with an entry in the legend if it has a label."""
        look = line_style(hue, dash)
        self.axes.plot(x, y, lw=lw, alpha=alpha, **look)
        if label:
            self.add_key(label, hue, dash, alpha or 1.0)

    def band(
        self, x: ArrayLike, low: ArrayLike, high: ArrayLike, hue: str, label: str = ""
    ) -> None:
        """Fill the area between two curves."""
        self.axes.fill_between(x, low, high, color=CODES[hue], alpha=_PALE, lw=0)
        if label:
            self.keys.append(Key(label, hue, "fill", _PALE))

    def add_key(self, label: str, hue: str, dash: int = 0, opacity: float = 1.0) -> None:
        """Add a line to the legend."""
        pattern = DASHES[dash % len(DASHES)]
        dashed = not isinstance(pattern, str)
        shown = " ".join(f"{1.6 * part:g}" for part in pattern[1]) if dashed else "none"
        self.keys.append(Key(label, hue, shown, opacity))


@contextmanager
def drawing(
    name: str, title: str, x: str, y: str = "", height: float = HEIGHT, n_rows: int = 1
) -> Iterator[Picture]:
    """Yield a picture in the pages' style, then make its SVG; ids begin with ``name``."""
    with mpl.rc_context({**_LOOK, "svg.hashsalt": name}):
        figure = Figure(figsize=(WIDTH, height), layout="constrained")
        axes = [figure.add_subplot(n_rows, 1, i + 1) for i in range(n_rows)]
        for one in axes:
            # Seven long numbers would overlap on a figure this narrow.
            ticks: Any = MaxNLocator(5, steps=[1, 2, 2.5, 5, 10])
            if x == "date":
                ticks = AutoDateLocator(minticks=2, maxticks=6)
                one.xaxis.set_major_formatter(ConciseDateFormatter(ticks))
            one.xaxis.set_major_locator(ticks)
        axes[-1].set_xlabel(x)
        axes[n_rows // 2].set_ylabel(y)
        made = Picture(figure, axes, title, name)
        yield made
        made.svg = _to_svg(figure, name)


def _to_svg(figure: Figure, name: str) -> str:
    stream = io.StringIO()
    figure.savefig(stream, format="svg", transparent=True, metadata={"Date": None})
    svg = stream.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    # Several figures share the page, so their ids must differ.
    svg = re.sub(r'\bid="([^"]+)"', rf'id="{name}-\1"', svg)
    svg = re.sub(r"url\(#([^)]+)\)", rf"url(#{name}-\1)", svg)
    svg = re.sub(r'href="#([^"]+)"', rf'href="#{name}-\1"', svg)
    # Namespaces look like addresses, but HTML does not need them.
    svg = re.sub(r'\sxmlns(:\w+)?="[^"]*"', "", svg).replace("xlink:href", "href")
    for name_of_hue, code in CODES.items():
        svg = svg.replace(code, f"var(--{name_of_hue})")
    # The page sets the width; the view box keeps the proportions.
    for side in ("height", "width"):
        svg = re.sub(rf'(<svg[^>]*?) {side}="[^"]*"', r"\1", svg, count=1)
    return svg.replace("<svg", '<svg aria-hidden="true"', 1)


def limits(values: ArrayLike, share: float = 0.06) -> tuple[float, float]:
    """Return axis limits around finite values, with a margin."""
    finite = np.asarray(values, dtype=float).ravel()
    finite = finite[np.isfinite(finite)]
    if not len(finite):
        return -1.0, 1.0
    low, high = float(finite.min()), float(finite.max())
    room = share * (high - low) or abs(high) * share or 1.0
    return low - room, high + room


def _hue(row: Row) -> str:
    return SOLVED if row.is_solved else RANDOM


def _class_hue(index: int) -> str:
    return "abcde"[index % 5]


def _name(row: Row) -> str:
    return f"{row.projection} u, {row.network}"


def _first_class(row: Row) -> str:
    classes = row.classifier.classes_
    return "" if len(classes) == 2 else f" Shown for {classes[0]} against the rest."


def _steps(row: Row) -> np.ndarray:
    """Return the time of the middle of every step of a series."""
    n_steps = row.classifier.n_features_in_
    return row.classifier.duration / n_steps * (np.arange(n_steps) + 0.5)


def class_means(task: Split, row: Row) -> list[Picture]:
    """Draw mean and spread of every class over time, one figure per channel.

    The linear kernel of the first comparison is drawn over them, on an axis of its own.
    """
    series = read_aligned(row.classifier, task.X, fitting=False)
    values, labels = series.values, row.classifier.classes_
    if series.present is not None:
        values = np.where(series.present[:, None, :], values, np.nan)
    first = next(((label, one.linear) for label, one in _kernels(row)), None)
    return means_over_time(values, task.y, labels, _steps(row), _TIME, first)


def means_over_time(
    values: np.ndarray,
    y: ArrayLike,
    labels: np.ndarray,
    times: np.ndarray,
    x: str,
    kernel: tuple[str, np.ndarray] | None = None,
) -> list[Picture]:
    """Draw mean and spread of series (n_cases, n_channels, n_steps), NaN where missing.

    ``kernel`` is the linear kernel (n_channels, n_steps) of a class, with its name.
    """
    found = []
    for channel in range(min(n_channels := values.shape[1], MAX_CHANNELS)):
        which = f", channel {channel + 1} of {n_channels}" if n_channels > 1 else ""
        title, unit = f"Class means and spread{which}", "x(t) (unit of the data)"
        with drawing(f"means{channel}", title, x, unit) as made:
            for i, label in enumerate(labels[:MAX_CLASSES]):
                own = values[np.asarray(y) == label, channel]
                begun = np.isfinite(own).sum(0)
                with np.errstate(invalid="ignore", divide="ignore"):
                    mean = np.nansum(own, axis=0) / begun
                    spread = np.sqrt(np.nansum((own - mean) ** 2, axis=0) / begun)
                made.band(times, mean - spread, mean + spread, _class_hue(i))
                made.line(times, mean, _class_hue(i), i, f"{label} ({len(own)} series)")
            made.axes.margins(x=0)
            made.caption = (
                "Lines: mean of the training series. Bands: one standard deviation."
            )
            if kernel is not None:
                label, a = kernel
                largest = 1.1 * float(np.abs(a).max()) or 1.0
                twin = made.axes.twinx()
                twin.grid(visible=False)
                twin.margins(x=0)
                twin.plot(times, a[channel], lw=1.2, **line_style(TEXT, DOTTED))
                twin.set(ylim=(-largest, largest), ylabel="kernel a(t) (states per input)")
                made.add_key(f"kernel of {label}, right axis", TEXT, DOTTED)
                made.caption += (
                    f" Where the kernel is positive, a larger input speaks for {label}; "
                    "its zero is in the middle of the right axis."
                )
        found.append(made)
    return found


def moving_stretches(found: StretchScores) -> Picture:
    """Draw how far the scores move without each stretch of time."""
    with drawing(
        "stretches", "What moves the score", "step", "change of the score"
    ) as made:
        own: Any = {"fill": True, "color": CODES[SOLVED], "alpha": 0.45}
        made.axes.stairs(found.sizes, found.edges, **own)
        made.axes.stairs(found.sizes, found.edges, **line_style(SOLVED))
        made.axes.margins(x=0)
        made.axes.set_ylim(bottom=0)
    n = len(found.changes)
    made.caption = (
        f"Root mean square, over {n} series, of the change of the score when a straight "
        "line replaces the series in this stretch of time."
    )
    return made


def state_clouds(
    task: Split, rows: Sequence[Row], pair: Sequence[Row] | None = None
) -> list[Picture]:
    """Draw histograms of the states along v, random and solved to the same scale.

    There is one picture per row or, with more than two classes, per row of ``pair``.
    """
    X, y, _ = task.judged
    classifier = rows[0].classifier
    two = len(classifier.classes_) == 2
    chosen = list(rows if two or pair is None else pair)
    heads = classifier.compared_[:MAX_CLASSES]
    values = [row.classifier.read_out(X)[:, : len(heads)] for row in chosen]
    bins = np.linspace(*limits([np.quantile(z, (0.002, 0.998)) for z in values]), 41)
    # Shares of a class keep a rare class visible; (row, head, others or class, bin).
    shares = np.zeros((len(chosen), len(heads), 2, len(bins) - 1))
    for i, j in np.ndindex(*shares.shape[:2]):
        # Values beyond the bins count in the first or last bin.
        inside = np.clip(values[i][:, j], bins[0], bins[-1])
        own = y == classifier.classes_[heads[j]]
        for share, part in zip(shares[i, j], (~own, own), strict=True):
            share[:] = 100 * np.histogram(inside[part], bins)[0] / max(part.sum(), 1)
    tops = 1.08 * shares.max(axis=(0, 2, 3))
    found = []
    for row, one in zip(chosen, shares, strict=True):
        made = _clouds(row, one, bins, tops)
        told = [] if row.for_noise else [f"{row.accuracy:.1%}"]
        if row.noise:
            told.append(f"{row.noisy_accuracy:.1%} under readout noise")
        judged = f"({task.judged[2]} series)"
        made.caption = f"Accuracy {', '.join(told)} {judged}. {made.caption}"
        found.append(made)
    return found


def _clouds(row: Row, shares: np.ndarray, bins: np.ndarray, tops: np.ndarray) -> Picture:
    """Draw two classes in one panel, or one panel per class with all others as outline."""
    classifier, n = row.classifier, len(shares)
    two = len(classifier.classes_) == 2
    title = f"{row.projection.capitalize()} u, {row.network}"
    title += "" if two else ", each class along its own readout"
    height = HEIGHT if two else 0.75 + 0.72 * n
    labels = classifier.classes_ if two else classifier.classes_[classifier.compared_]
    name = f"cloud{row.projection}{row.order}"
    with drawing(name, title, _ALONG, _SHARE, height, n) as made:
        for i, (ax, (others, own)) in enumerate(zip(made.all_axes, shares, strict=True)):
            for side, share in enumerate((others, own) if two else (own,), start=i):
                style = line_style(_class_hue(side), side if two else 0)
                ax.stairs(share, bins, fill=True, color=style["color"], alpha=0.45)
                ax.stairs(share, bins, **style)
                made.keys.append(Key(str(labels[side]), _class_hue(side), "fill"))
            if not two:
                ax.stairs(others, bins, **line_style(TEXT, DOTTED), lw=1.1)
                ax.yaxis.set_major_locator(MaxNLocator(2))
            ax.axvline(float(classifier.threshold_) if two else 0, color=INK, lw=1.1)
            ax.set(xlim=(bins[0], bins[-1]), ylim=(0, tops[i]))
            ax.tick_params(labelbottom=i == n - 1)
        noisy, (low, high), top = "", made.axes.get_xlim(), made.axes.get_ylim()[1]
        if 0 < 2 * row.noise < high - low:
            noisy = " Bar: ± one standard deviation of the readout noise."
            made.axes.set_ylim(0, 1.14 * top)
            at = (low + row.noise + 0.03 * (high - low), 1.07 * top)
            bar = {"xerr": row.noise, "color": INK, "capsize": 3, "linewidth": 1.2}
            made.axes.errorbar(*at, **bar)
    if two:
        made.caption = f"Vertical line: threshold.{noisy}"
        return made
    made.add_key("all other classes", TEXT, DOTTED)
    more = f"; {len(labels) - n} more classes are not shown" if len(labels) > n else ""
    made.caption = (
        f"One strip per class, in this order{more}. Vertical line: half-way between the "
        "class and the rest; κ is measured from there. All readouts decide together."
        f"{noisy}"
    )
    return made


def margin_over_optimisation(task: Split, rows: Sequence[Row]) -> Picture | None:
    """Draw the best κ so far over the evaluations, for the linear solved rows."""
    curves = []
    for row in rows:
        if row.is_solved and not row.classifier.order:
            stimuli = first_frame(row.classifier, task).stimuli
            again = optimize(row.classifier.unfolding_, stimuli, row.classifier.eta_)
            again.raise_if_interrupted()
            curves.append((row, again.history[:, 0] - again.history[:, 1]))
    # A single evaluation is no path: an exact solution needs no other.
    curves = [(row, curve) for row, curve in curves if len(curve) > 1]
    if not curves:
        return None
    title = "Soft margin over the optimisation"
    with drawing("history", title, "evaluation", _KAPPA) as made:
        for row, curve in curves:
            steps = np.arange(len(curve))
            made.line(steps, curve, _hue(row), bool(row.order), _name(row))
        # Draw the bound of the first comparison; a row has the mean over all.
        each = [
            (row.bound, np.ravel(row.classifier.soft_margin_bound_)) for row, _ in curves
        ]
        bounds = [mean if len(own) == 1 else float(own[0]) for mean, own in each]
        bounds = [bound for bound in bounds if np.isfinite(bound)]
        for bound in bounds:
            made.axes.axhline(bound, **line_style(LIMIT, DOTTED), lw=1.2)
        shown = np.concatenate([curve for _, curve in curves])
        # A start far below would flatten the interesting part of the curve.
        top = float(shown.max())
        low = max(float(shown.min()), -0.5 * abs(top))
        # Steps of a millionth would fill the picture where the first one was the last.
        low = min(low, top - 0.02 * abs(top))
        made.axes.set_ylim(*limits([low, top, *bounds]))
        made.axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    if bounds:
        made.add_key("proven upper bound", LIMIT, DOTTED)
    made.caption = "κ of the best pair of projections so far." + _first_class(rows[0])
    return made


#: The caption mentions an earlier readout if its κ exceeds that at the end by this factor.
_EARLIER = 1.1


def margin_over_time(task: Split, rows: Sequence[Row]) -> Picture:
    """Draw κ of the fitted u over the readout time."""
    x = "readout time t"
    with drawing("readout", "Soft margin over the readout time", x, _KAPPA) as made:
        early = ""
        for row in rows:
            times, values = _margins_over_time(row.classifier, task)
            top = int(values.argmax())
            made.line(times, values, _hue(row), bool(row.order), _name(row))
            if row.is_solved and not early and values[top] > _EARLIER * abs(values[-1]):
                early = (
                    f" The {row.network} network is better read earlier: κ of this u is "
                    f"{values[top]:.3g} at t = {times[top]:.3g} and {values[-1]:.3g} at "
                    "the end. Cut the series there, or try another tau."
                )
        made.axes.axhline(0, color=GRID, linewidth=1, zorder=1)
        made.axes.margins(x=0)
    best = "The fitted input projection, with the best readout at each time t."
    made.caption = f"{best}{early}{_first_class(rows[0])}"
    return made


def _margins_over_time(
    classifier: ReservoirClassifier, task: Split
) -> tuple[np.ndarray, np.ndarray]:
    """Return readout times, and κ of the first u with the best readout at each time."""
    unfolding: Any = classifier.unfolding_
    eta = float(classifier.eta_)
    n_steps = unfolding.n_steps
    steps = np.unique(np.linspace(1, n_steps, min(_N_TIMES, n_steps)).round()).astype(int)
    times = steps * unfolding.dt
    frame, u = first_frame(classifier, task), classifier.heads_[0].u
    if unfolding.is_linear:
        own: Any = {"u": u, "eta": eta}
        found = margin_curves.margin_over_time(unfolding, frame.stimuli, times, **own)
        return times, found.soft_margin
    series = read_aligned(classifier, task.X, fitting=False)
    room = max(50, _NUMBERS // (n_steps * unfolding.n_neurons))
    chosen = slice(None, None, -(-len(series) // room))
    own = (np.asarray(task.y) == classifier.classes_[classifier.compared_[0]])[chosen]
    moved = series[chosen].moved(frame.centre, frame.scale)
    paths = unfolding.states(moved, u, trajectories=True)
    weights = np.array(frame.share)[own.astype(int)]
    weights = weights / np.where(own, own.sum(), (~own).sum())
    values = []
    for step in steps:
        M, Sigma = state_moments(paths[:, step - 1], np.where(own, 1, -1), weights)
        values.append(maximize_on_sphere(M, eta * Sigma).value)
    return times, np.array(values)


def _kernels(row: Row) -> list[tuple[str, Any]]:
    kernel, classes = row.classifier.kernel_, row.classifier.classes_
    if kernel is None:
        return []
    if not isinstance(kernel, list):
        return [(str(classes[1]), kernel)]
    pairs = zip(classes.tolist(), kernel, strict=True)
    return [(str(label), one) for label, one in pairs if one is not None][:MAX_CLASSES]


def linear_kernels(rows: Sequence[Row]) -> list[Picture]:
    """Draw the linear kernels a(t), with one picture per row, all to the same scale."""
    found = []
    shown = [(row, kernels) for row in rows if (kernels := _kernels(row))]
    all_values = [kernel.linear[:MAX_CHANNELS].ravel() for _, k in shown for _, kernel in k]
    scale = limits(np.concatenate(all_values) if shown else [])
    for row, kernels in shown:
        name, several = f"kernel{row.projection}{row.order}", len(kernels) > 1
        y = "a(t) (states per input)"
        with drawing(name, f"Linear kernel, {_name(row)}", _TIME, y) as made:
            for i, (label, kernel) in enumerate(kernels):
                for channel, values in enumerate(kernel.linear[:MAX_CHANNELS]):
                    hue, dash = (_class_hue(i), i) if several else (_hue(row), channel)
                    own = f"channel {channel + 1}" if len(kernel.linear) > 1 else ""
                    shown = own if not several else "" if channel else label
                    made.line(_steps(row), values, hue, dash, shown)
            made.axes.axhline(0, color=GRID, linewidth=1, zorder=1)
            made.axes.set_ylim(*scale)
            made.axes.margins(x=0)
        made.caption = "Contribution to the readout of a unit input at each time."
        found.append(made)
    return found


def quadratic_kernels(rows: Sequence[Row]) -> list[Picture]:
    """Draw the quadratic kernels C(t, t') of the first comparison and channel."""
    found = []
    first = [(row, kernels[0][1].quadratic) for row in rows if (kernels := _kernels(row))]
    shown = [(row, C[0, :, 0, :]) for row, C in first if C is not None]
    largest = max((float(np.abs(C).max()) for _, C in shown), default=1.0) or 1.0
    # PuOr is safe for the colour-blind and white where the kernel vanishes.
    look: dict[str, Any] = {"cmap": "PuOr", "vmin": -largest, "vmax": largest}
    look |= {"origin": "lower", "interpolation": "nearest"}
    for row, C in shown:
        end = row.classifier.duration
        title = f"Quadratic kernel, {_name(row)}"
        name, x = f"quadratic{row.projection}", "time t′"
        with drawing(name, title, x, _TIME, 3.3) as made:
            made.axes.grid(False)
            image = made.axes.imshow(C, extent=(0, end, 0, end), **look)
            bar: Any = made.figure.colorbar(image, ax=made.axes, shrink=0.85)
            bar.set_label("C(t, t′) (states per input²)")
            bar.outline.set_edgecolor(INK)
        made.caption = "Contribution to the readout of two unit inputs, at t and t′."
        made.caption += _first_class(row)
        found.append(made)
    return found


def mode_loadings(rows: Sequence[Row]) -> Picture:
    """Draw the loading |w_α·u| of each mode of the network over its time constant."""
    constants = np.empty(0)
    x = r"time constant $\tau_\alpha$ of the mode"
    title, y = "Mode loadings of the input projection", r"loading $|w_\alpha \cdot u|$"
    with drawing("modes", title, x, y) as made:
        ax = made.axes
        for row in sorted(rows, key=lambda row: row.is_solved):
            modes = row.reservoir.modes()
            loading = np.abs(modes.loading(row.classifier.heads_[0].u))
            sizes = np.linalg.norm(loading, axis=1)
            colour, constants = CODES[_hue(row)], np.asarray(modes.time_constants)
            filling = colour if row.is_solved else "none"
            ax.plot(constants, sizes, "o^"[bool(row.order)], c=colour, ms=4.5, mfc=filling)
        finite = constants[np.isfinite(constants)]
        low, high = finite.min() / 1.1, finite.max() * 1.1
        # Keep the numbers readable if the axis spans little more than a decade.
        ticks = [m * 10.0**e for e in range(-6, 7) for m in (1, 2, 5)]
        ax.set_xscale("log")
        ax.xaxis.set_major_locator(FixedLocator([t for t in ticks if low <= t <= high]))
        ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        ax.xaxis.set_minor_formatter(NullFormatter())
        ax.set_xlim(low, high)
        ax.set_ylim(bottom=0)
    made.caption = "How strongly u drives each mode of the network."
    made.caption += " Circles: linear; triangles: non-linear." if rows[-1].order else ""
    made.caption += _first_class(rows[0])
    for name, hue in dict.fromkeys((row.projection, _hue(row)) for row in rows):
        made.keys.append(Key(f"{name} u", hue, "dot" if hue == SOLVED else "ring"))
    return made


def mask_margins(study: MaskStudy) -> Picture:
    """Draw κ of random masks, of the solved mask, and the bound."""
    best, interval, n_drawn = study.projections, study.interval, len(study.random)
    blue, middle = CODES[SOLVED], interval.estimate
    with drawing("margins", "Soft margin", "soft margin κ", height=2.0) as made:
        ax = made.axes
        # Spread the points over the height, so that equal points do not overlap.
        heights = 0.3 * (np.linspace(-1, 1, n_drawn) if n_drawn > 1 else 0)
        ax.plot(study.random, heights, ".", color=CODES[RANDOM], alpha=0.7)
        drawn = f"{n_drawn} random masks; line: their mean"
        made.line([study.random_margin] * 2, [-0.4, 0.4], RANDOM, label=drawn)
        with_ends = f" with its {interval.level:.0%} interval" * interval.is_known
        made.add_key(f"solved mask{with_ends}", SOLVED)
        reach = [[middle - interval.low], [interval.high - middle]]
        reach = reach if interval.is_known else None
        ax.errorbar([middle], [1], xerr=reach, fmt="o", color=blue, capsize=4)
        ax.plot([best.soft_margin], [1], "|", color=blue, markersize=16)
        if best.upper_bound is not None:
            ax.axvline(best.upper_bound, **line_style(LIMIT, DASHED))
            made.add_key("proven upper bound", LIMIT, DASHED)
        ax.set_ylim(-0.7, 1.6)
        ax.set_yticks([0, 1], ["random", "solved"])
        ax.grid(visible=False, axis="y")
    made.caption = (
        "Dot with bars: expected κ on the device. Vertical stroke: κ on the estimated "
        "response, on which the mask was solved."
    )
    return made


def mask_values(values: np.ndarray) -> Picture:
    """Draw the value of the mask at each input; squares if there are several channels."""
    n_inputs, n_channels = values.shape
    shown, blue = values[:MAX_INPUTS], CODES[SOLVED]
    y = "value of the mask" if n_channels == 1 else "channel"
    with drawing("mask", "The mask", "input", y) as made:
        ax = made.axes
        if n_channels == 1:
            place = np.arange(len(shown))
            if len(shown) > 60:
                ax.vlines(place, 0, shown[:, 0], color=blue, lw=0.9)
            else:
                ax.bar(place, shown[:, 0], 0.8, color=blue)
            ax.axhline(0, color=INK, lw=0.8)
            ax.margins(x=0.01)
            made.caption = "Value by which a series is multiplied at each input."
        else:
            # Areas grow with the value and fillings show the sign, because no colour map
            # follows the page's theme and a second hue would mean something else.
            look: dict[str, Any] = {"edgecolors": blue, "marker": "s", "linewidths": 0.9}
            for sign, filled in ((1, blue), (-1, "none")):
                i, c = np.nonzero(sign * shown > 0)
                size = 40 * np.abs(shown[i, c]) / float(np.abs(shown).max())
                ax.scatter(i, c, s=size, facecolors=filled, **look)
            ax.set_ylim(n_channels - 0.5, -0.5)
            ax.set_yticks(range(n_channels) if n_channels <= 12 else [0, n_channels - 1])
            made.caption = "Filled squares are positive, open squares negative; "
            made.caption += "their area shows the size of the value."
    if n_inputs > MAX_INPUTS:
        made.caption += f" Only the first {MAX_INPUTS} of {n_inputs} inputs are shown."
    return made
