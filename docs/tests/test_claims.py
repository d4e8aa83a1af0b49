"""Compare numbers in the README and in the pages with the records they come from.

Each claim is written here as the sentence that today's record makes of it, and must stand
in the text. Where a record is made anew and a number moves, the text has to follow.
"""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


def plain(path: str) -> str:
    """Text of a page, with lines joined."""
    return " ".join(lines_of(path).split())


def lines_of(path: str) -> str:
    return (ROOT / path).read_text("utf-8")


def record(name: str) -> dict[str, Any]:
    return json.loads((DOCS / name).read_text("utf-8"))


def row(name: str, start: str) -> dict[str, Any]:
    """The one row of a recorded benchmark that begins so."""
    rows = [
        r for one in record(f"_benchmarks/{name}.json")["benchmarks"] for r in one["rows"]
    ]
    (found,) = (r for r in rows if r["name"].startswith(start))
    return found


def value(name: str, start: str) -> float:
    return row(name, start)["value"]


def per_network(name: str, start: str, key: str = "ratios") -> np.ndarray:
    """One figure for each network, as a row lists them."""
    return np.array([float(x.strip("%")) for x in row(name, start)["detail"][key].split()])


ECG, LONG = "ECG5000, 500/4500 × 140", "1000/1000 × 1000"
SYSTEMS = [(name, size) for name in ("Lorenz", "Mackey–Glass") for size in (50, 100)]


def forecasts() -> list[str]:
    def valid(system: str) -> str:
        found = row("forecast", f"{system}, N = 50, noise 0 %")["detail"]
        drawn, solved = (np.mean(found[key]) for key in ("drawn", "solved"))
        return f"| {drawn:.1f} | **{solved:.1f}** |"

    noisy = [value("forecast", f"{s}, N = {size}, noise 5 %") for s, size in SYSTEMS]
    above = [
        row("forecast", f"{s}, N = {size}, noise 0 %")["detail"]["above_best_of_draws"]
        for s, size in SYSTEMS
    ]
    seeds = row("forecast", "Lorenz, N = 50, noise 0 %")["detail"]["solved"]
    assert len(seeds) == 10
    assert above == [10] * 4  # "on every seed"
    return [
        "mean of ten seeds.",
        "With 5 % noise on the series, the advantage is only "
        f"{100 * min(noisy) - 100:.0f} to {100 * max(noisy) - 100:.0f} %",
        f"Lorenz forecast, N = 50 ¹ {valid('Lorenz')}",
        f"Mackey–Glass forecast, N = 50 ¹ {valid('Mackey–Glass')}",
    ]


def reproduced() -> list[str]:
    cells = record("_reproduction/table1.json")["numbers"]["cells"]
    kappa = [cells[f"{kind}, linear"]["kappa"] for kind in ("random", "optimised")]
    beyond = record("_reproduction/beyond.json")
    noises = beyond["parameters"]["noises"]
    runs = [r for r in beyond["numbers"]["noise"] if r["n_neurons"] == 100]
    drawn = np.mean([r["random"] for r in runs], axis=(0, 1))
    solved = np.mean([r["optimised"] for r in runs], axis=0)
    gaps = {
        strength: np.array([r["gap"] for r in beyond["numbers"]["certificates"]
                            if r["strength"] == strength])
        for strength in (0.0,)
    }  # fmt: skip
    assert gaps[0.0].max() < 1e-6
    large = [r["gap"] for r in beyond["numbers"]["certificates"] if r["strength"]]
    at = noises.index(0.1)
    n = len(gaps[0.0])
    return [
        f"| κ, {n} networks (paper: {kappa[0]['paper']}, {kappa[1]['paper']}) "
        f"| {kappa[0]['mean']:.3f} | **{kappa[1]['mean']:.3f}** |",
        f"| accuracy, readout noise 0.1 | {drawn[at]:.1f} % | **{solved[at]:.1f} %** |",
        f"| accuracy without noise | {drawn[0]:.1f} % | {solved[0]:.1f} % |",
        f"below 1e-6 in all {n} networks.",
        f"With 100 neurons, {np.less_equal(large, 1e-3).sum()} of {len(large)} are proven "
        f"to within 0.1 %; the largest gap is {100 * max(large):.1f} %.",
    ]


