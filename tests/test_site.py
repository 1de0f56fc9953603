"""The site in a browser, from files and from a server: complete, self-contained, and moving."""

from __future__ import annotations

import functools
import io
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from html import unescape
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import numpy as np
import pytest
from axe_playwright_python.sync_playwright import Axe
from PIL import Image
from playwright.sync_api import Browser, Locator, Page

from companion.drawing import Drawing, LiveFigure
from companion.frames import Setting, grid, read_beside, stop_text
from companion.render import Renderer
from tests.browser import Log, browser, settled, watch
from tests.figure_data import live_figures

__all__ = ["browser"]  # a fixture

ROOT = Path(__file__).resolve().parent.parent
SITE, SCREENSHOTS = ROOT / "build" / "site", ROOT / "build" / "screenshots"
WIDE, PHONE = {"width": 1400, "height": 900}, {"width": 375, "height": 800}
PAGE_BYTES = 1_500_000  # with pictures and frames; what all pages share is not counted
FIGURES = live_figures()
FACTS = """() => {
  const list = (selector, read) => [...document.querySelectorAll(selector)].map(read);
  const text = (document.querySelector("article") ?? document.body).cloneNode(true);
  text.querySelectorAll("pre, code, script, mjx-container").forEach((e) => e.remove());
  return {
    links: list("a[href]", (a) => a.href),
    ids: list("[id]", (e) => e.id),
    live: list("[data-live]", (e) => e.dataset.live),
    pictures: list("img", (e) => e.src),
    wide: list('mjx-container[display="true"]',
      (e) => e.scrollWidth > e.clientWidth ? e.textContent : "").filter(Boolean),
    unnamed: list("img", (e) => e.alt && !e.alt.endsWith(".png") ? "" : e.outerHTML)
      .filter(Boolean),
    untypeset: list(".math", (e) => e.querySelector("mjx-container") ? "" : e.textContent)
      .filter(Boolean),
    wrong: list("mjx-merror", (e) => e.textContent),
    dollars: text.textContent.match(/\\$[^$\\n]*\\$|\\\\[([]/g) ?? [],
  };
}"""

# Thousands of words of code in the same few colours: axe needs to see each kind once.
ONE_OF_EACH = """() => {
  const seen = new Set();
  for (const word of document.querySelectorAll(".highlight span")) {
    if (seen.has(word.className)) word.replaceWith(word.textContent);
    else seen.add(word.className);
  }
}"""
# Where the picture is in its figure, and how the theme changes it.
PLACE = """(figure) => {
  const picture = figure.querySelector(".live-picture").firstElementChild;
  const [inner, outer] = [picture, figure].map((e) => e.getBoundingClientRect());
  const { padding, filter } = getComputedStyle(picture);
  return [inner.x - outer.x, inner.y - outer.y, inner.width, inner.height, padding, filter];
}"""
STATE = """(figure) => {
  const text = (e) => e.textContent;
  const inputs = [...figure.querySelectorAll("input, select")];
  return {
    frame: Number(figure.dataset.frame),
    numbers: Object.fromEntries([...figure.querySelectorAll("dl div")].map(
      (row) => [text(row.querySelector("dt")), text(row.querySelector("dd"))])),
    alt: figure.querySelector("svg, img").getAttribute("aria-label"),
    positions: Object.fromEntries(inputs.map((input) => [input.name, Number(input.value)])),
    texts: Object.fromEntries(inputs.map((input) => [input.name,
      text(figure.querySelector(`output[for="${input.id}"]`) ?? input.selectedOptions[0])])),
    picture: figure.querySelector(".live-picture").innerHTML,
  };
}"""


