"""The report in a real browser; skipped where there is none."""

import shutil

import numpy as np
import pytest

from sparsebayes import RVC, RVR
from sparsebayes.datasets import load, make_friedman1, make_sinc
from sparsebayes.report import write_report

playwright = pytest.importorskip("playwright.sync_api")
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")


def _sinc():
    X, y = make_sinc(100, noise=0.1, random_state=0)
    return RVR(gamma=1 / 16).fit(X, y), X, y


def _friedman():
    X, y = make_friedman1(60, random_state=0)
    return RVR(gamma=0.5).fit(X, y), X, y


def _learned():
    """Rows left out judge between widths, and a later trial of the same start has another objective."""
    X, y = make_friedman1(80, random_state=3)
    return RVR(gamma="evidence").fit(X, y), X, y


def _ripley():
    data = load("ripley_synth")
    X, y = data.data[data.train_idx], data.target[data.train_idx]
    return RVC(gamma=4.0, evidence="laplace").fit(X, y), X, y  # a regression on the indicator has one record


@pytest.fixture(
    scope="module", params=[_sinc, _friedman, _learned, _ripley], ids=["line", "many inputs", "widths", "classes"]
)
def report(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    model, X, y = request.param()
    write_report(path, model, X, y)
    return path.as_uri(), model


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as driver:
        found = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield found
        found.close()


@pytest.fixture
def page(browser, report):
    page = browser.new_page(viewport={"width": 400, "height": 800})
    page.messages, page.requests = [], []
    page.on("console", lambda message: page.messages.append(message.text))
    page.on("pageerror", lambda error: page.messages.append(str(error)))
    page.on("request", lambda request: page.requests.append(request.url))
    address, page.model = report
    page.goto(address)
    yield page
    page.close()


def marker(page):
    return [float(page.locator(".here").get_attribute(name)) for name in ("cx", "cy")]


def lit(page):
    return page.evaluate("[...document.querySelectorAll('[data-f].in')].map((m) => m.dataset.f)")


def test_loads_cleanly_and_nothing_else(page, report):
    assert page.messages == []
    assert page.requests == [report[0]]


def test_fits_on_a_narrow_screen(page):
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    sizes = page.evaluate("[...document.querySelectorAll('svg')].map((s) => s.getBoundingClientRect().width)")
    assert min(sizes) > 250


def test_the_slider_moves_the_plot_by_keyboard(page):
    slider = page.locator("#step")
    slider.focus()
    page.keyboard.press("End")
    end, last = marker(page), lit(page)
    page.keyboard.press("Home")
    assert marker(page) != end
    assert "Record 1 of" in page.locator("#said").inner_text()
    assert len(lit(page)) <= page.model.history_[0].n_active
    page.keyboard.press("ArrowRight")
    assert "Record 2 of" in page.locator("#said").inner_text()
    page.keyboard.press("End")
    assert (marker(page), lit(page)) == (end, last)
    assert page.messages == []


def test_the_slider_stands_where_the_model_was_reached(page):
    """Later starts, which were not kept, come after it."""
    said = page.locator("#said").inner_text()
    assert "the one that was kept" in said
    kept = page.model.certificate_.objective
    shown = page.model.history_[int(page.locator("#step").input_value()) - 1]
    assert abs(shown.objective - kept) < 1e-3 * abs(kept)
    assert f" {shown.n_active} function" in said
    page.locator("#play").click()
    page.locator("#play").click()
    assert int(page.locator("#step").input_value()) < max(10, len(page.model.history_) // 10)


def test_nothing_is_cut_off(page):
    outside = page.evaluate("""[...document.querySelectorAll("svg")].flatMap((svg) => {
      const box = svg.getBoundingClientRect();
      return [...svg.querySelectorAll("text")].filter((text) => {
        const own = text.getBoundingClientRect();
        return own.right > box.right + 1 || own.left < box.left - 1;
      }).map((text) => text.textContent);
    })""")
    assert outside == []
    assert page.evaluate("[...document.querySelectorAll('pre')].every((pre) => pre.scrollWidth <= pre.clientWidth)")


def test_everything_is_reached_by_tab(page):
    reached = set()
    for _ in range(12):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.id || document.activeElement.className"))
    assert {"skip", "play", "step"} <= reached


def test_plays_and_pauses(page):
    button, slider = page.locator("#play"), page.locator("#step")
    button.click()
    assert button.inner_text() == "Pause"
    page.wait_for_timeout(1000)
    reached = int(slider.input_value())
    assert reached > 1
    if button.inner_text() == "Pause":  # a short search has been played to its end by now
        button.click()
    assert button.inner_text() == "Play"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_light_dark_and_paper_have_contrast(page, scheme):
    def contrast():
        body = page.evaluate("[getComputedStyle(document.body).color, getComputedStyle(document.body).backgroundColor]")
        levels = [sum(map(int, text[text.index("(") + 1 : -1].split(",")[:3])) for text in body]
        return levels[1] - levels[0]

    page.emulate_media(color_scheme=scheme)
    assert (contrast() > 400) == (scheme == "light")
    assert abs(contrast()) > 400
    page.emulate_media(media="print", color_scheme=scheme)
    assert contrast() > 400
    assert not page.locator("#step").is_visible()


def test_another_class_is_chosen(browser, tmp_path):
    X = np.random.default_rng(0).normal(size=(80, 2))
    y = np.where(X[:, 0] > 0.5, "a", np.where(X[:, 1] > 0, "b", "c"))
    write_report(
        tmp_path / "r.html", RVC(gamma=1.0, multi_class="ovr", evidence="laplace").fit(X, y), X, y, explain=True
    )
    page = browser.new_page(viewport={"width": 400, "height": 800})
    messages = []
    page.on("pageerror", lambda error: messages.append(str(error)))
    page.goto((tmp_path / "r.html").as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    assert [page.locator(".search").nth(k).is_visible() for k in range(3)] == [True, False, False]
    page.locator("#which").select_option("1")
    assert [page.locator(".search").nth(k).is_visible() for k in range(3)] == [False, True, False]
    page.locator("#step-1").focus()
    page.keyboard.press("Home")
    assert "Record 1 of" in page.locator("#said-1").inner_text()
    assert messages == []
    page.close()
