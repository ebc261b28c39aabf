"""Pages in a browser: no errors, no requests, and what a reader does works. Needs Chromium and selenium."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiers import exhaustive

import tilewright as tw
from tilewright.spec.weights import Weights
from tilewright.tools.explore.page.build import Exploration
from tilewright.tools.explore.page.graphs import explore_graph
from tilewright.tools.explore.page.kernels import explore_problem

webdriver = pytest.importorskip("selenium.webdriver")

TARGETS = ("znver4", "neoverse-v2", "pwr10")
#: Seconds that a page on a busy machine may take.
PATIENCE = 60.0


def a_graph() -> Exploration:
    random = np.random.default_rng(0)
    g = tw.Graph()
    x = g.input("x", shape=("n", 64))
    h = g.linear(x, random.random((256, 64), np.float32), activation="gelu")
    g.output(g.linear(h, random.random((64, 256), np.float32)), "y")
    return explore_graph(g.compile(), TARGETS, {"n": 96})


PAGES: dict[str, Callable[[], Exploration]] = {
    "brgemm": lambda: explore_problem(tw.BatchReduceGemm(16, 6, 64), TARGETS),
    "gemm": lambda: explore_problem(tw.Gemm(1000, 1000, 1000), TARGETS),
    "attention": lambda: explore_problem(tw.Attention(64, bounded=True), TARGETS),
    "contraction": lambda: explore_problem(
        tw.einsum_contraction("acbd,dfce->abef", (96, 12, 8, 20), (20, 40, 12, 16)), TARGETS
    ),
    "linear": lambda: explore_problem(
        tw.Gemm(64, 512, 512, b="packed", weights=Weights.parse("i4g64")), TARGETS
    ),
    "graph": a_graph,
}
CASES = [pytest.param(name, marks=() if name == "brgemm" else exhaustive) for name in PAGES]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    binary = shutil.which("chromium") or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    if binary is None or driver is None:
        pytest.skip("no Chromium with its driver")
    options = webdriver.ChromeOptions()
    options.binary_location = binary
    for word in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(word)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    try:
        found = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    except Exception as error:  # whatever a browser that cannot start here says
        pytest.skip(f"Chromium does not start: {error}")
    found.set_page_load_timeout(PATIENCE)
    yield found
    found.quit()


def wait(browser: Any, script: str) -> Any:
    """The value of a script as soon as it is true."""
    end = time.monotonic() + PATIENCE
    while not (value := browser.execute_script(script)):
        assert time.monotonic() < end, script
        time.sleep(0.05)
    return value


def resize(browser: Any, width: int) -> None:
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    wait(browser, f"return innerWidth === {width}")


def requests(browser: Any) -> list[str]:
    """The addresses that were asked for, less those of the page's own data."""
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    urls = [
        one["params"]["request"]["url"] for one in messages if one["method"] == "Network.requestWillBeSent"
    ]
    return [url for url in urls if not url.startswith(("data:", "chrome:"))]


def hover(browser: Any, pane: str, line: int) -> dict[str, int]:
    """Marked lines of each pane after the pointer moved over a line."""
    script = """
        const scroller = document.querySelector(`[data-pane="${arguments[0]}"] .lines`);
        scroller.scrollTop = Math.max(0, arguments[1] * 18 - 100);
        scroller.dispatchEvent(new Event("scroll"));
        const line = scroller.querySelector(`[data-line="${arguments[1]}"]`);
        line.dispatchEvent(new PointerEvent("pointermove", { bubbles: true }));
        line.dispatchEvent(new MouseEvent("click", { bubbles: true }));
        const panes = [...document.querySelectorAll("[data-pane]")];
        const count = (pane) => pane.querySelectorAll(".linked, .called").length;
        return Object.fromEntries(panes.map((one) => [one.dataset.pane, count(one)]));
    """
    found: dict[str, int] = browser.execute_script(script, pane, line)
    return found