def measured() -> list[str]:
    """Sentences of the README."""
    masks = [value("masks", start) for start in ("random ±1", "two levels")]
    echo = row("echo-state", "N = 100: accuracy that noise costs the solved")["detail"]
    pooled = row("pooled", "mean of the 14")
    assert pooled["detail"]["seeds"] == 5
    rocket = [value("pooled", f"{s}, against ROCKET") for s in (ECG, LONG)]
    mini = [value("pooled", f"{s}, against MiniROCKET") for s in (ECG, LONG)]
    ring = row("normal", "ring, N = 100,000")
    return [
        f"| κ of ±1 masks, share of the bound | {masks[0]:.1f} % | **{masks[1]:.1f} %** |",
        f"| points of accuracy lost to noise ² | {echo['random_loses_points']:.1f} "
        f"| **{echo['solved_loses_points']:.1f}** |",
        f"In a reservoirpy network with readout noise of {echo['noise']:.2f}.",
        f"averaged over five seeds, our mean accuracy is {pooled['value'] / 100:.3f}.",
        f"ROCKET takes {rocket[0]:.0f} times as long on ECG5000 and {rocket[1]:.0f} times "
        "as long on series of 1000 steps; MiniROCKET takes "
        f"{mini[0]:.1f} and {mini[1]:.1f} times",
        f"for a ring of 100,000 neurons in {ring['value']:.1f} s.",
    ]


def proven() -> list[str]:
    """Sentences of the benchmarks page."""
    ring = row("normal", "ring, N = 100,000")
    trees = [row("proofs", f'method="exact", {n} open')["detail"] for n in (20, 10, 3)]
    gaps = np.concatenate([one["gap"] for one in trees])
    assert (gaps <= 1e-4).all()
    longest = max(max(one["seconds"]) for one in trees)
    drawn = [
        row("proofs", f"{n} random problems, N = {size}, strength {strength}")
        for n, size in ((199, 5), (200, 20), (200, 50))
        for strength in (0.19, 1.0)
    ]
    # Two of the 1200 are refused, as their networks amplify too much; they count as open.
    share = sum(int(one["name"].split()[0]) * one["value"] for one in drawn) / 1200
    largest = 100 * max(one["detail"]["largest_gap"] for one in drawn)
    return [
        "In 1200 problems with artificial stimuli (5 to 50 neurons), "
        f"{share:.1f} % of the optima are proven to within 0.01 %; the largest gap is "
        f"{largest:.2f} %",
        f'In a separate test on {len(gaps)} problems with a gap, `method="exact"` closed '
        f"it in at most {longest:.0f} s",
        f"a ring of 100,000 neurons, `optimize` finds it in {ring['value']:.1f} s with "
        "a gap of "
        f"{ring['detail']['gap']:.0e}".replace("e-0", "e-"),
    ]


def ranks() -> list[str]:
    """Rows of the comparison, the best rank first, and the sentence below them."""
    found = record("_sweep/comparison.json")
    names, means, places = (found[k] for k in ("estimators", "mean_accuracy", "mean_rank"))
    order = [i for i in np.argsort(places) if names[i] != "MiniROCKET (published)"]
    table = []
    for i in order:
        mean, place = f"{means[i]:.3f}", f"{places[i]:.2f}"
        mean = f"**{mean}**" if means[i] == max(means) else mean
        place = f"**{place}**" if i == order[0] else place
        name = f"`{names[i]}`" if names[i].endswith("Classifier") else names[i]
        table.append(f"| {name} | {mean} | {place} |")
    ours, rocket = (
        np.array(found["accuracy"])[:, names.index(name)]
        for name in ("PooledReservoirClassifier", "ROCKET (published)")
    )
    assert ours.mean() > rocket.mean()
    three = np.argsort(rocket - ours)[:3]
    rest = np.setdiff1d(np.arange(len(ours)), three)
    assert ours[rest].mean() < rocket[rest].mean()
    sets = ", ".join(sorted(found["datasets"][i] for i in three))
    return [" ".join(table), f"ROCKET's only because of three data sets ({sets})"]


