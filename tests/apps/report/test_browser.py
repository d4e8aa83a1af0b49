"""The report page in a real browser: Chromium, driven over its debugging pipe."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from greenfold.apps.report import Split, compare
from greenfold.datasets import synthetic_heartbeats

#: By hand and in CI: a browser takes seconds to start.
pytestmark = [pytest.mark.contract, pytest.mark.needs("chromium")]

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
]


class Browser:
    """Headless Chromium; messages are JSON ended by a zero byte on two pipes."""

    def __init__(self, program: str, profile: Path) -> None:
        read_there, self._write = os.pipe()
        self._read, write_there = os.pipe()

        def connect() -> None:
            # Chromium listens on 3 and answers on 4.
            os.dup2(read_there, 100)
            os.dup2(write_there, 101)
            os.dup2(100, 3)
            os.dup2(101, 4)

        self._process = subprocess.Popen(
            [program, *FLAGS, f"--user-data-dir={profile}", "about:blank"],
            preexec_fn=connect,
            close_fds=False,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(read_there)
        os.close(write_there)
        self._buffer = b""
        self._last = 0
        self.events: list[dict[str, Any]] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)[
            "sessionId"
        ]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def _receive(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            part = os.read(self._read, 2**16)
            assert part, "the browser has gone"
            self._buffer += part
        message, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(message)

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command and wait for its answer; events meanwhile are kept."""
        self._last += 1
        message: dict[str, Any] = {"id": self._last, "method": method, "params": parameters}
        if hasattr(self, "_session"):
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self._last:
                assert "error" not in answer, answer
                return answer["result"]
            self.events.append(answer)

    def visit(self, url: str, width: int, scheme: str, media: str = "screen") -> None:
        """Open a page as a screen of that width shows it."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=900,
            deviceScaleFactor=1,
            mobile=False,
        )
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.call("Emulation.setEmulatedMedia", media=media, features=features)
        self.events.clear()
        self.call("Page.navigate", url=url)
        while not any(one["method"] == "Page.loadEventFired" for one in self.events):
            self.events.append(self._receive())

    def ask(self, expression: str) -> Any:
        """Value of an expression in the page."""
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._read)
        os.close(self._write)


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    program = next(found for name in NAMES if (found := shutil.which(name)))
    made = Browser(program, tmp_path_factory.mktemp("profile"))
    yield made
    made.close()


@pytest.fixture(scope="module")
def page(tmp_path_factory) -> Path:
    from greenfold.apps.report.page import write_report

    X, y = synthetic_heartbeats(80, n_steps=24, rng=0)
    names = np.where(y > 0, "normal", "<script>alert(1)</script> & " + "long name " * 20)
    task = Split("<b>Beats</b>", X[:40], names[:40], X[40:], names[40:], "Synthetic.")
    settings = {"n_neurons": 12, "eta": 2.0, "alpha": 0.02}
    variants = [("random", 0), ("solved", 0), ("random", 1), ("solved", 1)]
    rows = compare(task, variants, parameters=settings)
    return write_report(tmp_path_factory.mktemp("page") / "page.html", task, rows)


def _luminance(colour: str) -> float:
    parts = [float(one) / 255 for one in colour.strip("rgba()").split(",")[:3]]
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _contrast(one: str, other: str) -> float:
    low, high = sorted((_luminance(one), _luminance(other)))
    return (high + 0.05) / (low + 0.05)


BOXES = """[...document.querySelectorAll('figure')].map(f => {
  const a = f.getBoundingClientRect();
  const drawn = f.querySelector(':scope > svg');
  const b = (drawn || f.querySelector('table')).getBoundingClientRect();
  return {svg: !!drawn, left: a.left, right: a.right, top: a.top, bottom: a.bottom,
          width: b.width, height: b.height, inner: b.right};
})"""
COLOURS = """(() => {
  const style = getComputedStyle(document.body);
  const text = document.querySelector('figure g[id*="-text_"] use');
  const line = document.querySelector('figure path[style*="--solved"]');
  return {ink: style.color, paper: style.backgroundColor,
          panel: getComputedStyle(document.querySelector('figure')).backgroundColor,
          soft: getComputedStyle(document.querySelector('figcaption')).color,
          label: getComputedStyle(text).fill, line: getComputedStyle(line).stroke};
})()"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 1400])
def test_the_page_on_a_screen(browser, page, width, scheme):
    browser.visit(page.as_uri(), width, scheme)
    boxes = browser.ask(BOXES)
    assert sum(box["svg"] for box in boxes) == 14
    for box in boxes:
        assert box["left"] >= 0
        assert box["right"] <= width
        assert box["width"] > (280 if box["svg"] else 100)
        assert box["height"] > (150 if box["svg"] else 40)
        assert not box["svg"] or box["inner"] <= box["right"]
    for i, one in enumerate(boxes):
        for other in boxes[i + 1 :]:
            apart = (
                one["right"] <= other["left"]
                or other["right"] <= one["left"]
                or one["bottom"] <= other["top"]
                or other["bottom"] <= one["top"]
            )
            assert apart, (one, other)
    assert browser.ask("document.documentElement.scrollWidth") <= width
    colours = browser.ask(COLOURS)
    assert (_luminance(colours["paper"]) > 0.5) == (scheme == "light")
    assert _contrast(colours["ink"], colours["paper"]) > 10
    assert _contrast(colours["soft"], colours["panel"]) > 4.5
    assert _contrast(colours["label"], colours["panel"]) > 7
    assert _contrast(colours["line"], colours["panel"]) > 3
    _quiet(browser)


def test_the_page_on_paper(browser, page):
    browser.visit(page.as_uri(), 700, "dark", media="print")
    colours = browser.ask(COLOURS)
    assert _luminance(colours["paper"]) > 0.99
    assert _contrast(colours["label"], colours["panel"]) > 15
    assert len(browser.call("Page.printToPDF")["data"]) > 10_000
    _quiet(browser)


def test_the_contents_lead_to_every_section(browser, page):
    browser.visit(page.as_uri(), 1400, "light")
    linked = browser.ask(
        "[...document.querySelectorAll('nav a')].map(a => a.hash.slice(1))"
    )
    assert linked == browser.ask("[...document.querySelectorAll('section')].map(s => s.id)")


def test_names_are_text(browser, page):
    browser.visit(page.as_uri(), 1400, "light")
    assert browser.ask("document.querySelectorAll('script, b b, h1 b').length") == 0
    assert browser.ask("document.querySelector('h1').textContent") == "<b>Beats</b>"
    assert "<script>alert(1)</script>" in browser.ask("document.body.textContent")


def _quiet(browser: Browser) -> None:
    """Nothing on the console, and nothing asked of any server."""
    said = [
        event
        for event in browser.events
        if event["method"]
        in ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded")
    ]
    assert said == []
    asked = [
        event["params"]["request"]["url"]
        for event in browser.events
        if event["method"] == "Network.requestWillBeSent"
    ]
    assert asked
    assert all(url.startswith(("file:", "data:")) for url in asked), asked
