"""The tape explorer in a real browser: linked highlighting, search, keyboard, zoom, themes, and no errors."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.report.pages import TEXT, made
from yota.tools.report.collect import page

playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright: pip install '.[browser]'")
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs a Chromium: apt-get install chromium")
QUIET = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking"
    " --disable-component-update --disable-sync"
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as driver:
        found = driver.chromium.launch(executable_path=CHROMIUM, args=QUIET.split())
        yield found
        found.close()


@pytest.fixture
def opened(browser: Any, tmp_path: Path) -> Iterator[Any]:
    """Opens the page of a function; at the end there must have been no message on the console and no request."""
    said: list[str] = []
    contexts = []

    def open_(f: Any, args: Any, **options: Any) -> Any:
        file = tmp_path / "page.html"
        file.write_text(page(f, args), encoding="ascii")
        context = browser.new_context(viewport={"width": 1400, "height": 900}, **options)
        contexts.append(context)
        found = context.new_page()
        found.on("console", lambda message: said.append(message.text))
        found.on("pageerror", lambda fault: said.append(str(fault)))
        found.on("dialog", lambda dialog: (said.append(dialog.message), dialog.dismiss()))
        found.on("request", lambda request: said.append(request.url) if request.url != file.as_uri() else None)
        found.goto(file.as_uri())
        return found

    yield open_
    for context in contexts:
        context.close()
    # The empty icon is no request.
    assert [each for each in said if not each.startswith("data:")] == []


@pytest.fixture
def layer(opened: Any) -> Any:
    return opened(made(TEXT, "layer"), {"W": "float64[20,30]", "b": "float64[20]", "x": "float64[30]"})


def lit(found: Any, column: str) -> list[str]:
    texts: list[str] = found.locator(f"#{column} .lit").all_inner_texts()
    return texts


def test_hovering_lights_up_what_belongs_together(layer: Any) -> None:
    layer.locator("#tape").get_by_text("= tanh(").hover()
    assert ["np.tanh(W @ x + b)" in each for each in lit(layer, "source")] == [True]
    assert len(lit(layer, "tape")) == 1
    assert [each.startswith("tanh") for each in lit(layer, "rules")] == [True]
    assert ["np.tanh(" in each for each in lit(layer, "code")] == [True]
    assert layer.locator("#diagram .box.lit").count() == 1
    assert layer.locator("#tape .kin.adjoint").count() > 0
    assert "= add(" in layer.locator("#tape .from").inner_text()
    assert layer.locator("#tape .to.primal").count() == 1
    layer.locator("h1").hover()
    assert layer.locator(".lit").count() == 0


def test_a_line_of_the_source_lights_up_all_that_it_became(layer: Any) -> None:
    layer.locator("#source").get_by_text("h = ").hover()
    shown = "".join(lit(layer, "tape"))
    assert "matmul(" in shown and "add(" in shown and "tanh(" in shown and "square(%" in shown
    assert "sum(" not in shown
    assert {each.split("\n")[0].split()[0] for each in lit(layer, "rules")} == {"matmul", "add", "tanh"}


def test_generated_code_leads_back(layer: Any) -> None:
    layer.locator("#code .row", has_text="np.tanh(").first.hover()
    assert ["h = np.tanh" in each for each in lit(layer, "source")] == [True]


def test_the_diagram_is_linked(layer: Any) -> None:
    layer.locator("#diagram .box", has_text="tanh").first.hover()
    assert ["h = np.tanh" in each for each in lit(layer, "source")] == [True]
    assert layer.locator("#diagram path.lit").count() >= 2


def test_a_click_keeps_the_light_on(layer: Any) -> None:
    layer.locator("#tape").get_by_text("= tanh(").click()
    layer.locator("h1").hover()
    assert len(lit(layer, "source")) == 1
    layer.keyboard.press("Escape")
    assert layer.locator(".lit").count() == 0


def test_the_keyboard_does_all_of_it(layer: Any) -> None:
    layer.locator("#source .row[data-ops]").first.focus()
    assert "h = " in layer.evaluate("document.activeElement.innerText")
    layer.keyboard.press("ArrowDown")
    assert "return np.sum" in layer.evaluate("document.activeElement.innerText")
    layer.keyboard.press("ArrowRight")
    assert layer.evaluate("document.activeElement.closest('section').id") == "tape"
    assert "square(" in layer.evaluate("document.activeElement.innerText")
    layer.keyboard.press("ArrowRight")
    assert layer.evaluate("document.activeElement.closest('section').id") == "rules"
    layer.keyboard.press("ArrowRight")
    assert layer.evaluate("document.activeElement.closest('section').id") == "code"
    layer.keyboard.press("/")
    assert layer.evaluate("document.activeElement.id") == "search"
    layer.keyboard.type("d")
    assert layer.locator("#diagram").is_visible()
    layer.keyboard.press("Escape")
    layer.keyboard.press("d")
    assert not layer.locator("#diagram").is_visible()


def test_search(layer: Any) -> None:
    layer.locator("#search").fill("MatMul")
    assert layer.locator("#found").inner_text().endswith(" found")
    hits = layer.locator(".row.hit").all_inner_texts()
    assert hits and all("matmul" in each.lower() for each in hits)
    layer.keyboard.press("Enter")
    assert layer.locator("#found").inner_text() == f"1 of {len(hits)}"
    layer.locator("#search").fill("nothing of the kind")
    assert layer.locator("#found").inner_text() == "0 found"
    layer.locator("#search").fill("")
    assert layer.locator("body.searching").count() == 0


def test_zoom(layer: Any) -> None:
    def width() -> float:
        return float(layer.locator("#drawing").get_attribute("viewBox").split()[2])

    before = width()
    layer.locator("#closer").click()
    assert width() == pytest.approx(0.8 * before, rel=1e-3)
    layer.locator("#fit").click()
    whole = float(layer.locator("#drawing").get_attribute("data-width"))
    assert width() == pytest.approx(whole)
    layer.locator("#drawing").hover()
    layer.mouse.wheel(0, -100)
    layer.wait_for_function(f"document.getElementById('drawing').viewBox.baseVal.width < {whole}")


def test_light_and_dark(opened: Any) -> None:
    shapes = {"W": "float64[20,30]", "b": "float64[20]", "x": "float64[30]"}
    colours = []
    for scheme in ("light", "dark"):
        found = opened(made(TEXT, "layer"), shapes, color_scheme=scheme)
        colours.append(found.evaluate("getComputedStyle(document.body).backgroundColor"))
        found.locator("#theme").click()
        colours.append(found.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert colours[0] != colours[1]
    assert colours == [colours[0], colours[1], colours[1], colours[0]]


def test_hostile_source_stays_text(opened: Any) -> None:
    text = "</code></script><script>alert(1)</script><img src=x onerror=alert(2)>"
    source = f"def f(p):\n    return np.sum(p[{text!r}] * 2.0)  # {text}\n"
    found = opened(made(source, "f", f"/tmp/{text}.py"), [{text: np.ones(3)}])
    assert found.locator("img").count() == 0
    assert found.evaluate("document.scripts.length") == 1
    assert found.locator("#source").inner_text().count("<img src=x") >= 1


def test_a_mouse_at_rest_leaves_the_keyboard_alone(opened: Any) -> None:
    source = "def f(x):\n    for _ in range(30):\n        x = np.sin(x) * 1.5 + 0.25\n    return np.sum(x)\n"
    found = opened(made(source, "f", "<rest.py>"), {"x": "float64[500]"})
    rows = found.locator("#tape .row[data-ops]")
    rows.nth(5).hover()
    rows.first.focus()
    found.keyboard.press("ArrowDown")
    found.evaluate("() => document.addEventListener('mouseover', () => (window.told = true))")
    found.locator("#tape .scroll").evaluate("each => (each.scrollTop = 150)")
    # The browser tells what has come to lie under the mouse; the page has a frame to answer.
    found.wait_for_function("() => window.told")
    found.evaluate("() => new Promise((go) => requestAnimationFrame(() => requestAnimationFrame(go)))")
    assert found.evaluate("document.activeElement.classList.contains('lit')")
    found.mouse.move(5, 5)
    found.mouse.move(*[each + 4 for each in _middle(rows.nth(20))])
    found.wait_for_function("() => document.querySelectorAll('#tape .row[data-ops]')[20].classList.contains('lit')")


def _middle(row: Any) -> tuple[float, float]:
    box = row.bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def test_a_thousand_ops(opened: Any) -> None:
    source = "def f(x):\n    for _ in range(180):\n        x = np.sin(x) * 1.5 + 0.25\n    return np.sum(x)\n"
    found = opened(made(source, "f", "<long.py>"), {"x": "float64[50000]"})
    assert found.locator("#tape .op").count() > 1000
    # What is out of sight is not laid out until it is needed, and has its place all the same.
    assert found.evaluate(
        """() => {
          const rows = [...document.querySelectorAll("#tape .row")];
          const seen = rows.filter((row) => row.checkVisibility({ contentVisibilityAuto: true }));
          return seen.length < 300;
        }"""
    )
    height = found.locator("#tape .scroll").evaluate("each => each.scrollHeight")
    found.locator("#tape .op", has_text="sin(").last.hover()
    assert len(lit(found, "source")) == 1
    assert len(lit(found, "code")) >= 1
    assert found.locator("#tape .scroll").evaluate("each => each.scrollHeight") == height


def test_a_key_in_the_search_box_changes_only_what_is_found_anew(opened: Any) -> None:
    source = "def f(x):\n    for _ in range(20):\n        x = np.sin(x) * 1.5 + 0.25\n    return np.sum(x)\n"
    found = opened(made(source, "f", "<search.py>"), {"x": "float64[50000]"})
    found.evaluate(
        """() => {
          window.changes = 0;
          const count = (records) => (window.changes += records.length);
          const watch = new MutationObserver(count);
          watch.observe(document.querySelector("main"), { subtree: true, attributes: true, childList: true });
        }"""
    )
    found.keyboard.press("/")
    hits, changes = [0], []
    for key in "sinx":
        found.keyboard.type(key)
        hits.append(found.locator(".row.hit").count())
        changes.append(found.evaluate("window.changes"))
        found.evaluate("() => (window.changes = 0)")
    # Each letter narrows what the letters before it found.
    assert changes == [abs(after - before) for before, after in itertools.pairwise(hits)]
    assert hits[1] > hits[2] >= hits[3] > hits[4] == 0
