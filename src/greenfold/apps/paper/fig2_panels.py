"""The panels of Fig. 2, from its numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import style as look


def draw_single(axes: Any, single: dict, average: dict, p: Any) -> None:
    """Panel (a)."""
    look.letter(axes, "a", "one network, one stimulus set")
    times = np.array(single["times"])
    simulator = {"nest": "NEST", "scipy": "ODE solver"}[single["engine"]]
    above = axes.twinx()
    above.stairs(single["mu"], p.dt * np.arange(p.n_steps + 1), baseline=None,
                 color="0.65", lw=1.2, zorder=0)  # fmt: skip
    above.set_ylabel(r"mean separation $\mu$ (a.u.), thin grey", color=look.NEUTRAL)
    above.spines["right"].set_visible(True)
    above.grid(False)
    low, high = min(single["mu"]), max(single["mu"])
    above.set_ylim(low - 0.1 * (high - low), high + 0.5 * (high - low))
    axes.set_zorder(above.get_zorder() + 1)
    axes.patch.set_visible(False)
    names = {"random": "random $u$", "optimised": "$u$ solved for $T = 10$"}
    for key, colour in (("random", look.RANDOM), ("optimised", look.SOLVED)):
        axes.plot(times, single[key]["analytical"], color=colour, label=names[key], lw=2.2)
        label = f"simulated ({simulator})" if key == "optimised" else None
        axes.plot(times, single[key]["simulated"], "--", color=look.SIMULATION, lw=1.0,
                  label=label)  # fmt: skip
    axes.plot(_solved_times(average)[0], single["reoptimised"], "D", color=look.SOLVED,
              mfc="white", ms=4.0, label="$u$ solved for each $T$")  # fmt: skip
    top = max(single["reoptimised"])
    axes.set(xlabel=look.READOUT_TIME, ylabel=look.MARGIN, ylim=(-0.05 * top, 1.5 * top))
    axes.legend(loc="upper left", ncols=2, columnspacing=1.0)


def _solved_times(average: dict) -> tuple[list, str]:
    """When u was solved for, and how to draw it: a line where steps have two times."""
    if "solved_times" in average:
        return average["solved_times"], "o-"
    return average["step_times"], "o"  # a record with the ends of the steps alone


def draw_average(axes: Any, average: dict) -> None:
    """Panel (b)."""
    look.letter(axes, "b", "average over stimuli")
    for key, (at, dash), spread, colour, label in (
        ("random", (average["times"], "s--"), "random_spread", look.RANDOM,
         "random $u$ (± s.d.)"),
        ("optimised", _solved_times(average), "optimised_standard_error", look.SOLVED,
         "$u$ solved for each $T$ (± s.e. of the stimuli)"),
    ):  # fmt: skip
        times = np.array(at)
        mean, around = np.array(average[key]), np.array(average[spread])
        line = len(dash) > 1
        if line:
            axes.fill_between(times, mean - around, mean + around, color=colour, alpha=0.25,
                              lw=0)  # fmt: skip
        axes.errorbar(times, mean, None if line else around, fmt=dash, color=colour,
                      ms=2.5 if line else 4, label=label)  # fmt: skip
    top = 1.18 * max(average["optimised"])
    axes.set(xlabel=look.READOUT_TIME, ylabel=look.MARGIN, ylim=(None, top))
    axes.legend(loc="upper left")


def draw_modes(axes: Any, modes: dict, p: Any) -> None:
    """Panel (c)."""
    look.letter(axes, "c", "modes that the solved $u$ uses")
    real = np.array(modes["real_part"])
    edges = np.linspace(real.min() - 1e-9, real.max() + 1e-9, 13)
    place = np.digitize(real, edges) - 1
    centres, width = (edges[1:] + edges[:-1]) / 2, edges[1] - edges[0]
    # Both are solved projections: one hue, light and open early, dark and full late.
    looks = zip(p.mode_times, (0.35, 0.9), "sD", strict=True)
    for i, (time, alpha, mark) in enumerate(looks):
        loading = np.array(modes["loadings"][str(time)])
        bars = [
            loading[place == k].mean() if (place == k).any() else 0.0
            for k in range(len(centres))
        ]
        axes.bar(centres + (i - 0.5) * 0.42 * width, bars, 0.42 * width, alpha=alpha,
                 color=look.SOLVED, lw=0, label=f"$T = {time:g}$, mean")  # fmt: skip
        axes.plot(real, loading, mark, color=look.SOLVED if i else "white",
                  mec="k" if i else look.SOLVED, mew=0.5, ms=3.5,
                  label=f"$T = {time:g}$, each mode")  # fmt: skip
    axes.set(
        xlabel=r"real part of the eigenvalue, Re $\lambda_\alpha$ (1)",
        ylabel=r"mean loading $|\omega_\alpha|$ (1)",
    )
    marks = np.array([0.14, 0.17, 0.25, 0.5, 2.0])
    upper = axes.secondary_xaxis("top")
    upper.set_xticks(1 - p.tau / marks, [f"{mark:g}" for mark in marks])
    upper.set_xlabel(r"time constant $\tau_\alpha$ (a.u.)", labelpad=3)
    # Mean of |wᵀu| over random u for a complex unit w; most modes come in pairs.
    level = np.sqrt(np.pi / (4 * len(real)))
    axes.axhline(level, color=look.RANDOM, ls="--", lw=1.2, label="random $u$, mean")
    axes.legend(loc="upper left")


def draw_angle(axes: Any, angle: dict, p: Any) -> None:
    """Panel (d)."""
    look.letter(axes, "d", f"turning $u$ away from $u^*$, $T = {p.angle_time:g}$")
    degrees, top = np.degrees(angle["radians"]), np.max(angle["readout_optimal"])
    kinds = (
        ("readout_optimal", look.SOLVED, "-", "readout solved again"),
        ("readout_kept", look.NEUTRAL, "--", "readout kept as for $u^*$"),
    )
    for key, colour, dash, label in kinds:
        margins = np.array(angle[key])
        axes.plot(degrees, margins.T, color=colour, lw=0.5, alpha=0.3)
        axes.plot(degrees, margins.mean(0), dash, color=colour, lw=2.2, label=label)
    axes.set(xlabel=r"angle between $u$ and $u^*$ (degrees)", ylabel=look.MARGIN,
             xticks=np.arange(-90, 91, 30), ylim=(-0.6 * top, 1.2 * top))  # fmt: skip
    axes.legend(loc="center left")
