"""The pictures of the README, the first page and the theory: ``python docs/pictures.py``.

Writes ``_pictures/clouds.svg``, the same for dark pages in ``clouds-dark.svg`` (the README
shows it on a dark GitHub) and for phones in ``clouds-narrow.svg``, the numbers that are
drawn in ``clouds.json``, ``unfolding.svg``, the same for phones in
``unfolding-narrow.svg``, and ``_static/social.png``. Needs ECG5000 (`GREENFOLD_DATA`, or a
download). The noise curves are those that ``greenfold reproduce beyond`` has recorded.

``python docs/pictures.py film`` writes ``_pictures/explorer.gif`` and, for dark pages,
``explorer-dark.gif``: the page of ``greenfold explore ECG5000 --classes 1,2`` going from
random input projections to the solved one. It needs Chromium and Pillow as well.
"""

from __future__ import annotations

import base64
import io
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from _ext.dark import darkened
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from greenfold import Projections, Reservoir, SampleStimuli, Unfolding, optimize, unfold
from greenfold._base.files import write_json
from greenfold.apps.style import BASE, CLASS_A, CLASS_B, PALETTE, RANDOM, SOLVED
from greenfold.datasets import BinarySplit, ecg5000_paper, synthetic_heartbeats

HERE = Path(__file__).parent
N_NEURONS = 100
N_SHOWN = 250
"""Test series of each class that are drawn as points."""
SIZE = 100
"""Neurons of the networks behind the noise curves."""
MARKED = 0.1
"""σ whose accuracies are written into the figure."""
FILM_WIDTH = 1000
"""Pixels of the film."""
FILM_COLOURS = 96
"""Enough for every colour of the page; with more, the files grow."""
FILM_EDGE = 16
"""Pixels around the cards of the film."""
FILM_STYLE = """
header, footer, .controls, .kernel, .noise, .top .hint { display: none; }
#page { grid-template: "top top" "left states" / minmax(0, 1.25fr) minmax(0, 1fr); }
.left .net { flex: 1; }
"""
"""Only the cards that move, and the lower two of about the same height."""
LOOK: dict[Any, Any] = BASE | {
    "grid.color": PALETTE["grid"][0],
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "svg.hashsalt": "greenfold",
}


def plane(
    unfolding: Unfolding, X: np.ndarray, signs: np.ndarray, found: Projections
) -> np.ndarray:
    """States along v and along the widest direction at right angles to it, (n, 2)."""
    states = np.asarray(unfolding.states(X, found.u))
    v = np.asarray(found.v)
    rest = states - np.outer(states @ v, v)
    classes = [rest[signs == sign] for sign in (-1, 1)]
    within = sum(np.cov(part.T, bias=True) for part in classes)
    across = np.linalg.eigh(within)[1][:, -1]
    across *= np.sign(classes[1].mean(0) @ across)  # an eigenvector has no sign of its own
    return states @ np.column_stack([v, across])


