"""The tables of the reproduction page: every finding and verdict follows from a record.

`ROWS` writes each row anew from the records, with the condition that its verdict stands
for. The page must hold exactly these rows.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from .test_claims import plain, record

AGREES, PART, DIFFERS = "agrees", "agrees in part", "differs"
HELD = "agrees with v held"
NONE = "not comparable"


@dataclass(frozen=True)
class Row:
    """A row of the page: panel, finding and verdict, and whether the record bears it "
    "out."""

    panel: str
    finding: str
    verdict: str
    holds: bool


def numbers(name: str) -> dict[str, Any]:
    return record(f"_reproduction/{name}.json")["numbers"]


def signed(value: float, digits: int = 3) -> str:
    return f"{value:.{digits}f}".replace("-", "−")


def percent(values: np.ndarray, digits: int) -> str:
    ends = (f"{100 * one:+.{digits}f}" for one in (values.min(), values.max()))
    return f"{' to '.join(ends)} %".replace("-", "−")


def fig2() -> list[Row]:
    found = numbers("fig2")
    single, average, modes, angle = (
        found[key] for key in ("single", "average", "modes", "angle")
    )
    times, held = np.array(single["times"]), np.array(single["held"])
    worst = max(single[k]["deviation_of_range"] for k in ("random", "optimised"))
    rounds = single["alternation"] / single["bound_at_end"]
    at = [held[np.argmin(np.abs(times - t))] for t in (9.45, 9.85)]
    late = times >= 9.5
    curve = np.array(single["optimised"]["analytical"])
    change = np.ptp(curve[late]) / curve[-1]
    peak = curve.argmax()
    solved_times = np.array(average["solved_times"])
    ends = [np.argmin(np.abs(solved_times - t)) for t in (1, 10)]
    first, last = (average["optimised"][i] for i in ends)
    random = [
        average["random"][np.argmin(np.abs(np.array(average["times"]) - t))]
        for t in (1, 10)
    ]
    above = min(average["share_at_or_above_every_random"])
    fast = np.less(modes["time_constant"], 0.5)
    loading = np.array(modes["loadings"]["9.0"])
    share = loading[fast].sum() / loading.sum()
    kept, again = (np.mean(angle[k], 0) for k in ("readout_kept", "readout_optimal"))
    degrees = np.degrees(angle["radians"])
    negative = np.abs(degrees[kept < 0]).min()
    left = again[np.argmin(np.abs(degrees - 60))] / again.max()
    return [
        Row(
            "2a",
            f"Theory and NEST differ by at most {100 * worst:.2f} % of the curve's range.",
            AGREES,
            single["engine"] == "nest" and worst < 0.002,
        ),
        Row(
            "2a",
            f"30 rounds from one random start reach {100 * rounds:.1f} % of the proven "
            "bound.",
            AGREES,
            0.98 < rounds <= 1 + 1e-9,
        ),
        Row(
            "2a, a′",
            f"With u and v held at their optimum for T = 10, κ is {signed(at[0])} at "
            f"t = 9.45, {signed(at[1])} at 9.85 and {signed(held[-1])} at 10. With the "
            "best "
            f"readout at each time, κ changes by {100 * change:.0f} % after t = 9.5.",
            HELD,
            at[0] < at[1] < 0 < held[-1] and change < 0.05,
        ),
        Row(
            "2a",
            f"With the u solved for T = 10, κ is highest at t = {times[peak]:.2f}: "
            f"{curve[peak]:.4f} compared with {curve[-1]:.4f} at 10.",
            AGREES,
            bool(times[peak] < 10 and curve[peak] > curve[-1]),
        ),
        Row(
            "2b",
            f"From T = 1 to T = 10, κ rises from {random[0]:.4f} to {random[1]:.4f} "
            "(random "
            f"u) and from {first:.4f} to {last:.4f} (solved u). None of the 250 random u "
            "is "
            "better than the solved one.",
            AGREES,
            above == 1 and last > first and last > random[1],
        ),
        Row(
            "2c, c′",
            f"T = 9: fast modes (τ_α < 0.5; {100 * fast.mean():.0f} % of all) carry "
            f"{100 * share:.0f} % of the summed loadings, but a slow mode is used more: "
            f"{loading[~fast].mean():.2f} on average, compared with "
            f"{loading[fast].mean():.2f}. "
            "T = 1: not determined with Δt = 1.",
            PART,
            share > 0.5 and loading[~fast].mean() > loading[fast].mean(),
        ),
        Row(
            "2d",
            f"With the readout held, κ is negative at {negative:.0f}°. With the best "
            "readout "
            f"for each u, κ is still {100 * left:.0f} % of its maximum at 60°.",
            HELD,
            negative <= 15 and left > 0.9,
        ),
    ]


