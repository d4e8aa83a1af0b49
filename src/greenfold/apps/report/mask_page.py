"""A page about a mask: what it is, what it buys, how well the device is known."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ...analysis.masks import MaskStudy
from ...devices.response import MeasuredResponse
from . import rendering

if TYPE_CHECKING:  # matplotlib, which only a page needs
    from .canvas import Picture

#: Inputs that are drawn one by one; the first ones.
_SHOWN = 200


def write_mask_page(
    path: str | Path,
    study: MaskStudy,
    device: MeasuredResponse,
    *,
    name: str,
    rows: Sequence[tuple[str, str]],
    inputs: Sequence[str] | None = None,
    notes: Sequence[str] = (),
    command: str = "",
) -> Path:
    """Write the page of a mask.

    Parameters
    ----------
    path : str or Path
        Replaced if it exists, in one step at the end.
    study : MaskStudy
    device : MeasuredResponse
        That was fitted.
    name : str
        Heading of the page.
    rows : sequence of (str, str)
        Names and values of the table.
    inputs : sequence of str, optional
        Names of the inputs.
    notes : sequence of str
        Sentences below the table.
    command : str
        The command that made the page, shown at its end.

    Returns
    -------
    Path
        The absolute path of the page.
    """
    with rendering.extra():
        import matplotlib  # noqa: F401 - the pictures need it
    template = rendering.environment().get_template("mask.html")
    values = study.values.reshape(device.n_inputs, -1)
    names = list(inputs or (f"input {i}" for i in range(device.n_inputs)))
    text = template.render(
        name=name,
        study=study,
        best=study.projections,
        interval=study.interval,
        fitted=device.fitted,
        rows=rows,
        notes=notes,
        entries=list(zip(names, values.tolist(), strict=True)),
        pictures=[margins(study), mask_values(values)],
        versions=rendering.versions(),
        command=command,
        made=rendering.now(),
        number=rendering.number,
        percent=rendering.percent,
    )
    return rendering.write(path, text)


def margins(study: MaskStudy) -> Picture:
    """κ of random masks and of the solved one beside the bound."""
    from .canvas import COLOURS, DASHES, INK, RANDOM, SOLVED, Picture, drawing, key

    best, interval = study.projections, study.interval
    with drawing("margins", 2.0) as made:
        ax = made.axes
        # Spread over the height by rank, so that equal ones do not hide each other.
        heights = 0.3 * (
            np.linspace(-1, 1, len(study.drawn)) if len(study.drawn) > 1 else 0
        )
        ax.plot(study.drawn, heights, ".", color=COLOURS[RANDOM], alpha=0.7)
        ax.plot([study.random_margin] * 2, [-0.4, 0.4], color=COLOURS[RANDOM])
        ax.errorbar(
            [interval.estimate],
            [1],
            xerr=[
                [interval.estimate - interval.low],
                [interval.high - interval.estimate],
            ],
            fmt="o",
            color=COLOURS[SOLVED],
            capsize=4,
        )
        ax.plot([best.soft_margin], [1], "|", color=COLOURS[SOLVED], markersize=16)
        if best.upper_bound is not None:
            ax.axvline(best.upper_bound, color=INK, linestyle=DASHES[1])
        ax.set(xlabel="soft margin κ", ylim=(-0.7, 1.6), yticks=[0, 1])
        ax.set_yticklabels(["random", "solved"])
        ax.grid(visible=False, axis="y")
    keys = [
        key(f"{len(study.drawn)} random masks; line: their mean", RANDOM),
        key(f"solved mask with its {interval.level:.0%} interval", SOLVED),
    ]
    if best.upper_bound is not None:
        from .canvas import Key

        keys.append(Key("proven bound: no mask is better", "--ink", "8 3.2"))
    return Picture(
        "Soft margin",
        made.svg,
        "Dot with bars: what the device is expected to show. Upright stroke: what the mask "
        "shows on the estimated response, on which it was solved.",
        keys,
    )


def mask_values(values: np.ndarray) -> Picture:
    """The mask, input by input; an image where the series have several channels."""
    from .canvas import COLOURS, INK, SOLVED, Picture, drawing

    n_inputs, n_channels = values.shape
    shown = values[:_SHOWN]
    cut = f" The first {_SHOWN} of {n_inputs} inputs." if n_inputs > _SHOWN else ""
    with drawing("mask") as made:
        ax = made.axes
        if n_channels == 1:
            place = np.arange(len(shown))
            if len(shown) > 60:
                ax.vlines(place, 0, shown[:, 0], color=COLOURS[SOLVED], lw=0.9)
            else:
                ax.bar(place, shown[:, 0], 0.8, color=COLOURS[SOLVED])
            ax.axhline(0, color=INK, lw=0.8)
            ax.set(xlabel="input", ylabel="value of the mask")
            ax.margins(x=0.01)
        else:
            reach = float(np.abs(shown).max())
            # Areas grow with the value, fillings tell the sign: no colour map follows the
            # page, and a second hue would mean something else.
            for sign, filled in ((1, COLOURS[SOLVED]), (-1, "none")):
                i, c = np.nonzero(sign * shown > 0)
                size = 40 * np.abs(shown[i, c]) / reach
                ax.scatter(i, c, s=size, facecolors=filled, edgecolors=COLOURS[SOLVED],
                           marker="s", linewidths=0.9)  # fmt: skip
            ax.set(xlabel="input", ylabel="channel", ylim=(n_channels - 0.5, -0.5))
            ax.set_yticks(range(n_channels) if n_channels <= 12 else [0, n_channels - 1])
    caption = (
        "Value by which a series is multiplied at each input."
        if n_channels == 1
        else "Full: positive, open: negative; the size of a square is that of the value."
    )
    return Picture("The mask", made.svg, caption + cut)
