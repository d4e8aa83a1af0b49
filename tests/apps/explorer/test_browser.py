"""The explorer in Chromium: its numbers against Python's, and its page on any screen."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from greenfold import Reservoir, unfold
from greenfold.apps.explorer import SliderGrid, Start, solve_grid
from greenfold.math.decisions import Clouds, decide, held_out_score
from greenfold.math.margins import gaussian_soft_margin, state_moments
from greenfold.optimizers.linear import LinearProblem

from ..report.test_browser import NAMES, Browser, _contrast, _luminance, _quiet
from .conftest import N_NEURONS, N_STEPS, prepare, write_explorer

pytestmark = [pytest.mark.contract, pytest.mark.needs("chromium")]

#: The page and Python compute the same numbers in double precision, by other routes; what
#: remains is rounding, amplified where a readout is nearly undetermined (K close to N).
TOLERANCE = 1e-6


class Explorer(Browser):
    """The browser, with long timeouts and reduced motion."""

    def visit(
        self,
        url: str,
        width: int,
        scheme: str,
        media: str = "screen",
        reduced: bool = False,
    ) -> None:
        super().visit("about:blank", width, scheme, media)
        motion = "reduce" if reduced else "no-preference"
        features = [
            {"name": "prefers-color-scheme", "value": scheme},
            {"name": "prefers-reduced-motion", "value": motion},
        ]
        self.call("Emulation.setEmulatedMedia", media=media, features=features)
        self.events.clear()
        self.call("Page.navigate", url=url)
        while not any(one["method"] == "Page.loadEventFired" for one in self.events):
            self.events.append(self._receive())

    def wait(self, condition: str, seconds: float = 20.0) -> None:
        """Wait until a condition holds in the page."""
        end = time.monotonic() + seconds
        while not self.ask(condition):
            assert time.monotonic() < end, condition
            time.sleep(0.02)


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    program = next(found for name in NAMES if (found := shutil.which(name)))
    made = Explorer(program, tmp_path_factory.mktemp("profile"))
    yield made
    made.close()


@pytest.fixture(scope="module")
def page(tmp_path_factory, unfolding, sets) -> Path:
    path = tmp_path_factory.mktemp("page") / "page.html"
    return write_explorer(path, unfolding, sets, command="greenfold explore")


def at(browser: Explorer, **given: Any) -> dict[str, Any]:
    """Numbers of the page in a state."""
    plain = {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in given.items()}
    return browser.ask(f"window.greenfold.at({json.dumps(plain)})")


def judge(unfolding, material, solved, *, eta, step, u, noise, kept) -> dict[str, Any]:
    """The same numbers from the states of the network, by the library's own routes."""
    pair = solved.pair
    stimuli = material.stimuli(pair)
    system = unfolding.with_readout(step * unfolding.dt)
    u = u / np.linalg.norm(u)
    problem = LinearProblem(system.maps, stimuli, eta)
    i, j = solved.grid.etas.index(eta), solved.grid.steps.index(step)
    # As it travels, in single precision.
    v = solved.v[i, j].astype("f4").astype(float) if kept else problem.best_readout(u)[0]
    train, test = (np.isin(c, pair) for c in (material.codes, material.codes_test))
    signs = np.where(material.codes[train] == pair[1], 1, -1)
    states = system.states(stimuli.transform(material.X[train]), u)
    share = np.where(signs > 0, stimuli.class_share[1], stimuli.class_share[0])
    weights = share / np.where(signs > 0, (signs > 0).sum(), (signs < 0).sum())
    M, Sigma = state_moments(states, signs, weights)
    kappa = gaussian_soft_margin(M, Sigma, v, eta)
    across = np.linalg.eigh(Sigma)[1][:, -1]
    across = across - (across @ v) * v
    across /= np.linalg.norm(across)
    codes = (signs > 0).astype(int)
    clouds = Clouds.of(
        (states @ v)[:, None], codes, np.ones(len(codes)), material.weights[list(pair)]
    )
    decision = decide(clouds, noise=noise, threshold="trained")
    fresh = system.states(stimuli.transform(material.X_test[test]), u) @ v
    judged = (material.codes_test[test] == pair[1]).astype(int)
    correct, _ = held_out_score(decision, fresh[:, None], judged, noise)
    return {
        "kappa": kappa.value,
        "separation": kappa.separation,
        "x": states @ v,
        "y": states @ across,
        "plane": decision.threshold[0],
        "accuracy": correct.mean(),
        "bound": solved.bound[i, j],
    }