def fig3() -> list[Row]:
    found = numbers("fig3")
    a = found["responses"]
    strengths = record("_reproduction/fig3.json")["parameters"]["strengths"]

    def over(key: str) -> np.ndarray:
        """(5 networks, 5 strengths)"""
        values = [np.mean(one[key]) for one in found["soft_margins"]]
        return np.reshape(values, (-1, len(strengths)))

    linear, full = over("linear"), over("nonlinear")
    help_linear = linear / over("random_linear")
    ratio, gain = full / linear, full - linear
    fall = gain[:, 0] / gain[:, -1]
    drawn = over("random_nonlinear") / over("random_linear") - 1
    worse = max(
        np.mean(np.less(one["random_nonlinear"], one["random_linear"]))
        for one in found["soft_margins"]
    )
    good = [one for one in found["soft_margins"] if one["equal"]["validity"]["trustworthy"]]
    equal = [one["equal"]["nonlinear"] / one["linear"] for one in good]
    parts = [one["parts"] for one in found["soft_margins"]]
    shares = np.reshape(
        [
            one["mean_of_covariances"] / (one["mean_linear"] + one["mean_bilinear"])
            for one in parts
        ],
        ratio.shape,
    )

    def span(values: Any, digits: int = 2) -> str:
        return f"{np.min(values):.{digits}f} to {np.max(values):.{digits}f}"

    grown = int((help_linear[:, -1] > help_linear[:, 0]).sum())
    return [
        Row(
            "3a",
            f"The largest error of a state is {100 * a['error_first_order']:.2f} % to "
            "first "
            f"order, {100 * a['error_linear']:.1f} % for the linear network.",
            AGREES,
            a["error_first_order"] < 0.01 < a["error_linear"],
        ),
        Row(
            "3a",
            "The largest Re λ̃ along the trajectory is "
            f"{max(a['eigenvalue_simulated']):.2f}.",
            AGREES,
            max(a["eigenvalue_simulated"]) < 1,
        ),
        Row(
            "3b",
            f"κ of the solved u is {span(help_linear[:, 0])} times that of random u at "
            f"‖μ‖ = 0.19 and {span(help_linear[:, -1])} times at 1; it grows in {grown} "
            "of 5 "
            "networks.",
            PART,
            3 <= grown < 5 and help_linear[:, 0].max() < 1.2,
        ),
        Row(
            "3b",
            f"The non-linear optimum is {span(ratio[:, 0])} times the linear one at "
            f"‖μ‖ = 0.19 and {span(ratio[:, -1])} times at 1.",
            AGREES,
            ratio[:, 0].min() > 2 and ratio[:, -1].max() < 1.3,
        ),
        Row(
            "3b, e",
            "From ‖μ‖ = 0.19 to 1, the gain falls by a factor of "
            f"{', '.join(f'{one:.1f}' for one in fall[:-1])} and {fall[-1]:.1f} in "
            "networks "
            "0 to 4.",
            AGREES,
            int((fall < 2).sum()) == 4,
        ),
        Row(
            "3b",
            "At ‖μ‖ = 0.19, the mean κ of random u changes by "
            f"{percent(drawn[:, 0], 0)}; at "
            f"1, by {percent(drawn[:, -1], 1)}, and up to {100 * worse:.0f} % of the "
            "random "
            "u get worse.",
            PART,
            drawn[:, 0].min() > 0.1 and np.abs(drawn[:, -1]).max() < 0.05 and worse > 0,
        ),
        Row(
            "3c, d",
            "With equal class covariances (χ = 0), the non-linear optimum is "
            f"{span(equal, 3)} "
            f"times the linear one, where the expansion is trustworthy ({len(good)} of "
            "25). "
            f"The covariances make {100 * shares[:, 0].min():.0f} to "
            f"{100 * shares[:, 0].max():.0f} % of the separation at ‖μ‖ = 0.19.",
            AGREES,
            bool(np.abs(np.subtract(equal, 1)).max() < 0.01),
        ),
    ]