def published() -> list[str]:
    """Sentences of `paper.md` that the README does not have, each with its record."""
    ratio = {
        one: value("forecast", f"{one[0]}, N = {one[1]}, noise 0 %") for one in SYSTEMS
    }
    lorenz, mackey = (list(ratio.values())[i : i + 2] for i in (0, 2))
    dysts = row(
        "forecast-systems", "133 systems of dysts, N = 100, defaults: solved above drawn"
    )
    table = np.array(list(dysts["detail"]["valid_times"].values()))
    assert (table[:, 0] < table[:, 1]).sum() == 2  # "shorter on two"
    assert dysts["value"] == pytest.approx(100 * np.mean(table[:, 0] > table[:, 1]))
    narma = [value("sequences", f"NARMA-10, N = {size}") for size in (50, 100)]
    echo = row("echo-state", "N = 100: accuracy that noise costs the solved")["detail"]
    masks = [value("masks", start) for start in ("random ±1", "two levels")]
    ring = row("normal", "ring, N = 100,000")
    gains = per_network("nonlinear", "‖μ‖ = 0.19: non-linear")
    true = per_network("saturation", "biased tanh, ‖μ‖ = 0.19: κ of")
    ascent = row("alternating", "ascent")
    rival = [value("pooled", f"{ECG}, against {name}") for name in ("ROCKET", "MiniROCKET")]
    sweep = record("_sweep/comparison.json")
    both = zip(sweep["mean_accuracy"], sweep["mean_rank"], strict=True)
    mean = dict(zip(sweep["estimators"], both, strict=True))
    theirs = {
        name: "{:.3f} and {:.2f}".format(*mean[f"{name} (published)"])
        for name in ("HC2", "ROCKET", "MR-Hydra")
    }
    pooled = mean["PooledReservoirClassifier"]
    return [
        f"valid {lorenz[0]:.2f} (N = 50) and {lorenz[1]:.2f} (N = 100) times as long on "
        f"Lorenz and {mackey[0]:.2f} and {mackey[1]:.2f} times as long on Mackey–Glass "
        "(`docs/_benchmarks/forecast.json`)",
        f"on {dysts['value']:.0f} % of 133 chaotic systems from dysts [@gilpin2021] and "
        "shorter on two; the median ratio of the two valid times is "
        f"{dysts['detail']['median_ratio']:.1f} "
        "(`docs/_benchmarks/forecast-systems.json`)",
        f"falls to {narma[0]:.2f} (N = 50) and {narma[1]:.2f} (N = 100) of the error",
        f"loses {echo['random_loses_points']:.1f} points of accuracy to noise with random "
        f"input weights and {echo['solved_loses_points']:.1f} points",
        f"reach {masks[1]:.1f} % of the proven bound; random ones reach {masks[0]:.1f} %",
        f"A ring of 100,000 neurons takes {ring['value']:.1f} s, with a gap of "
        f"{ring['detail']['gap']:.0e}",
        f"order 1 reaches {gains.min():.1f} to {gains.max():.1f} times the κ",
        f"gives {true.min():.1f} to {true.max():.1f} times the κ of the best u that",
        f"on {ascent['detail']['higher_or_equal']} of {ascent['detail']['of']} problems "
        f"and is {ascent['value']:.0f} times faster in the median",
        f"mean accuracy of {pooled[0]:.3f} and a mean rank of {pooled[1]:.2f} among seven",
        f"HC2 [@middlehurst2021] has {theirs['HC2']}, ROCKET {theirs['ROCKET']}, MR-Hydra "
        f"{theirs['MR-Hydra']}",
        f"ROCKET takes {rival[0]:.0f} times and MiniROCKET {rival[1]:.1f} times as long as",
        f"mean accuracy of {mean['ReservoirClassifier'][0]:.3f} on the same 14 data sets",
    ]


@pytest.mark.parametrize("claim", published())
def test_the_paper_says_what_was_recorded(claim):
    assert claim in plain("paper.md")


def test_the_paper_repeats_the_readme():
    """Numbers of tables that it writes as sentences."""
    text = plain("paper.md")
    cells = re.findall(r"\| \**(\d+\.\d+)", " ".join(reproduced()))
    assert len(cells) == 6
    assert all(cell in text for cell in cells)
    assert reproduced()[-1] in text
    cited = set(re.findall(r"@([a-z]+\d{4}\w*)", text))
    assert cited == set(re.findall(r"^@\w+\{(\w+),", lines_of("paper.bib"), re.MULTILINE))
    assert all((ROOT / name).exists() for name in re.findall(r"`(docs/\S+\.json)`", text))