@pytest.fixture(scope="module")
def site() -> Path:
    """Build the site as `make book` does."""
    build = [sys.executable, str(ROOT / "book" / "website.py")]
    done = subprocess.run(build, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, done.stdout
    return SITE


@pytest.fixture(scope="module")
def server(site: Path) -> Iterator[str]:
    """Serve the site; the address."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: Any) -> None:
            pass

    handler = functools.partial(Quiet, directory=str(site))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{running.server_port}"
        running.shutdown()


@pytest.fixture(params=["file", "server"])
def address(request: pytest.FixtureRequest, site: Path, server: str) -> str:
    return site.as_uri() if request.param == "file" else server


def pages(site: Path) -> list[str]:
    found = sorted(path.relative_to(site).as_posix() for path in site.rglob("*.html"))
    return [page for page in found if not page.startswith("_static/")]


def with_figures(site: Path) -> list[str]:
    return [page for page in pages(site) if "data-live" in (site / page).read_text("utf-8")]


def prose(page: str) -> bool:
    """Whether a page is one that a reader reads, and not one that a name is looked up in."""
    return page == "index.html" or page.startswith(("notebooks/", "book/"))


@dataclass
class Visit:
    """What a page was found to hold, and how it looked."""

    facts: dict[str, Any]
    violations: list[str]
    phone_width: int


@pytest.fixture(scope="module")
def visits(site: Path, browser: Browser) -> tuple[dict[str, Visit], Log]:
    """Open every page from its file once, in light and dark, wide and narrow."""
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    context = browser.new_context(viewport=WIDE)  # type: ignore[arg-type]
    log, page = watch(context), context.new_page()
    found = {name: visit(page, site, name) for name in pages(site)}
    context.close()
    return found, log


def visit(page: Page, site: Path, name: str) -> Visit:
    page.goto((site / name).as_uri())
    page.add_style_tag(content="* { transition: none !important; }")
    settled(page)
    facts = page.evaluate(FACTS)
    for size in (PHONE, WIDE):
        page.set_viewport_size(size)  # type: ignore[arg-type]
        if size is PHONE:
            phone_width = page.evaluate("document.documentElement.scrollWidth")
        for mode in ("dark", "light") if prose(name) else ():
            page.emulate_media(color_scheme=mode)  # type: ignore[arg-type]
            stem = name.removesuffix(".html").replace("/", "-")
            width = "phone" if size is PHONE else "wide"
            page.screenshot(path=SCREENSHOTS / f"{stem}-{width}-{mode}.png", full_page=True)
    page.evaluate(ONE_OF_EACH)
    violations = violated(page, "light")
    page.emulate_media(color_scheme="dark")
    violations += violated(page, "dark", runOnly=["color-contrast"])
    page.emulate_media(color_scheme="light")
    return Visit(facts, violations, phone_width)


def violated(page: Page, mode: str, **options: Any) -> list[str]:
    """The serious and critical rules of axe that a page breaks."""
    # Style sheets are not fetched again to be read: a page from a file may not do that.
    options |= {"preload": False, "resultTypes": ["violations"]}
    response = Axe().run(page, context={"exclude": ["mjx-container svg"]}, options=options).response
    return [
        f"{mode}: {rule['id']}: {rule['nodes'][0]['html'][:200]}"
        for rule in response["violations"]
        if rule["impact"] in ("serious", "critical")
    ]


def by_page(visits: tuple[dict[str, Visit], Log], read: Callable[[Visit], Any]) -> dict[str, Any]:
    """What is wrong, for the pages where something is."""
    return {name: wrong for name, seen in visits[0].items() if (wrong := read(seen))}


def test_no_page_asks_another_host_or_reports_an_error(
    visits: tuple[dict[str, Visit], Log], site: Path, server: str, browser: Browser
) -> None:
    context = browser.new_context()
    served, page = watch(context), context.new_page()
    for name in pages(site):
        page.goto(f"{server}/{name}")
        settled(page)
    context.close()
    for log, base in ((visits[1], site.as_uri()), (served, server)):
        assert not log.errors
        assert [url for url in log.requests if not url.startswith((f"{base}/", "data:"))] == []
        assert not any("/live/" in url and url.endswith(".js") for url in log.requests)


def test_every_picture_has_an_alt_text(visits: tuple[dict[str, Visit], Log]) -> None:
    assert not by_page(visits, lambda seen: seen.facts["unnamed"])


def test_all_mathematics_is_typeset(visits: tuple[dict[str, Visit], Log]) -> None:
    for what in ("untypeset", "wrong", "dollars"):
        assert not by_page(visits, lambda seen, what=what: seen.facts[what]), what


def test_no_displayed_equation_is_wider_than_its_column(
    visits: tuple[dict[str, Visit], Log],
) -> None:
    assert not by_page(visits, lambda seen: seen.facts["wide"])


def test_axe_finds_nothing_serious(visits: tuple[dict[str, Visit], Log]) -> None:
    assert not by_page(visits, lambda seen: seen.violations)


def test_no_page_scrolls_sideways_on_a_phone(visits: tuple[dict[str, Visit], Log]) -> None:
    assert not by_page(visits, lambda seen: seen.phone_width > PHONE["width"])


def test_every_link_leads_to_a_file_and_an_anchor(
    visits: tuple[dict[str, Visit], Log], site: Path
) -> None:
    ids = {(site / name).as_uri(): set(seen.facts["ids"]) for name, seen in visits[0].items()}

    def dead(link: str) -> bool:
        url, _, fragment = link.partition("#")
        if not url.startswith("file:"):
            return False
        here = Path(unquote(urlsplit(url).path))
        return not here.is_file() or bool(fragment and unquote(fragment) not in ids.get(url, ()))

    assert not by_page(visits, lambda seen: sorted(set(filter(dead, seen.facts["links"]))))


def test_a_page_is_small_with_its_pictures_and_frames(
    visits: tuple[dict[str, Visit], Log], site: Path
) -> None:
    for name, seen in visits[0].items():
        scripts = {site / "_static" / "live" / f"{live}.js" for live in seen.facts["live"]}
        pictures = {Path(unquote(urlsplit(url).path)) for url in seen.facts["pictures"]}
        files = {site / name} | scripts | pictures
        assert sum(path.stat().st_size for path in files) <= PAGE_BYTES, name
    shown = {name for seen in visits[0].values() for name in seen.facts["live"]}
    assert shown == FIGURES.keys()


@functools.cache
def drawn(name: str, *setting: float | str) -> tuple[str, dict[str, str]]:
    """Alt text and numbers that a figure's draw function gives, as a reader sees them."""
    drawing = draw(name, dict(zip(FIGURES[name].controls, setting, strict=True)))
    return drawing.alt, read_beside(drawing)


def draw(name: str, setting: Setting) -> Drawing:
    return FIGURES[name].draw(**setting)


class Shown:
    """A live figure on a page, and the setting that it should be at."""

    def __init__(self, page: Page, box: Locator) -> None:
        self.page, self.box = page, box
        self.name = str(box.get_attribute("data-live"))
        self.figure: LiveFigure = FIGURES[self.name]
        self.grid = grid(self.figure)
        self.at = dict(self.grid.start)

    def control(self, keyword: str) -> Locator:
        return self.box.locator(f"[name={keyword}]")

    def setting(self) -> Setting:
        return {keyword: self.grid.stops[keyword][i] for keyword, i in self.at.items()}

    def state(self) -> dict[str, Any]:
        """What a reader sees, in one call."""
        return dict(self.box.evaluate(STATE))

    def moved(self, keyword: str, position: int) -> None:
        """Wait for the picture after a move, and hold everything shown against companion."""
        others = self.at if self.grid.joint else self.grid.start
        self.at = others | {keyword: position}
        frame = self.grid.settings().index(self.setting())
        ident = self.box.get_attribute("id")
        self.page.wait_for_function(f"document.getElementById('{ident}').dataset.frame == {frame}")
        state, (alt, numbers) = self.state(), drawn(self.name, *self.setting().values())
        assert state["numbers"] == numbers
        assert state["alt"] == alt
        assert state["positions"] == self.at
        assert state["texts"] == {key: stop_text(value) for key, value in self.setting().items()}

    def press(self, keyword: str) -> None:
        """Move a control by one stop with an arrow key."""
        back = self.at[keyword] == len(self.grid.stops[keyword]) - 1
        choice = isinstance(self.grid.stops[keyword][0], str)
        forth_and_back = ("ArrowDown", "ArrowUp") if choice else ("ArrowRight", "ArrowLeft")
        self.control(keyword).focus()
        self.page.keyboard.press(forth_and_back[back])
        self.moved(keyword, self.at[keyword] + (-1 if back else 1))

    def click(self, keyword: str) -> None:
        """Move a control to somewhere else with the mouse."""
        control, before = self.control(keyword), self.at[keyword]
        if isinstance(self.grid.stops[keyword][0], str):
            control.select_option(str((before + 1) % len(self.grid.stops[keyword])))
        else:
            box = control.bounding_box()
            assert box
            far = 0.15 if before > len(self.grid.stops[keyword]) / 2 else 0.85
            control.click(position={"x": far * box["width"], "y": box["height"] / 2})
        after = int(control.input_value())
        assert after != before
        self.moved(keyword, after)


def shown_on(page: Page) -> list[Shown]:
    return [Shown(page, box) for box in page.locator("figure.live").all()]


def test_every_slider_moves_its_picture_by_key_and_by_mouse(
    address: str, site: Path, browser: Browser
) -> None:
    context = browser.new_context(viewport={"width": 1600, "height": 1000}, color_scheme="dark")
    log, page = watch(context), context.new_page()
    for name in with_figures(site):
        page.goto(f"{address}/{name}")
        filters = "(pictures) => pictures.map((picture) => getComputedStyle(picture).filter)"
        assert set(page.locator(".cell_output img").evaluate_all(filters)) <= {"none"}
        for shown in shown_on(page):
            place = shown.box.evaluate(PLACE)
            assert place[4:] == ["0px", "none"]
            for keyword in shown.figure.controls:
                for move in (shown.press, shown.click):
                    before = shown.state()["picture"]
                    move(keyword)
                    assert shown.state()["picture"] != before
                    assert shown.box.evaluate(PLACE)[:4] == pytest.approx(place[:4], abs=0.5)
            shown.box.get_by_role("button", name="Reset").click()
            shown.at = dict(shown.grid.start)
            first = next(iter(shown.at))
            shown.moved(first, shown.at[first])
    context.close()
    assert not log.errors
    assert all(url.startswith((f"{address}/", "data:")) for url in log.requests)


def test_a_moved_picture_is_the_one_that_matplotlib_draws(site: Path, browser: Browser) -> None:
    context = browser.new_context(viewport={"width": 1600, "height": 1000}, device_scale_factor=2)
    page = context.new_page()
    compared = set()
    for name in with_figures(site):
        page.goto((site / name).as_uri())
        for shown in shown_on(page):
            if shown.name not in compared:
                compared.add(shown.name)
                for keyword in list(shown.figure.controls)[:2]:
                    shown.press(keyword)
                svg = shown.box.locator("svg")
                svg.evaluate("e => e.style = 'position: fixed; inset: 0; z-index: 9999'")
                ours = pixels(svg.screenshot())
                theirs = pixels(Renderer().png(draw(shown.name, shown.setting()).figure))
                assert ours.shape == theirs.shape
                # Lines and letters have other edges, but lie in the same places.
                assert (np.abs(ours - theirs).max(axis=-1) > 96).mean() < 0.02, shown.name
    context.close()


def pixels(png: bytes) -> Any:
    return np.asarray(Image.open(io.BytesIO(png)).convert("RGB"), dtype=float)


def test_a_figure_whose_frames_do_not_load_keeps_its_picture_and_tries_again(
    server: str, browser: Browser
) -> None:
    context = browser.new_context()
    page = context.new_page()
    page.route("**/live/*.js", lambda route: route.abort())
    page.goto(f"{server}/index.html")
    (shown,) = shown_on(page)
    control = next(iter(shown.figure.controls))
    shown.control(control).press("ArrowRight")
    shown.box.get_by_role("alert").get_by_text("did not load").wait_for()
    assert shown.box.locator("img").is_visible()
    page.unroute("**/live/*.js")
    shown.at[control] += 1
    shown.press(control)
    assert shown.box.get_by_role("alert").inner_text() == ""
    context.close()


def test_without_scripts_picture_alt_text_and_numbers_are_there(
    site: Path, browser: Browser
) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    for name in with_figures(site):
        page.goto((site / name).as_uri())
        for shown in shown_on(page):
            alt, numbers = drawn(shown.name, *shown.figure.defaults().values())
            image = shown.box.locator("img")
            assert unescape(str(image.get_attribute("alt"))) == alt
            assert image.evaluate("e => e.complete && e.naturalWidth") == 1360
            assert shown.state()["numbers"] == numbers
            assert not shown.box.locator("form").is_visible()
    context.close()


def test_the_search_finds_a_term(address: str, browser: Browser) -> None:
    context = browser.new_context()
    log, page = watch(context), context.new_page()
    page.goto(f"{address}/search.html?q=Fisher")
    page.locator("#search-results").get_by_role("link", name="The TRPO step").first.wait_for()
    assert not log.errors
    context.close()


def test_a_dead_link_a_lost_anchor_and_a_citation_of_nothing_stop_the_build(
    site: Path, tmp_path: Path
) -> None:
    dead = ["missing.md", "index.md#nowhere", "references.md#nobody-1999", "#nothing"]
    text = "\n\n".join(["# Start", *(f"[text]({link})" for link in dead), "$x$ {doc}`gone`"])
    (tmp_path / "index.md").write_text(f"{text}\n\n```{{toctree}}\nreferences\n```\n")
    (tmp_path / "references.md").write_text("# References\n\n### Someone 2000\n\nA paper.\n")
    strict = ["-W", "--keep-going", "-q", "-c", str(ROOT / "book")]
    command = [sys.executable, "-m", "sphinx", *strict, str(tmp_path), str(tmp_path / "out")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode != 0
    for lost in ("missing", "nowhere", "nobody-1999", "nothing", "gone"):
        assert lost in done.stderr
