"""The page as text: complete, self-contained, small, and safe against hostile names."""

from __future__ import annotations

import re
import sys

import numpy as np
import pytest

from greenfold import Reservoir, unfold
from greenfold.apps import explorer as bundle
from greenfold.apps.explorer import (
    MAX_NEURONS,
    PAGE_BYTES,
    SliderGrid,
    Source,
    Start,
    make_explorer,
    render,
    room_for_series,
    solve_grid,
)

from .conftest import prepare


def test_no_address_is_ever_visited(unfolding, sets):
    text = render(unfolding, sets, command="greenfold explore")
    assert "default-src 'none'" in text
    assert "connect-src" not in text
    # The namespace of SVG is a name, not an address that is visited.
    assert set(re.findall(r"https?://[^\s\"'`]+", text)) == {"http://www.w3.org/2000/svg"}
    for word in ("fetch(", "XMLHttpRequest", "import(", "@import", "url(", "eval("):
        assert word not in text, word
    assert "greenfold explore" in text


def test_hostile_names_do_not_end_the_script(unfolding, sets):
    text = render(unfolding, sets, start=Start(title="<script>alert(1)</script>"))
    assert text.count("</script>") == 2
    assert "<b>ectopic" not in text
    assert "&lt;script&gt;alert(1)" in text


def test_modules_become_one_script():
    made = bundle.script()
    assert not re.search(r"^(import|export)\b", made, flags=re.MULTILINE)
    for name in bundle.MODULES:
        assert f"// {name}.js" in made


def test_modules_mean_the_same_in_one_script():
    """Each imports from those before it alone, and no two use one name."""
    kinds = r"(?:async )?(?:function\*?|const|let|class)"
    names = re.compile(rf"^(export )?{kinds} +(\w+)", re.MULTILINE)
    seen: dict[str, str] = {}
    exported: dict[str, set[str]] = {}
    for module in bundle.MODULES:
        text = bundle.asset(f"js/{module}.js")
        for needed, source in bundle._IMPORT.findall(text):
            wanted = set(filter(None, map(str.strip, needed.split(","))))
            assert wanted <= exported.get(source, set()), (module, source)
        found = names.findall(text)
        assert not {name: seen[name] for _, name in found if name in seen}, module
        seen |= {name: module for _, name in found}
        exported[module] = {name for public, name in found if public}
    assert all(exported[module] for module in bundle.MODULES if module != "main")


def test_every_module_is_bundled():
    from importlib.resources import files

    folder = files("greenfold.apps.explorer").joinpath("assets", "js")
    found = {one.name.removesuffix(".js") for one in folder.iterdir()}
    assert found == set(bundle.MODULES)


@pytest.mark.parametrize(
    ("n_neurons", "n_channels", "n_classes"), [(60, 1, 2), (128, 6, 5)]
)
def test_the_page_is_small_whatever_comes(
    tmp_path, monkeypatch, n_neurons, n_channels, n_classes
):
    # Solving takes a minute at this size and changes no length.
    def quick(unfolding, material, pair, grid, *_):
        small = solve_grid(unfolding, material, pair, SliderGrid((3.0,), (2,)))
        shape = len(grid.etas), len(grid.steps)
        spread = {
            name: np.broadcast_to(
                getattr(small, name)[0, 0], (*shape, *getattr(small, name).shape[2:])
            )
            for name in ("u", "v", "soft_margin", "bound", "random", "random_accuracy")
        }
        return type(small)(pair, grid, noises=small.noises, **spread)

    monkeypatch.setattr("greenfold.apps.explorer.solve_grid", quick)
    rng = np.random.default_rng(0)
    y = np.arange(2000) % n_classes
    X = rng.standard_normal((2000, n_channels, 300)) + y[:, None, None]
    reservoir = Reservoir.random(n_neurons, rng=0)
    page = make_explorer(tmp_path / "p.html", [Source("big", X, y, X, y)], reservoir)
    assert page.path.stat().st_size <= PAGE_BYTES
    assert len(page.sets[0][0].thinned) == 3
    assert room_for_series(n_neurons, n_channels) > 0


def test_what_does_not_fit_is_refused(unfolding, sets):
    large = unfold(Reservoir.random(MAX_NEURONS + 1, rng=0), n_steps=4, dt=1.0)
    with pytest.raises(ValueError, match="neurons"):
        render(large, [])
    other = prepare("other", np.random.default_rng(0).standard_normal((8, 5)), [0, 1] * 4)
    with pytest.raises(ValueError, match="steps"):
        render(unfolding, [(other, [])])
    with pytest.raises(ValueError, match="neurons"):
        make_explorer("never.html", [], Reservoir.random(MAX_NEURONS + 1, rng=0))


def test_a_missing_extra_is_named(unfolding, sets, monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(ImportError, match=r"greenfold\[report\]"):
        render(unfolding, sets)