@pytest.mark.parametrize("name", CASES)
def test_a_page_works_in_a_browser(name: str, browser: Any, tmp_path: Path) -> None:
    page = PAGES[name]()
    path = page.save(tmp_path / "page.html")
    assert path.stat().st_size < 2_000_000
    browser.get_log("performance")
    browser.get(path.as_uri())
    wait(browser, "return document.documentElement.dataset.ready === '0'")

    buttons = browser.find_elements("css selector", "#targets [role=radio]")
    assert len(buttons) == len(TARGETS)
    for at, button in enumerate(buttons):
        browser.execute_script("arguments[0].click()", button)
        wait(browser, f"return document.documentElement.dataset.ready === '{at}'")
        assert button.get_attribute("aria-checked") == "true"
        assert browser.find_elements("css selector", "#code .line")
    assert len({json.dumps(one["listing"]) for one in _kernels(page)}) == len(_kernels(page))

    _walk(browser)
    _links(browser, _kernels(page)[-1]["listing"])
    for theme in ("light", "dark"):
        emulated = {"features": [{"name": "prefers-color-scheme", "value": theme}]}
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", emulated)
        for width in (1280, 400):
            resize(browser, width)
            wait(browser, f"return document.documentElement.dataset.theme === '{theme}'")
            assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    resize(browser, 1280)

    assert requests(browser) == [path.as_uri()]
    assert [one for one in browser.get_log("browser") if one["level"] in ("SEVERE", "WARNING")] == []


@exhaustive
@pytest.mark.parametrize("problem", [tw.Gemm(48, 48, 48), tw.RowFunction("sum")])
def test_a_measured_page_works_in_a_browser(problem: tw.Gemm, browser: Any, tmp_path: Path) -> None:
    page = explore_problem(problem, ["host", "znver4"], measure=True, peers=("numpy",))
    browser.get(page.save(tmp_path / "page.html").as_uri())
    wait(browser, "return document.documentElement.dataset.ready === '0'")
    points = page.record["targets"][0]["measured"]["points"]
    for width in (1280, 400):
        resize(browser, width)
        wait(browser, f"return document.querySelectorAll('#measured tbody tr').length === {len(points)}")
        assert browser.execute_script("return document.documentElement.scrollWidth") <= width
        texts = browser.execute_script("return document.querySelector('#measured svg').textContent")
        assert all(point["title"] in texts for point in points)
    browser.find_elements("css selector", "#targets [role=radio]")[1].click()
    wait(browser, "return document.documentElement.dataset.ready === '1'")
    assert not browser.find_elements("css selector", "#measured")
    assert [one for one in browser.get_log("browser") if one["level"] in ("SEVERE", "WARNING")] == []


def _kernels(page: Exploration) -> list[dict[str, Any]]:
    """The records of the kernels that are shown first, for each target."""
    return [target["nodes"][0] if "nodes" in target else target for target in page.record["targets"]]


def _walk(browser: Any) -> None:
    """The slider and the buttons change the step."""
    steps = int(browser.execute_script("return document.getElementById('step').max"))
    state = "return document.getElementById('state').textContent"
    before = browser.execute_script(state)
    assert before.startswith("Step 1:")
    if steps == 0:
        return
    script = """
        const slider = document.getElementById("step");
        slider.value = arguments[0];
        slider.dispatchEvent(new Event("input"));
    """
    browser.execute_script(script, steps)
    assert browser.execute_script(state).startswith(f"Step {steps + 1:,}:")
    browser.execute_script("document.getElementById('back').click()")
    assert browser.execute_script(state).startswith(f"Step {steps:,}:")
    browser.execute_script(script, 0)
    browser.execute_script("document.getElementById('play').click()")
    wait(browser, "return Number(document.getElementById('step').value) > 0")
    assert browser.execute_script("return document.querySelectorAll('.buffer svg g rect').length") > 0


def _links(browser: Any, listing: dict[str, Any]) -> None:
    """Lines of each text mark lines of the others."""
    tile = next(
        at for at, line in enumerate(listing["tile"].split("\n")) if line.strip().startswith("matmul")
    )
    found = hover(browser, "tile", tile)
    assert found["tile"] >= 1
    assert found["llvm"] >= 1
    lines = listing["assemblyLlvm"]
    linked = next(
        at for at, origin in enumerate(lines) if origin is not None and listing["llvmStatements"][origin]
    )
    found = hover(browser, "assembly", linked)
    assert min(found.values()) >= 1
    said = browser.execute_script("return document.getElementById('linked').textContent")
    assert said.startswith("Assembly, line ")