def agree(found: dict[str, Any], expected: dict[str, Any]) -> None:
    size = np.abs(expected["x"]).max()
    for name in ("kappa", "separation", "plane", "accuracy", "bound"):
        assert found[name] == pytest.approx(expected[name], rel=TOLERANCE, abs=TOLERANCE), (
            name
        )
    assert found["x"] == pytest.approx(expected["x"], abs=TOLERANCE * size)
    y, wanted = np.array(found["y"]), expected["y"]
    wanted = wanted * np.sign(wanted @ y)
    assert y == pytest.approx(wanted, abs=TOLERANCE * max(size, np.abs(wanted).max()))


def test_ten_random_states_agree_with_python(browser, page, unfolding, sets):
    browser.visit(page.as_uri(), 1400, "light")
    rng = np.random.default_rng(8)
    for number in range(10):
        which = number % 2
        material, (solved,) = sets[which]
        u = rng.standard_normal((N_NEURONS, material.X.shape[1]))
        eta, step = rng.choice(solved.grid.etas), int(rng.choice(solved.grid.steps))
        noise = 0.0 if number == 3 else float(rng.uniform(0, solved.noises[-1]))
        kept = number in (4, 7)
        given = {"eta": float(eta), "step": step, "noise": noise}
        chosen = {"set": which, "pair": 0, "readout": "kept" if kept else "solved"}
        found = at(browser, **chosen, **given, u=u.ravel())
        agree(found, judge(unfolding, material, solved, **given, u=u, kept=kept))
    _quiet(browser)


def test_fewer_steps_than_neurons(browser, tmp_path):
    """The hard case of the readout: Σ is singular and M lies in its range."""
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    X = rng.standard_normal((60, 8)) + y[:, None]
    material = prepare("short", X, y)
    unfolding = unfold(Reservoir.random(30, rng=1), n_steps=8, dt=0.5)
    solved = solve_grid(unfolding, material, (0, 1), SliderGrid((3.0, 1e-3), (8,)))
    page = write_explorer(tmp_path / "page.html", unfolding, [(material, [solved])])
    browser.visit(page.as_uri(), 1400, "light")
    for eta in (3.0, 1e-3):
        u = rng.standard_normal((30, 1))
        found = at(browser, eta=eta, step=8, noise=0.05, u=u.ravel())
        expected = judge(
            unfolding, material, solved, eta=eta, step=8, noise=0.05, u=u, kept=False
        )
        agree(found, expected)
    _quiet(browser)


def test_large_networks_travel_in_single_precision(browser, tmp_path):
    """E and F rounded to 24 bits: errors of 6e-8 each, over a few steps of memory."""
    rng = np.random.default_rng(1)
    y = np.arange(80) % 2
    X = rng.standard_normal((80, 40)) + 0.5 * y[:, None]
    material = prepare("large", X, y)
    unfolding = unfold(Reservoir.random(70, rng=1), n_steps=40, dt=0.25)
    solved = solve_grid(unfolding, material, (0, 1), SliderGrid((3.0,), (40,)))
    page = write_explorer(tmp_path / "page.html", unfolding, [(material, [solved])])
    browser.visit(page.as_uri(), 1400, "light")
    u = rng.standard_normal((70, 1))
    given = {"eta": 3.0, "step": 40, "noise": 0.05}
    found = at(browser, **given, u=u.ravel())
    expected = judge(unfolding, material, solved, **given, u=u, kept=False)
    agree(found, expected)
    assert found["kappa"] != expected["kappa"]


def test_the_solved_u_reaches_what_python_says(browser, page, sets):
    browser.visit(page.as_uri(), 1400, "light")
    for which, (material, (solved,)) in enumerate(sets):
        for i, eta in enumerate(solved.grid.etas):
            for j, step in enumerate(solved.grid.steps):
                chosen = {"set": which, "pair": 0, "eta": eta, "step": step}
                found = at(browser, **chosen, u=solved.u[i, j].ravel())
                assert found["kappa"] == pytest.approx(solved.soft_margin[i, j], rel=1e-6)
                assert found["kappa"] <= found["bound"] * (1 + 1e-9)
        assert material.judged == ("test" if which == 0 else "training")