@pytest.mark.parametrize("claim", [*reproduced()[3:], *proven()])
def test_the_page_says_what_was_proven(claim):
    assert claim in plain("docs/benchmarks.md")


def recorded_devices() -> list[str]:
    """Sentences of the page about recordings."""
    named, close = (value("devices", start) for start in ("largest cause", "expected"))
    inside = row("devices", "κ of a weak drive")
    kinds = "Ikeda ring", "tanh network", "Mackey–Glass loop"
    few, many = (
        [f"{value('refine', f'{kind}: {n} passes'):.0f}" for kind in kinds]
        for n in (50, 200)
    )
    raised, lost = (row("devices", start) for start in ("share of", "masks said"))
    nearly = row("devices", "expected")["detail"]["solved, at most 2 % non-linear"]
    tasks = [row("device-tasks", f"{one}, ±1") for one in ("three classes", "equaliser")]
    every = record("_benchmarks/device-tasks.json")["benchmarks"][0]["rows"]
    shares = sorted(one["value"] for one in every)
    random = sorted(one["detail"]["random masks, mean"] for one in every)
    solved, drawn = (
        [one["detail"][f"right{which}"] for one in tasks]
        for which in (" on new series", ", random best")
    )
    return [
        f"{shares[0]:.1f} to {shares[-1]:.1f} % of the bound, and random masks "
        f"{random[0]:.0f} to {random[-1]:.0f} % on average",
        f"{solved[0]:.1f} % of the classes and {solved[1]:.1f} % of the symbols, and the "
        f"best of twenty random masks {drawn[0]:.1f} % and {drawn[1]:.1f} %",
        f"200 passes then gain {many[0]} % on Ikeda rings, {many[1]} % on tanh networks "
        f"and {many[2]} % on Mackey–Glass loops (50 passes: {few[0]}, {few[1]} and "
        f"{few[2]} %)",
        f"the tanh networks gains {value('refine', 'tanh network: ceiling'):.0f} %",
        f"the largest cause is named for {named:.0f} of 30",
        f"{inside['value']:.0f} of the intervals with ends ({inside['unit']}) hold κ of a",
        f"{close:.0f} % of the expected accuracies are within two points",
        f"the next recordings raise it for {raised['value']:.0f} {raised['unit']} devices",
        f"{lost['value']:.0f} {lost['unit']} masks that were said to pay lost more than a",
        f"at most 2 % of the variance is non-linear, {nearly} solved masks are",
    ]


@pytest.mark.parametrize("claim", recorded_devices())
def test_the_page_of_recordings_says_what_was_recorded(claim):
    assert claim in plain("docs/howto/recording.md")


README = [*reproduced()[:3], *measured(), *forecasts(), *ranks()]


@pytest.mark.parametrize("claim", README)
def test_the_readme_says_what_was_recorded(claim):
    assert claim in plain("README.md")


def words_and_numbers(text: str) -> tuple[list[str], list[float]]:
    """Split printed text; the numbers of another machine differ by rounding."""
    number = r"(?<![\w.])[−-]?\d+(?:\.\d+)?(?:e-?\d+)?(?![\w.])"
    return re.split(number, text), [float(one) for one in re.findall(number, text)]


@pytest.mark.parametrize("door", re.findall(r"## (I have .*)", lines_of("README.md")))
def test_the_readme_is_code_that_prints_what_it_says(door, capsys):
    text = lines_of("README.md").partition(f"## {door}\n")[2]
    found = re.search(r"```python\n(.*?)```", text, re.DOTALL)
    assert found
    exec(found[1], {})
    lines = re.findall(r"^# (.*)$", found[1], re.MULTILINE)
    told, values = words_and_numbers("\n".join(lines) + "\n")
    printed, measured = words_and_numbers(capsys.readouterr().out)
    assert printed == told
    # Rounding is far below the last digit printed; a gap of rounding alone may be any.
    assert measured == pytest.approx(values, rel=2e-2, abs=1e-9)