def fig4() -> list[Row]:
    found = numbers("fig4")
    best, drawn = found["optimum"], np.array(found["random_accuracy"])
    history = np.array(best["history"])
    times, separation, variance = (
        np.array(best[key]) for key in ("times", "separation", "variance")
    )
    kappa = separation - variance
    positive = times[np.flatnonzero(separation <= variance)[-1] + 1]
    late = times > 1
    share = (history[-1, 0] - history[-1, 1]) / best["kappa"]
    return [
        Row(
            "4a, b",
            f"Solving u raises κ from {np.mean(found['random_kappa']):.3f} to "
            f"{best['kappa']:.3f} and the accuracy from {100 * drawn.mean():.1f} to "
            f"{100 * found['optimised']['accuracy']:.1f} %.",
            AGREES,
            best["kappa"] > max(found["random_kappa"]),
        ),
        Row(
            "4b",
            "States to first order and states of the ODE solver differ by at most "
            f"{100 * found['optimised']['state_error']:.3f} % of the largest.",
            AGREES,
            found["optimised"]["state_error"] < 1e-3,
        ),
        Row(
            "4c",
            f"In ten rounds, the separation rises from {history[0, 0]:.2f} to "
            f"{history[-1, 0]:.2f}, and κ reaches {100 * share:.0f} % of the optimum.",
            AGREES,
            history[-1, 0] > 1.5 * history[0, 0] and 0.9 < share < 1,
        ),
        Row(
            "4d",
            f"κ stays positive from t = {positive:.2f} to 10, where it is {kappa[-1]:.2f}; "
            f"before t = 9, it is at most {kappa[times < 9].max():.2f}.",
            AGREES,
            bool(positive > 9 and kappa[times < 9].max() < kappa[-1] / 2),
        ),
        Row(
            "4d",
            f"After t = 1, the variance term is between {variance[late].min():.3f} and "
            f"{variance[late].max():.3f} (s.d. {variance[late].std():.2f}), the separation "
            f"between {signed(separation[late].min())} and "
            f"{signed(separation[late].max())} "
            f"(s.d. {separation[late].std():.2f}).",
            PART,
            bool(2 * variance[late].std() < separation[late].std()),
        ),
    ]


def table1() -> list[Row]:
    found = numbers("table1")
    cells, total = found["cells"], len(found["networks"])
    errors = max(abs(one["kappa"]["standard errors"]) for one in cells.values())
    drawn, solved = (cells[f"{k}, linear"] for k in ("random", "optimised"))
    away = {
        centre: max(
            abs(one[f"accuracy, {centre}"]["difference"]) for one in (drawn, solved)
        )
        for centre in found["centres"]
    }
    above = found["networks_where_optimised_is_above_every_random"]
    gain = found["gain_of_nonlinearity"]
    return [
        Row(
            "κ",
            f"{drawn['kappa']['mean']:.3f} and {solved['kappa']['mean']:.3f} (linear); all "
            f"four values are within {errors:.1f} standard errors of the paper's.",
            AGREES,
            errors < 1,
        ),
        Row(
            "accuracy",
            f"None of {len(away)} zero points gives both values; the best gives "
            f"{drawn[f'accuracy, {min(away, key=away.__getitem__)}']['mean']:.1f} and "
            f"{solved[f'accuracy, {min(away, key=away.__getitem__)}']['mean']:.1f} %.",
            DIFFERS,
            min(away.values()) > 0.4,
        ),
        Row(
            "solved u",
            f"In κ and in accuracy, in {min(above.values())} of {total} networks at each "
            "of "
            f"the {len(above)} zero points.",
            AGREES,
            found["optimised_above_every_random"] and min(above.values()) == total,
        ),
        Row(
            "gain",
            f"The non-linear optimum is higher by {gain['mean']:.4f} ± {gain['s.d.']:.4f}.",
            AGREES,
            0 < gain["mean"] < 0.002,
        ),
        Row(
            "text",
            f"{found['separability']:.2f}.",
            AGREES,
            abs(found["separability"] - 2.6) < 0.05,
        ),
    ]