def test_climbing_rises_to_the_bound(browser, page, sets):
    browser.visit(page.as_uri(), 1400, "light", reduced=True)
    _, (solved,) = sets[0]
    u = np.random.default_rng(3).standard_normal(N_NEURONS)
    before = at(browser, set=0, pair=0, eta=3.0, step=N_STEPS, u=u)
    browser.ask("document.getElementById('climb').click()")
    browser.wait("document.getElementById('climb').ariaPressed === 'false'")
    after = at(browser)
    assert after["kappa"] > before["kappa"]
    assert after["kappa"] <= solved.bound[1, 1] * (1 + 1e-9)
    assert after["kappa"] >= 0.9 * solved.bound[1, 1]
    browser.ask("document.getElementById('solve').click()")
    assert at(browser)["kappa"] == pytest.approx(solved.soft_margin[1, 1], rel=1e-6)
    _quiet(browser)


def test_turning_in_a_plane(browser, page, unfolding, sets):
    material, (solved,) = sets[0]
    browser.visit(page.as_uri(), 1400, "light")
    star = solved.u[1, 1, :, 0]
    for angle in (0, 35, 90):
        chosen = {"turning": True, "plane": 2, "angle": angle, "eta": 3.0, "step": N_STEPS}
        found = at(browser, set=0, pair=0, **chosen)
        u = np.array(found["u"])
        assert np.linalg.norm(u) == pytest.approx(1)
        assert u @ star == pytest.approx(np.cos(np.deg2rad(angle)), abs=1e-6)
        given = {"eta": 3.0, "step": N_STEPS, "noise": browser.ask("greenfold.state.noise")}
        agree(found, judge(unfolding, material, solved, **given, u=u[:, None], kept=False))


def test_a_pair_without_a_bound_claims_none(browser, page):
    browser.visit(page.as_uri(), 1400, "light")
    found = at(browser, set=1, pair=1)
    assert found["bound"] is None
    text = browser.ask("document.body.innerText")
    assert "This page has no bound for this pair" in text
    assert "proven bound" not in text
    assert "best found here" in text
    _quiet(browser)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 1400])
def test_the_page_on_a_screen(browser, page, width, scheme):
    browser.visit(page.as_uri(), width, scheme)
    browser.wait("document.getElementById('share').textContent.length > 0")
    assert browser.ask("document.documentElement.scrollWidth") <= width
    boxes = browser.ask(
        "[...document.querySelectorAll('.panel')].map(p => {"
        "const b = p.getBoundingClientRect();"
        "return [b.left, b.top, b.right, b.bottom]})"
    )
    assert len(boxes) == 6
    for i, one in enumerate(boxes):
        assert one[0] >= 0
        assert one[2] <= width
        for other in boxes[i + 1 :]:
            apart = one[2] <= other[0] or other[2] <= one[0]
            assert apart or one[3] <= other[1] or other[3] <= one[1]
    colour = "getComputedStyle(document.querySelector('{}')).{}"
    panel = browser.ask(colour.format(".panel", "backgroundColor"))
    assert (_luminance(panel) > 0.5) == (scheme == "light")
    for part, name in (("#random", "color"), ("#story", "color"), (".tick", "fill")):
        assert _contrast(browser.ask(colour.format(part, name)), panel) > 4.5, part
    # Mixed colours are not given as red, green and blue; these two are the plain ones.
    for part in (".bound-text", ".now-text"):
        assert _contrast(browser.ask(colour.format(part, "fill")), panel) > 4.5, part
    for part in (".dots.a", ".dots.b", ".bars", ".solved-line", ".random-line"):
        assert _contrast(browser.ask(colour.format(part, "stroke")), panel) > 3, part
    _quiet(browser)