def clouds(ecg: BinarySplit) -> dict[str, Any]:
    """Clouds of test series for one random u and for the solved one, as JSON."""
    rng = np.random.default_rng(0)
    unfolding = unfold(Reservoir.random(N_NEURONS, rng=rng), n_steps=140, dt=10 / 140)
    stimuli = SampleStimuli(ecg.X_train, ecg.y_train)
    X = stimuli.transform(ecg.X_test)
    # The random u is the one of 50 whose margin is the median: neither lucky nor unlucky.
    drawn = rng.standard_normal((50, N_NEURONS))
    tried = [optimize(unfolding, stimuli, u=u) for u in drawn]
    middle = sorted(tried, key=lambda one: one.soft_margin)[len(tried) // 2]
    best = optimize(unfolding, stimuli)
    rows = [np.flatnonzero(ecg.y_test == sign)[:N_SHOWN] for sign in (1, -1)]
    shown = np.concatenate(rows)
    made: dict[str, Any] = {"bound": best.upper_bound, "labels": ecg.y_test[shown].tolist()}
    for name, found in (("random", middle), ("solved", best)):
        points = plane(unfolding, X[shown], ecg.y_test[shown], found)
        made[name] = {"margin": found.soft_margin, "points": points.round(4).tolist()}
    return made


def draw_cloud(
    axes: Any, made: dict[str, Any], name: str, reach: tuple[float, float]
) -> None:
    """Draw the states of one input projection, the plane and the noise."""
    points, labels = np.array(made[name]["points"]), np.array(made["labels"])
    for sign, colour, mark, label in (
        (1, CLASS_A, "o", "normal beats"),
        (-1, CLASS_B, "s", "ectopic beats"),
    ):
        x, y = points[labels == sign].T
        axes.scatter(x, y, 9, colour, marker=mark, alpha=0.55, lw=0, label=label)
    axes.axvline(0, color="black", lw=1, ls="--")
    axes.axvspan(-MARKED, MARKED, color="black", alpha=0.08, lw=0)
    width, height = reach
    axes.set(xlim=(-width, width), ylim=(-height, height), aspect="equal")
    axes.set(
        xlabel="state along the readout v", xticks=[-0.5, 0, 0.5], yticks=[-0.5, 0, 0.5]
    )
    axes.tick_params(length=0)


def draw_noise(axes: Any, rows: list[dict[str, Any]], noises: list[float]) -> None:
    """Accuracy over readout noise, random and solved u."""
    mine = [row for row in rows if row["n_neurons"] == SIZE]
    x = np.arange(len(noises))
    at = noises.index(MARKED)
    for key, colour, mark, label, shift in (
        ("optimised", SOLVED, "o-", "solved u", (4, 9)),
        ("random", RANDOM, "s--", "random u", (-27, -8)),
    ):
        values = np.array([np.reshape(row[key], (-1, len(noises))).mean(0) for row in mine])
        mean = values.mean(0)
        axes.errorbar(x, mean, values.std(0), fmt=mark, color=colour, ms=4.5, capsize=2,
                      label=label)  # fmt: skip
        axes.annotate(f"{mean[at]:.1f} %", (x[at], mean[at]), shift, ha="center",
                      textcoords="offset points", color=colour, weight="bold",
                      size=10)  # fmt: skip
    axes.set_xticks(x, [f"{sigma:g}" for sigma in noises])
    axes.set(xlabel="readout noise σ", ylabel="accuracy (%)", ylim=(78, 100.5))
    axes.set_yticks([80, 85, 90, 95, 100])
    axes.legend(loc="lower left")


def draw(made: dict[str, Any], *, is_narrow: bool = False) -> Figure:
    """Random clouds, solved clouds, noise curves; one below the other for a phone."""
    record = json.loads((HERE / "_reproduction" / "beyond.json").read_text("utf-8"))
    size = (3.7, 10.6) if is_narrow else (9.4, 3.25)
    figure = Figure(figsize=size, layout="constrained", facecolor="white")
    if is_narrow:
        left, middle, right = figure.subplots(3, 1)
    else:
        left, middle, right = figure.subplots(1, 3, width_ratios=(1, 1, 1.05))
    reach = (1.02, 1.02)
    for axes, name, colour in ((left, "random", RANDOM), (middle, "solved", SOLVED)):
        draw_cloud(axes, made, name, reach)
        text = f"{name} u, margin κ = {made[name]['margin']:.3f}"
        axes.set_title(text, loc="left", color=colour, weight="bold", size=10)
    left.set_ylabel("state perpendicular to v")
    left.legend(loc="lower left", markerscale=1.6, handletextpad=0.1, borderpad=0)
    left.annotate(f" noise ±{MARKED:g}", (MARKED, 0.97), va="top", size=8.5)
    if is_narrow:
        middle.set_ylabel("state perpendicular to v")
    else:
        middle.set_yticklabels([])
    text = f"proven: κ ≤ {made['bound']:.3f}\nfor unit u and v"
    middle.annotate(text, (0.03, 0.03), xycoords="axes fraction", size=8.5)
    draw_noise(right, record["numbers"]["noise"], record["parameters"]["noises"])
    right.set_title(f"accuracy under noise, N = {SIZE}", loc="left", weight="bold", size=10)
    return figure


def draw_social(made: dict[str, Any]) -> Figure:
    """What is shown where a link is shared, 1200 × 630."""
    figure = Figure(figsize=(12, 6.3), facecolor="white")
    panels = figure.subplots(1, 2)
    figure.subplots_adjust(0.05, 0.06, 0.97, 0.66, wspace=0.06)
    for axes, name, colour in zip(
        panels, ("random", "solved"), (RANDOM, SOLVED), strict=True
    ):
        draw_cloud(axes, made, name, (1.2, 0.82))
        axes.set(xticklabels=[], yticklabels=[], xlabel="")
        text = f"{name} u:  κ = {made[name]['margin']:.3f}"
        axes.set_title(text, loc="left", color=colour, weight="bold", size=23)
        for points in axes.collections[:2]:
            points.set_sizes([26])
    figure.text(0.05, 0.87, "greenfold", size=50, weight="bold")
    figure.text(0.05, 0.785, "solve for the input projection of a reservoir, with a proof",
                size=25)  # fmt: skip
    return figure


def draw_unfolding(*, is_narrow: bool = False) -> Figure:
    """The idea: a loop, the same network as a sum over the past, and its kernel."""
    if is_narrow:
        figure = Figure(figsize=(3.7, 7.6), layout=ConstrainedLayoutEngine(h_pad=0.1))
        loop, chain, kernel = figure.subplots(3, 1, height_ratios=(0.85, 1, 1))
    else:
        figure = Figure(figsize=(9.4, 2.9), layout="constrained")
        loop, chain, kernel = figure.subplots(1, 3, width_ratios=(0.9, 1.15, 1.1))
    line = {"arrowstyle": "-|>", "color": "black", "lw": 1.2}
    dot: dict[str, Any] = {"ms": 10, "mfc": "white", "mec": "black", "zorder": 3}

    def arrow(axes: Any, start: Any, end: Any, **more: Any) -> None:
        axes.annotate("", end, start, arrowprops={**line, **more}, annotation_clip=False)

    angles = np.linspace(0, 2 * np.pi, 7)[:-1]
    place = np.column_stack([np.cos(angles), np.sin(angles)])
    for i, j in ((0, 2), (2, 4), (4, 1), (1, 5), (5, 3), (3, 0), (2, 5), (4, 0)):
        arrow(loop, place[i], place[j], shrinkA=6, shrinkB=6, lw=0.9,
              connectionstyle="arc3,rad=0.25")  # fmt: skip
    loop.plot(*place.T, "o", **dot)
    arrow(loop, (-2.3, 0), (-1.25, 0))
    arrow(loop, (1.25, 0), (2.3, 0))
    for x, y, text in ((-2.25, 0.3, "$x(t)$"), (-1.5, -0.5, "$u$"), (1.5, -0.5, "$v$"),
                       (2.1, 0.3, "$z$"), (0, 1.35, "weights $W$")):  # fmt: skip
        loop.text(x, y, text, ha="center", size=11)
    loop.set(xlim=(-2.6, 2.6), ylim=(-1.3, 1.8) if is_narrow else (-2.4, 2.5))
    loop.set_title("a recurrent network …", loc="left", weight="bold", size=10)

    n = 5
    for k in range(n):
        height = 1.6 - 0.8 * k
        weight = 0.35 + 0.65 * k / (n - 1)
        chain.plot(-2, height, "s", **dot)
        chain.text(-2.3, height, f"$x_{k}$", ha="right", va="center", size=11)
        arrow(chain, (-1.8, height), (1.0, 0), lw=2.4 * weight, shrinkB=7, alpha=weight)
        name = ("F", "E\\,F")[n - 1 - k] if n - 1 - k < 2 else f"E^{n - 1 - k}F"
        chain.text(-0.95, 0.67 * height + 0.14, f"${name}\\,u$", ha="center", size=9,
                   bbox={"fc": "white", "ec": "none", "pad": 0.5})  # fmt: skip
    chain.plot(1.0, 0, "o", **dot)
    arrow(chain, (1.2, 0), (2.3, 0))
    for x, y, text in ((1.0, 0.4, "$y(T)$"), (1.75, -0.5, "$v$"), (2.2, 0.25, "$z$")):
        chain.text(x, y, text, ha="center", size=11)
    chain.set(xlim=(-2.9, 2.6), ylim=(-2.0, 2.1))
    chain.set_title("… is a sum over the past …", loc="left", weight="bold", size=10)

    for axes in (loop, chain):
        axes.axis("off")
    n_steps = 70
    unfolding = unfold(Reservoir.random(12, rng=0), n_steps=n_steps, dt=10 / n_steps)
    X, y = synthetic_heartbeats(400, n_steps=n_steps, rng=0)
    stimuli = SampleStimuli(X, y)
    u = np.random.default_rng(1).standard_normal(12)
    found = {
        "solved": optimize(unfolding, stimuli),
        "random": optimize(unfolding, stimuli, u=u),
    }
    for (name, one), colour, dash in zip(
        found.items(), (SOLVED, RANDOM), ("-", "--"), strict=True
    ):
        states = unfolding.states(np.eye(n_steps), one.u)
        kernel.plot(
            states @ np.asarray(one.v), dash, color=colour, label=f"{name} $u$, $v$"
        )
    kernel.set(xlabel="step $n$", ylabel="kernel $a_n$", yticks=[0])
    kernel.legend(loc="upper left")
    text = "… with one weight per step: $z=a\\cdot x$"
    kernel.set_title(text, loc="left", weight="bold", size=10)
    return figure


def film(scheme: str, name: str) -> None:
    """Write about ten seconds of the explorer, from random u to the solved one.

    The film shows whole cards: the gauge, the network and the states.
    """
    from PIL import Image

    sys.path.insert(0, str(HERE.parent))
    from tests.apps.report.test_browser import NAMES, Browser

    program = next(found for name in NAMES if (found := shutil.which(name)))
    frames: list[Image.Image] = []
    durations: list[int] = []
    with tempfile.TemporaryDirectory() as place:
        page = Path(place) / "explorer.html"
        shown = ["explore", "ECG5000", "--classes", "1,2", "--out", str(page)]
        subprocess.run([sys.executable, "-m", "greenfold", *shown], check=True)
        browser = Browser(program, Path(place) / "profile")

        def shoot(milliseconds: int) -> None:
            found = browser.call(
                "Page.captureScreenshot",
                format="png",
                clip=clip,
                captureBeyondViewport=True,
            )
            image = Image.open(io.BytesIO(base64.b64decode(found["data"]))).convert("RGB")
            frames.append(image)
            durations.append(milliseconds)

        try:
            browser.visit(page.as_uri(), FILM_WIDTH, scheme)
            browser.ask("document.getElementById('tour-close').click()")
            style = json.dumps(f"<style>{FILM_STYLE}</style>")
            browser.ask(f"document.head.insertAdjacentHTML('beforeend', {style})")
            # A frame passes: the plots take their new sizes in it.
            browser.call("Page.captureScreenshot", format="png")
            box = "document.querySelector('{}').getBoundingClientRect().{}"
            top = browser.ask(box.format(".top", "top")) - FILM_EDGE
            bottom = browser.ask(box.format(".states", "bottom")) + FILM_EDGE
            clip = {
                "x": 0,
                "y": top,
                "width": FILM_WIDTH,
                "height": bottom - top,
                "scale": 1,
            }
            n = browser.ask("window.greenfold.state.mine.length")
            shoot(1200)
            for u in np.random.default_rng(0).standard_normal((2, n)):
                browser.ask(f"window.greenfold.at({json.dumps({'u': u.tolist()})}); 0")
                shoot(1200)
            start = float(browser.ask("document.getElementById('angle').value"))
            # u and −u are the same; the nearer end of the solved line is where it goes.
            end = 0.0 if start <= 90 else 180.0
            for share in np.linspace(0, 1, 31)[1:]:
                angle = start + (end - start) * share**2 * (3 - 2 * share)
                given = json.dumps({"turning": True, "plane": 0, "angle": angle})
                browser.ask(f"window.greenfold.at({given}); 0")
                shoot(100)
            durations[-1] = 3400
        finally:
            browser.close()
    # One palette for all frames, from the first and the last, so that colours stay.
    both = Image.new("RGB", (frames[0].width, 2 * frames[0].height))
    both.paste(frames[0])
    both.paste(frames[-1], (0, frames[0].height))
    colours = both.quantize(FILM_COLOURS, kmeans=1)
    drawn = [one.quantize(palette=colours, dither=Image.Dither.NONE) for one in frames]
    drawn[0].save(
        HERE / "_pictures" / name,
        save_all=True,
        append_images=drawn[1:],
        duration=durations,
        loop=0,
        optimize=True,
    )


def main() -> None:
    """Compute, draw, write."""
    place = HERE / "_pictures"
    place.mkdir(exist_ok=True)
    made = clouds(ecg5000_paper())
    write_json(place / "clouds.json", made)
    with mpl.rc_context(LOOK):
        for name, is_narrow in (("clouds", False), ("clouds-narrow", True)):
            figure = draw(made, is_narrow=is_narrow)
            figure.savefig(place / f"{name}.svg", metadata={"Date": None})
        light = (place / "clouds.svg").read_text("utf-8")
        (place / "clouds-dark.svg").write_text(darkened(light), "utf-8")
        for name, is_narrow in (("unfolding", False), ("unfolding-narrow", True)):
            figure = draw_unfolding(is_narrow=is_narrow)
            unfolded = place / f"{name}.svg"
            figure.savefig(unfolded, metadata={"Date": None}, transparent=True)
        social = draw_social(made)
        social.savefig(
            HERE / "_static" / "social.png", dpi=100, metadata={"Software": None}
        )


if __name__ == "__main__":
    if sys.argv[1:] == ["film"]:
        film("light", "explorer.gif")
        film("dark", "explorer-dark.gif")
    else:
        main()