def choices() -> list[Row]:
    found = numbers("choices")
    etas = record("_reproduction/choices.json")["parameters"]["etas"]
    eta = numbers("supplement")["eta"]

    def over(kind: str, *path: str) -> np.ndarray:
        rows = []
        for one in found["readouts"]:
            if one["kind"] == kind:
                row: Any = one["over"][etas.index(10)]
                for key in path:
                    row = row[key]
                rows.append(row)
        return np.array(rows)

    def cosine(kind: str, other: str) -> float:
        return float(over(kind, f"cosine of {other}").mean())

    both, machine = "5 and 6", "6 and the machine"
    cosines = {
        kind: (cosine(kind, both), cosine(kind, machine))
        for kind in ("artificial", "ECG5000")
    }
    svm = np.mean(
        [r["machine"]["accuracy"] for r in found["readouts"] if r["kind"] == "ECG5000"]
    )
    chosen = [one["best"] for one in found["taus"]]
    near = sum(abs(np.log(tau / 0.25)) < np.log(1.6) for tau in chosen)
    spread = np.mean([[one["optimised"]["spread"] for one in row] for row in eta], axis=0)
    return [
        Row(
            "c–f",
            f"Cosine with the readout of equation 5: {cosines['artificial'][0]:.2f} "
            f"(artificial), {cosines['ECG5000'][0]:.2f} (ECG5000). With that of a support "
            f"vector machine: {cosines['artificial'][1]:.2f} and "
            f"{cosines['ECG5000'][1]:.2f}. Accuracy on ECG5000: equation 6 "
            f"{over('ECG5000', 'equation 6', 'accuracy').mean():.1f} %, machine "
            f"{svm:.1f} %.",
            DIFFERS,
            max(one[1] for one in cosines.values()) < 0.7,
        ),
        Row(
            "g, h",
            f"The rule chooses 0.25 or a neighbour (on a grid with ratio 1.5) in {near} of "
            f"{len(chosen)} networks.",
            AGREES,
            near >= 15,
        ),
        Row(
            "supplement, a",
            "From η = 0.1 to 1000, the spread along the readout falls from "
            f"{spread[0]:.2f} to "
            f"{spread[-1]:.3f}.",
            AGREES,
            bool((np.diff(spread) < 0).all()),
        ),
    ]


ROWS = [*fig2(), *fig3(), *fig4(), *table1(), *choices()]


def on_the_page() -> list[tuple[str, str, str]]:
    """Rows of the page that have four cells and end in a verdict."""
    text = plain("docs/reproduction.md")
    found = re.findall(
        r"\| ([^|]+) \| [^|]+ \| ([^|]+) \| (agrees[^|]*|differs|not comparable) \|", text
    )
    return [(panel, finding, verdict) for panel, finding, verdict in found]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.panel}: {row.finding[:30]}")
def test_a_verdict_stands_for_its_numbers(row):
    assert row.holds
    assert (row.panel, row.finding, row.verdict) in on_the_page()


def test_the_page_has_no_other_verdict():
    found = on_the_page()
    written = {(row.panel, row.finding, row.verdict) for row in ROWS}
    assert [one for one in found if one not in written and one[2] != NONE] == []
    assert len(found) == len(ROWS) + 1  # Fig. 1 is a sketch


def test_the_page_begins_with_its_verdicts():
    counts = Counter(row.verdict for row in ROWS)
    assert (
        f"Of {len(ROWS)} statements, {counts[AGREES]} agree, {counts[HELD]} agree if the "
        f"readout v is held at its optimum, {counts[PART]} agree in part and "
        f"{counts[DIFFERS]} differ."
    ) in plain("docs/reproduction.md")


def test_the_page_on_eta_says_how_far_the_readouts_are_apart():
    mine = [one for one in numbers("choices")["readouts"] if one["kind"] == "ECG5000"]
    key = "cosine of 6 and the machine"
    cosines = np.mean([[row[key] for row in one["over"]] for one in mine], axis=0)
    at = [row["eta"] for row in mine[0]["over"]].index(10)
    claim = f"is {cosines[at]:.2f} at η = 10 and at most {cosines.max():.2f}"
    assert claim in plain("docs/howto/eta-tau.md")