def test_bars_are_dragged_and_typed(browser, page):
    browser.visit(page.as_uri(), 1400, "light")
    at(browser, set=0, pair=0, u=np.ones(N_NEURONS))
    middle = browser.ask(
        "(() => {const b = document.getElementById('ring').getBoundingClientRect();"
        "return [b.left + b.width / 2, b.top + b.height / 2, b.width / 440]})()"
    )
    x, y, size = middle
    # Neuron 1 is at the top: outwards is up.
    for kind, radius in (
        ("mousePressed", 152),
        ("mouseMoved", 190),
        ("mouseReleased", 190),
    ):
        browser.call(
            "Input.dispatchMouseEvent",
            type=kind,
            x=x,
            y=y - radius * size,
            button="left",
            clickCount=1,
        )
    u = np.array(browser.ask("Array.from(greenfold.state.mine)"))
    assert np.linalg.norm(u) == pytest.approx(1)
    assert u[0] > 1.1 / np.sqrt(N_NEURONS)
    # The others keep their proportions.
    assert u[1:] == pytest.approx(u[1])
    for key in ("ArrowRight", "ArrowUp"):
        browser.call("Input.dispatchKeyEvent", type="keyDown", key=key)
    v = np.array(browser.ask("Array.from(greenfold.state.mine)"))
    assert v[1] > u[1]
    assert v[0] < u[0]
    label = browser.ask("document.activeElement.ariaLabel")
    assert label == "u of neuron 2"
    browser.wait("!greenfold.busy()")
    now = float(browser.ask("document.activeElement.getAttribute('aria-valuenow')"))
    assert now == pytest.approx(v[1], abs=1e-3)
    _quiet(browser)