def test_links_of_the_readme_lead_to_built_pages():
    home = "https://greenfold.github.io/greenfold/"
    found = re.findall(rf"{home}(\S+)\.html(?:#(\S+))?", lines_of("README.md"))
    assert len(found) > 10
    for page, anchor in found:
        (source,) = [one for one in DOCS.glob(f"{page}.*") if one.suffix in (".md", ".rst")]
        headings = re.findall(r"^#+ (.*)", source.read_text("utf-8"), re.MULTILINE)
        known = [one.lower().replace(" ", "-") for one in headings]
        assert not anchor or anchor in known, (page, anchor)
    names = set(re.findall(r"^\[(.+?)\]: ", lines_of("README.md"), re.MULTILINE))
    used = re.findall(r"\[([^\]]+)\]\[([^\]]*)\]", plain("README.md"))
    assert {name or text for text, name in used} == names


def test_the_readme_says_what_its_quick_commands_print():
    """Those two that take seconds and have no record."""
    from greenfold import Reservoir, memory_capacity, unfold
    from greenfold.apps.demo import order_errors, order_slopes

    text = plain("README.md")
    rng = np.random.default_rng(0)
    network = unfold(Reservoir.random(50, tau=2.0, rng=rng), n_steps=60, dt=0.5)
    drawn = memory_capacity(network, "random", delays=range(1, 11), rng=rng).random
    solved = memory_capacity(network, delays=range(1, 11), rng=rng).total
    assert drawn is not None
    capacity = f"noise 0.1 | {drawn.mean():.2f} | **{solved:.2f}**"
    assert f"{capacity} | `greenfold memory --neurons 50`" in text
    text = plain("docs/benchmarks.md")
    found = re.search(r"as αᵖ with p = ([\d., ]+) for k = 0, 1, 2, 3", text)
    assert found
    claimed = [float(one) for one in found[1].split(",")]
    # Two digits are printed; the solver's tolerance is far below them.
    assert claimed == pytest.approx(list(order_slopes(order_errors())), abs=0.0051)


def test_the_page_on_gains_quotes_both_lists():
    gains = per_network("nonlinear", "‖μ‖ = 0.19: non-linear")
    summary = " ".join(record("_reproduction/fig3.json")["summary"])
    found = re.search(r"‖μ‖ = 0.19: .*?\(([\d.]+)–([\d.]+) times", summary)
    assert found
    low, high = map(float, found.groups())
    assert (
        f"the ratio of non-linear to linear optimum is {gains.min():.1f} to "
        f"{gains.max():.1f} in the recorded runs above and {low:.1f} to {high:.1f} in "
        "Fig. 3b"
    ) in plain("docs/records/optima.md")


def test_the_page_on_networks_says_what_the_study_found():
    """Ratios and losses in words, each with the numbers that the words stand for."""
    with open(DOCS / "_study" / "study.csv", encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))

    def mean(architecture: str, inside: str, column: str) -> float:
        own = [
            float(r[column])
            for r in rows
            if (r["architecture"], r["inside"], r["neurons"], r["g"], r["tau"])
            == (architecture, inside, "50", "0.9", "0.25")
        ]
        return float(np.mean(own))

    kinds = sorted({r["architecture"] for r in rows})
    kappa = {k: mean(k, "0.0", "kappa") for k in kinds}
    gain = [kappa[k] / mean(k, "0.0", "kappa_random") for k in kinds]
    assert max(kappa.values()) / min(kappa.values()) == pytest.approx(2.5, abs=0.05)
    assert [min(gain), max(gain)] == pytest.approx([1.5, 2.5], abs=0.05)
    order = sorted(kappa, key=lambda k: -kappa[k])
    assert (order[0], order[1], order[-1]) == ("legendre", "dale", "oscillators")
    lost = {k: 1 - mean(k, "0.03", "kappa") / kappa[k] for k in kinds}
    assert all(0.28 < lost[k] < 0.38 for k in ("legendre", "dale"))
    assert all(0.11 < lost[k] < 0.17 for k in kinds if k not in ("legendre", "dale"))
    assert mean("legendre", "0.03", "kappa_random") < 0.5 * mean(
        "legendre", "0.0", "kappa_random"
    )
    gaps = [1 - float(r["kappa"]) / float(r["bound"]) for r in rows]
    assert max(gaps) < 5e-4
    text = plain("docs/howto/which-network.md")
    assert f"All {len(gaps)} optima are certified" in text
    fast = [
        float(r["kappa"])
        for r in rows
        if (r["architecture"], r["inside"], r["neurons"], r["g"], r["tau"])
        == ("random", "0.0", "50", "0.97", "0.125")
    ]
    assert f"({np.mean(fast):.2f} compared with {kappa['legendre']:.2f})" in text
    few = [row("reservoirs", f"few series: {start}")["detail"] for start in ("κ*", "κ of")]
    (start, end), (held, lost_there) = ([d["before"], d["after"]] for d in few)
    assert f"rises from {start:.2f} to {end:.2f} while" in text
    assert f"falls from {held:.2f} to −{-lost_there:.2f}." in text