def test_a_finger_drags_taps_and_scrolls(browser, page):
    def where(selector: str) -> list[float]:
        browser.ask(
            f"document.querySelector('{selector}').scrollIntoView({{block: 'center'}})"
        )
        time.sleep(0.3)  # until a scroll has come to rest
        box = f"document.querySelector('{selector}').getBoundingClientRect()"
        return browser.ask(
            f"(b => [b.left + b.width / 2, b.top + b.height / 2, b.width])({box})"
        )

    def touch(*points: tuple[float, float]) -> None:
        at = [{"x": x, "y": y} for x, y in points]
        for n, one in enumerate(at):
            kind = "touchMove" if n else "touchStart"
            browser.call("Input.dispatchTouchEvent", type=kind, touchPoints=[one])
            time.sleep(0.05)  # moves are given to the page once per frame
        browser.call("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])

    browser.call("Emulation.setTouchEmulationEnabled", enabled=True)
    browser.visit(page.as_uri(), 400, "light")
    at(browser, set=0, pair=0, u=np.ones(N_NEURONS))
    x, y, width = where("#ring")
    scale = width / 440
    touch((x, y - 152 * scale), (x, y - 170 * scale), (x, y - 190 * scale))
    u = np.array(browser.ask("Array.from(greenfold.state.mine)"))
    assert u[0] > 1.1 / np.sqrt(N_NEURONS)
    # A finger that begins on a plot scrolls the page.
    x, y, _ = where("#clouds")
    before = browser.ask("scrollY")
    touch((x, y), (x, y - 60), (x, y - 150))
    browser.wait(f"scrollY > {before} + 50")
    x, y, width = where("#noise-level")
    touch((x, y), (x + 0.2 * width, y), (x + 0.4 * width, y))
    share = browser.ask(
        "greenfold.state.noise / document.getElementById('noise-level').max"
    )
    assert share > 0.8
    x, y, _ = where("#solve")
    touch((x, y))
    browser.wait("greenfold.state.turning && greenfold.state.angle === 0")
    low = browser.ask(
        "[...document.querySelectorAll('button, select, input:not([type=radio])')].filter("
        "e => e.offsetWidth && e.offsetHeight < 40).map(e => e.id)"
    )
    assert low == []
    browser.call("Emulation.setTouchEmulationEnabled", enabled=False)
    _quiet(browser)


def test_every_control_is_reached_by_the_keyboard(browser, page):
    browser.visit(page.as_uri(), 1400, "light")
    reached = set()
    for _ in range(40):
        browser.call(
            "Input.dispatchKeyEvent",
            type="keyDown",
            key="Tab",
            code="Tab",
            windowsVirtualKeyCode=9,
        )
        reached.add(
            browser.ask(
                "document.activeElement.id || document.activeElement.name"
                " || document.activeElement.getAttribute('role')"
            )
        )
    wanted = {"slider", "random", "climb", "solve", "set", "own", "angle", "plane"}
    wanted |= {"readout", "noise-level", "step", "eta"}
    assert wanted <= reached, wanted - reached


def test_a_tour_explains_u_kappa_and_eta(browser, page):
    """By the keyboard alone: it moves to what it explains, and the focus with it."""

    def press(key: str, code: int) -> None:
        text = {"text": "\r"} if key == "Enter" else {}
        given = {"key": key, "code": key, "windowsVirtualKeyCode": code, **text}
        browser.call("Input.dispatchKeyEvent", type="keyDown", **given)

    browser.visit(page.as_uri(), 400, "light")
    press("Tab", 9)
    for what, after, place in (
        ("1 of 4: The input projection u", "Next", ".net"),
        ("2 of 4: The soft margin κ", "Next", ".top"),
        ("3 of 4: Press Solve", "Next", ".net"),
        ("4 of 4: The slider η", "Done", ".top"),
    ):
        assert browser.ask("document.getElementById('tour-said').innerText").startswith(
            what
        )
        assert browser.ask(f"!!document.querySelector('{place} > #tour')")
        assert browser.ask("document.activeElement.innerText") == after
        assert browser.ask("document.documentElement.scrollWidth") <= 400
        assert browser.ask("document.querySelectorAll('.toured').length") == 1
        press("Enter", 13)
    assert browser.ask("document.getElementById('tour').hidden")
    assert browser.ask("document.querySelectorAll('.toured').length") == 0
    # The letters work while a slider has the focus.
    value = "greenfold.state.mine[0]"
    before = browser.ask(value)
    browser.ask("document.getElementById('eta').focus()")
    browser.call("Input.dispatchKeyEvent", type="keyDown", key="r", text="r")
    assert browser.ask(value) != before
    assert browser.ask("document.activeElement.id") == "eta"
    browser.visit(page.as_uri(), 1400, "light")
    press("Tab", 9)
    press("Escape", 27)
    assert browser.ask("document.getElementById('tour').hidden")
    # A view that somebody shares opens without it.
    browser.visit(page.as_uri() + "#noise=0.1", 1400, "light")
    assert browser.ask("document.getElementById('tour').hidden")
    _quiet(browser)


def test_the_view_is_in_the_address(browser, page):
    browser.visit(page.as_uri(), 1400, "light")
    u = np.random.default_rng(2).standard_normal(2 * N_NEURONS)
    first = at(
        browser, set=1, pair=0, eta=10.0, step=9, noise=0.05, channel=1, u=u, readout="kept"
    )
    browser.ask("greenfold.remember()")
    browser.wait("location.hash.includes('eta=10')")
    address = browser.ask("location.href")
    browser.visit(address, 1400, "light")
    again = at(browser)
    # u travels in single precision.
    for name in ("kappa", "accuracy"):
        assert again[name] == pytest.approx(first[name], rel=1e-5)
    assert browser.ask("greenfold.state.channel") == 1
    assert browser.ask("greenfold.state.readout") == "kept"
    for nonsense in ("#d=9&c=-1&eta=x&t=1e9&noise=-3&plane=77&angle=NaN&u=%%%", "#u=AAAA"):
        browser.visit(page.as_uri() + nonsense, 1400, "light")
        assert np.isfinite(at(browser)["kappa"])
        _quiet(browser)


def test_inside_another_page_it_follows_its_switch(browser, page, tmp_path):
    """As in the documentation, and from a folder, where no page may look into another."""
    script = Path(__file__).parents[3] / "docs" / "_static" / "explorer.js"
    outer = tmp_path / "outer.html"
    outer.write_text(
        f'<html data-theme="dark"><script>{script.read_text("utf-8")}</script>'
        f'<iframe class="explorer" src="{page.as_uri()}" style="height: 9px"></iframe>'
    )
    browser.visit(outer.as_uri(), 1400, "light")
    contexts = [
        one["params"]["context"]
        for one in browser.events
        if one["method"] == "Runtime.executionContextCreated"
    ]
    inner = contexts[-1]["id"]
    assert len(contexts) == 2

    def background() -> str:
        found = browser.call(
            "Runtime.evaluate",
            expression="getComputedStyle(document.body).backgroundColor",
            contextId=inner,
            returnByValue=True,
        )
        return found["result"]["value"]

    frame = "document.querySelector('iframe')"
    assert browser.ask(f"{frame}.contentDocument") is None
    browser.wait(f"{frame}.clientHeight > 500")
    assert _luminance(background()) < 0.1
    for theme in ("light", "dark"):
        browser.ask(f"document.documentElement.dataset.theme = '{theme}'")
        end = time.monotonic() + 5
        while (_luminance(background()) > 0.5) != (theme == "light"):
            assert time.monotonic() < end, theme
    # Nothing else that a page says has an effect.
    browser.ask(f"{frame}.contentWindow.postMessage('theme', '*')")
    _quiet(browser)


def test_names_are_text(browser, page):
    browser.visit(page.as_uri(), 1400, "light")
    assert browser.ask("document.querySelectorAll('b b, option b, .legend b').length") == 0
    text = browser.ask("document.body.textContent")
    assert "</script><b>ectopic</b>" in text
    assert (
        browser.ask("document.querySelector('#set option').textContent") == "<b>Beats</b>"
    )


def test_an_own_file_is_read_in_the_page(browser, page):
    browser.visit(page.as_uri(), 1400, "light")
    rng = np.random.default_rng(4)
    rows = [[i % 2, *(rng.standard_normal(50) + i % 2)] for i in range(40)]
    text = "\n".join(",".join(map(str, row)) for row in rows)
    browser.ask(f"greenfold.own('mine.csv', {json.dumps(text)})")
    found = at(browser)
    assert found["bound"] is None
    assert len(found["x"]) == 40
    # Averages over equal stretches of 50 steps, as Python's.
    series = prepare(
        "mine", [row[1:] for row in rows], [row[0] for row in rows], n_steps=N_STEPS
    )
    mean = series.X[series.codes == 0].mean(0).ravel()
    shown = browser.ask("Array.from(greenfold.comparison().means[0])")
    assert shown == pytest.approx(mean, abs=2 * series.unit)
    said = browser.ask(
        "greenfold.own('bad.csv', 'a,1,2\\nb,3,4') ?? "
        "document.getElementById('own-said').textContent"
    )
    assert said.count(".") >= 1
    assert "bad.csv" in said
    _quiet(browser)


def test_motion_is_reduced_on_request(browser, page):
    browser.visit(page.as_uri(), 1400, "light", reduced=True)
    at(browser, set=0, pair=0, u=np.ones(N_NEURONS))
    # No frame passes between the click and the answer.
    browser.ask("document.getElementById('solve').click()")
    assert browser.ask("greenfold.state.turning && greenfold.state.angle") == 0


def test_start_of_a_model(browser, tmp_path, unfolding, sets):
    u = np.random.default_rng(1).standard_normal((N_NEURONS, 1))
    u /= np.linalg.norm(u)
    start = Start(10.0, 0.07, u, "The model's u")
    page = write_explorer(tmp_path / "page.html", unfolding, sets[:1], start=start)
    browser.visit(page.as_uri(), 1400, "light")
    found = at(browser)
    assert found["u"] == pytest.approx(u.ravel())
    assert browser.ask("greenfold.state.noise") == pytest.approx(0.07)
    assert browser.ask("document.getElementById('eta-value').textContent") == "10"
    assert browser.ask("document.getElementById('model').hidden") is False


def test_how_long_a_frame_takes(browser, tmp_path, capsys):
    """Printed, not asserted: how long a frame takes at N = 60, 300 series."""
    rng = np.random.default_rng(0)
    y = np.arange(300) % 2
    X = rng.standard_normal((300, 70)) + 0.3 * y[:, None]
    material = prepare("timing", X, y)
    unfolding = unfold(Reservoir.random(60, rng=0), n_steps=70, dt=1 / 7)
    solved = solve_grid(unfolding, material, (0, 1), SliderGrid((3.0,), (70,)))
    page = write_explorer(tmp_path / "page.html", unfolding, [(material, [solved])])
    browser.visit(page.as_uri(), 1400, "light")
    times = browser.ask("greenfold.timing(100)")
    assert len(times) == 100
    with capsys.disabled():
        print(f"\nexplorer, N = 60, 300 series: {np.median(times):.1f} ms a frame")