def test_the_benchmarks_page_begins_with_what_was_recorded():
    """Its list of main results rounds the records as they are printed."""
    text = plain("docs/benchmarks.md")
    cells = record("_reproduction/table1.json")["numbers"]["cells"]
    drawn, solved = (
        cells[f"{kind}, linear"]["kappa"]["mean"] for kind in ("random", "optimised")
    )
    masks = [value("masks", start) for start in ("two levels", "random ±1")]
    ratios = [
        value("forecast", f"{system}, N = 50, noise 0 %")
        for system in ("Lorenz", "Mackey–Glass")
    ]
    seeds = row("pooled", "mean of the 14")
    swept = record("_sweep/comparison.json")
    rank = dict(zip(swept["estimators"], swept["mean_rank"], strict=True))
    mean = dict(zip(swept["estimators"], swept["mean_accuracy"], strict=True))
    true, far = (
        per_network("saturation", f"biased tanh, ‖μ‖ = {at}: κ of") for at in ("0.19", "1")
    )
    noisy = [value("forecast", f"{s}, N = {size}, noise 5 %") for s, size in SYSTEMS]
    few, slower = dict[int, list[str]](), dict[int, list[float]]()
    for kind in ("solved", "solved N = 200", "solved N = 150"):
        size = 300 if kind == "solved" else int(kind[-3:])
        start = f"valid time solved N = {size}"
        equal = [
            row("equal-time", f"{one}: {start}")["detail"]
            for one in ("Lorenz", "Mackey–Glass", "Lorenz 96, eight sites")
        ]
        few[size] = [f"{np.mean(one[kind]):.1f}" for one in equal]
        drawn_times = [f"{np.mean(one['drawn']):.1f}" for one in equal]
        assert [len(one[kind]) for one in equal] == [5] * 3  # "five seeds"
        slower[size] = [one[f"{kind}_s"] / one["drawn_s"] for one in equal]
    mini = [value("pooled", f"{s}, against MiniROCKET") for s in (ECG, LONG)]
    for claim in (
        f"raises κ from {drawn:.3f} to {solved:.3f}",
        f"reach {masks[0]:.1f} % of the proven bound; random ±1 masks reach "
        f"{masks[1]:.1f} %",
        f"valid {ratios[0]:.2f} times as long on Lorenz and {ratios[1]:.2f} times",
        *(
            f"| {size}, solved | {' | '.join(times)} | {min(slower[size]):.1f} to "
            f"{max(slower[size]):.1f} |"
            for size, times in few.items()
        ),
        f"| 1000, random | {' | '.join(drawn_times)} | 1 |",
        "`PooledReservoirClassifier` has a mean accuracy of "
        f"{mean['PooledReservoirClassifier']:.3f}, compared with "
        f"{mean['ROCKET (published)']:.3f} published for ROCKET",
        f"Over five seeds, our mean accuracy is {seeds['value'] / 100:.3f}",
        f"mean rank, {rank['ROCKET (published)']:.2f} versus "
        f"{rank['PooledReservoirClassifier']:.2f}, and HC2 has the best, "
        f"{rank['HC2 (published)']:.2f}",
        f"you get {true.min():.1f} to {true.max():.1f} times the κ",
        f"For ‖μ‖ = 1, the factor is {far.min():.1f} to {far.max():.1f}",
        f"valid only {100 * min(noisy) - 100:.0f} to {100 * max(noisy) - 100:.0f} % longer",
        f"on the 14 UCR data sets is {mean['ReservoirClassifier']:.3f}, compared with "
        f"{mean['ROCKET (published)']:.3f} for ROCKET",
        f"takes {mini[0]:.1f} times as long on ECG5000 and {mini[1]:.1f} times as long on",
    ):
        assert claim in text


def test_the_page_on_forecasts_says_what_was_recorded():
    text = plain("docs/howto/forecast.md")
    (bands,) = record("_benchmarks/bands.json")["benchmarks"]
    inside = [one["value"] for one in bands["rows"]]
    assert len(inside) == 6  # "six series"
    assert f"contained {min(inside):.0f} to {max(inside):.0f} % of the later" in text
    solved, drawn = (value("long-run", f"{one}: loops of") for one in ("solved", "drawn"))
    assert solved == value("long-run", "solved: largest exponent") == 50  # "all 50 seeds"
    assert f"with random input weights, {drawn:.0f} stay" in text


def test_pages_say_what_voting_gained():
    found = record("_vote/vote.json")
    names, ranks, means = (found[k] for k in ("estimators", "mean_rank", "mean_accuracy"))
    rank, mean = (dict(zip(names, one, strict=True)) for one in (ranks, means))
    alone, best = rank["PooledReservoirClassifier"], rank["HC2 (published)"]
    assert best == min(ranks)
    assert mean["three"] < mean["PooledReservoirClassifier"] < mean["two"]
    assert rank["three"] < rank["two"] < alone
    text = plain("docs/benchmarks.md")
    gained = f"our mean rank from {alone:.2f} to {rank['three']:.2f} (HC2: {best:.2f})"
    assert gained in text


def test_the_reproduction_lists_the_gain_of_five_networks():
    """Rows of its table, and what it says of random u, against Fig. 3's record."""
    found = record("_reproduction/fig3.json")
    strengths = found["parameters"]["strengths"]
    text, ratios, raised = plain("docs/reproduction.md"), [], []
    for network in range(found["parameters"]["n_networks"]):
        mine = [r for r in found["numbers"]["soft_margins"] if r["network"] == network]
        gain = [r["nonlinear"] - r["linear"] for r in mine]
        ratios.append(gain[0] / gain[-1])
        good = [f"{r['strength']:g}" for r in mine if r["validity"]["trustworthy"]]
        at = "all five ‖μ‖" if len(good) == len(strengths) else ", ".join(good) or "none"
        low = mine[0]
        kappas = (low["linear"], low["nonlinear"], low["equal"]["nonlinear"])
        line = f"| {network} | {' | '.join(f'{kappa:.5f}' for kappa in kappas)} | "
        line += f"{gain[0]:.4f} | {gain[-1]:.4f} | {ratios[-1]:.1f} | {at} |"
        assert line in text
        drawn = [np.mean(r["random_nonlinear"]) - np.mean(r["random_linear"]) for r in mine]
        raised.append((drawn[0] > 0, drawn[-1] > 0))
    # Rather constant: within a factor of two.
    assert [ratio < 2 for ratio in ratios] == [False, True, True, True, True]
    assert raised == [(True, False)] * 3 + [(True, True)] * 2


def test_the_size_of_a_fly_brain_on_the_page_on_connectomes():
    whole = "138,639 cells, 14,957,344 connections, K = 140, ECG5000"
    host, cuda = (row(f"connectome{place}", whole) for place in ("", "-cuda"))
    assert host["met"]
    assert cuda["met"]
    assert {one["detail"]["status"] for one in (host, cuda)} == {"certified"}
    core, memory = f"{host['value']:.0f} s on one core", host["detail"]["mib"] / 1024
    claim = (
        f"{core}, with {memory:.1f} GiB beyond the weights, and in {cuda['value']:.0f} s"
    )
    page = plain("docs/howto/connectome.md")
    assert claim in page
    name = "20,000 tanh neurons, 200 series: states and gradient"
    found = row("connectome-cuda", name)
    assert found["met"]
    more = found["detail"]
    assert f"took {more['seconds']:.1f} s on an H200 for 20,000 neurons" in page
    assert f"{found['value']:.1f} times the products alone" in page
    assert f"with {more['gpu_mib'] / 1024:.0f} GiB for the states on the way" in page
