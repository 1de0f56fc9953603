"""The sections in JupyterLab: every control moves its figure to what the companion computes."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterator
from typing import Any

import nbformat
import pytest
from axe_playwright_python.sync_playwright import Axe
from live_frames import live_figure, shown
from playwright.sync_api import Browser, Locator

from companion.drawing import Choice, LiveFigure, Slider
from companion.render import DENSITY, WIDTH, Renderer
from companion.show import number
from tests.browser import browser  # noqa: F401  (a fixture)
from tests.lab import ROOT, LabNotebook, copy_notebooks, serve, write_notebook

SECTIONS = sorted(path.stem for path in (ROOT / "notebooks").glob("*.ipynb"))

SLOW = """import time
from matplotlib.figure import Figure
from companion.drawing import Drawing, LiveFigure, Slider
from companion.show import live

DRAWN = []

def draw(x):
    DRAWN.append((1000 * time.time(), x))
    time.sleep(0.2)
    if x == 7:
        raise ValueError("x must not be 7")
    figure = Figure(figsize=(3, 2))
    figure.subplots().plot([0, x])
    return Drawing(figure, {"x": x}, f"A line to {x:g}.")

live(LiveFigure(draw, {"x": Slider("x", "size", 0.0, 0.0, 50.0, 1.0)}))
"""
MANY = """import gc
import psutil
from matplotlib import pyplot as plt
from companion.figures.bandit import EPOCHS
from companion.figures.lemma import LEMMA
from companion.figures.mirror import GAPS
from companion.panel import Panel
from companion.show import number

panel = Panel(LEMMA, number)

def megabytes_after(first, last):
    for i in range(first, last):
        panel.controls["alpha"].slider.value = i % 19 / 20
        gaps.controls["eta"].box.value = 1 + i / 100
        if i % 5 == 0:  # these train
            epochs.controls["beta"].box.value = 1 + i / 100
    gc.collect()
    return psutil.Process().memory_info().rss / 2**20

panel.box
"""
MEASURED = """gaps, epochs = Panel(GAPS, number), Panel(EPOCHS, number)
print(-megabytes_after(0, 50) + megabytes_after(50, 250), plt.get_fignums())
"""


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    directory = tmp_path_factory.mktemp("lab")
    copy_notebooks(directory)
    write_notebook(directory / "slow.ipynb", [SLOW, "import json\nprint(json.dumps(DRAWN))"])
    write_notebook(directory / "many.ipynb", [MANY, MEASURED])
    with serve(directory) as address:
        yield address


def figures_of(section: str) -> dict[int, LiveFigure]:
    """Find a section's live figures, by the position of the cell that shows each."""
    notebook = nbformat.read(ROOT / "notebooks" / f"{section}.ipynb", as_version=4)
    positions = {cell.id: position for position, cell in enumerate(notebook.cells)}
    return {positions[cell]: live_figure(name) for cell, name in shown(notebook)}


class Shown:
    """A live figure in a cell, and what the companion says it must show."""

    def __init__(self, notebook: LabNotebook, cell: Locator, figure: LiveFigure) -> None:
        self.page, self.cell, self.figure = notebook.page, cell, figure
        self.renderer = Renderer()
        self.setting = figure.defaults()

    def must_show(self, **moved: float | str) -> None:
        """Wait for the picture at the setting with these moves, and compare everything else."""
        self.setting |= moved
        drawing = self.figure.draw(**self.setting)
        png = base64.b64encode(self.renderer.png(drawing.figure)).decode("ascii")
        picture = self.cell.locator(f'img[alt="{drawing.alt}"]')
        picture.wait_for()
        assert picture.get_attribute("src") == f"data:image/png;base64,{png}", self.setting
        assert self.cell.locator("img").count() == 1
        cells = self.cell.locator("tr").evaluate_all(
            "rows => rows.map(row => [...row.children].map(cell => cell.textContent))"
        )
        assert cells == [[name, number(value)] for name, value in drawing.numbers.items()]
        for keyword, control in self.figure.controls.items():
            box = self.cell.get_by_label(label(control)).first
            shown = box.input_value()
            value = shown if isinstance(control, Choice) else float(shown)
            assert value == self.setting[keyword]

    def slider(self, control: Slider | Choice) -> Locator:
        return self.cell.get_by_role("slider", name=label(control), exact=True)

    def press(self, control: Slider | Choice, key: str) -> None:
        self.slider(control).focus()
        self.page.keyboard.press(key)

    def click(self, control: Slider | Choice, value: float | str) -> None:
        """Click where the slider stands for a value."""
        track = self.slider(control).locator("xpath=ancestor::*[contains(@class, 'noUi-base')]")
        track.scroll_into_view_if_needed()
        box = track.bounding_box()
        assert box is not None
        x = min(max(1.0, part_of_track(control, value) * box["width"]), box["width"] - 1)
        self.page.mouse.click(box["x"] + x, box["y"] + box["height"] / 2)


def part_of_track(control: Slider | Choice, value: Any) -> float:
    if isinstance(control, Choice):
        return control.options.index(value) / (len(control.options) - 1)
    scale = math.log10 if control.log else float
    low, high = scale(control.low), scale(control.high)
    return (scale(value) - low) / (high - low)


def label(control: Slider | Choice) -> str:
    return f"{control.symbol} {control.name}"


def stops(control: Slider | Choice) -> list[Any]:
    return list(control.options) if isinstance(control, Choice) else control.grid()


@pytest.mark.parametrize("section", SECTIONS)
def test_every_control_moves_its_figure(section: str, lab: str, browser: Browser) -> None:  # noqa: F811
    figures = figures_of(section)
    notebook = LabNotebook(browser, lab, f"notebooks/{section}.ipynb")
    for position in figures:
        saved = notebook.show(position).locator(".jp-OutputArea-output")
        saved.locator("img").wait_for()
        assert saved.locator("img").evaluate("i => i.decode().then(() => i.naturalWidth)") == (
            WIDTH * DENSITY
        )
        assert "Error" not in saved.inner_text()
    notebook.run_all()
    for position, figure in figures.items():
        cell = notebook.show(position)
        shown = Shown(notebook, cell, figure)
        shown.must_show()
        for keyword, control in figure.controls.items():
            move(shown, keyword, control)
        cell.get_by_role("button", name="Reset").click()
        shown.must_show(**figure.defaults())
    assert Axe().run(notebook.page, context=".widget-vbox").response["violations"] == []
    notebook.close()


def first_code_cell(section: str) -> int:
    cells = nbformat.read(ROOT / "notebooks" / f"{section}.ipynb", as_version=4).cells
    return next(i for i, cell in enumerate(cells) if cell.cell_type == "code")


def move(shown: Shown, keyword: str, control: Slider | Choice) -> None:
    """Move one control by key and by mouse, and a choice in its box too."""
    values = stops(control)
    start = values.index(control.start)
    key, value = (
        ("ArrowRight", values[start + 1])
        if control.start != values[-1]
        else ("ArrowLeft", values[start - 1])
    )
    shown.press(control, key)
    shown.must_show(**{keyword: value})
    value = values[(start + len(values) // 2) % len(values)]
    shown.click(control, value)
    shown.must_show(**{keyword: value})
    if isinstance(control, Choice):
        box = shown.cell.get_by_role("combobox", name=label(control), exact=True)
        box.select_option(control.start)
        shown.must_show(**{keyword: control.start})


def test_a_number_is_typed_and_nonsense_changes_nothing(lab: str, browser: Browser) -> None:  # noqa: F811
    notebook = LabNotebook(browser, lab, "notebooks/03-cpi-bound.ipynb")
    position, figure = next(iter(figures_of("03-cpi-bound").items()))
    notebook.run(first_code_cell("03-cpi-bound"))
    shown = Shown(notebook, notebook.run(position), figure)
    shown.must_show()
    alpha, gamma = (
        shown.cell.get_by_role("spinbutton", name=label(figure.controls[name]), exact=True)
        for name in ("alpha", "gamma")
    )
    for box, typed, moved in (
        (alpha, "2e-3", {"alpha": 0.002}),
        (gamma, "0.9123", {"gamma": 0.9123}),
        (gamma, "7", {"gamma": 0.99}),
        (gamma, "-7", {"gamma": 0.6}),
        (alpha, "0", {"alpha": 1e-5}),
        (alpha, "-", {}),
        (alpha, "", {}),
        (alpha, "1e-3", {"alpha": 1e-3}),
    ):
        box.fill("") if typed in ("", "-") else box.fill(typed)
        if typed == "-":
            box.press("-")
        box.press("Enter")
        box.blur()
        shown.must_show(**moved)
    notebook.close()


def test_a_fast_drag_shows_the_last_value_and_an_error_its_message(
    lab: str,
    browser: Browser,  # noqa: F811
) -> None:
    notebook = LabNotebook(browser, lab, "slow.ipynb")
    cell = notebook.run(0)
    slider = cell.get_by_role("slider", name="x size", exact=True)
    slider.focus()
    notebook.page.evaluate(
        "() => addEventListener('keydown', event => window.last = event.timeStamp, true)"
    )
    for _ in range(50):
        notebook.page.keyboard.press("ArrowRight")
    last = notebook.page.evaluate("() => performance.timeOrigin + window.last")
    cell.get_by_role("img", name="A line to 50.").wait_for()
    drawn = json.loads(notebook.run(1).locator(".jp-OutputArea-output").inner_text())
    assert drawn[-1][1] == 50
    assert sum(time > last for time, _ in drawn) <= 2
    moves = [x for _, x in drawn if x > 0]
    assert moves == sorted(set(moves))

    box = notebook.show(0).get_by_role("spinbutton", name="x size", exact=True)
    box.fill("7")
    box.press("Enter")
    alert = cell.get_by_role("alert")
    alert.wait_for()
    assert alert.inner_text() == "ValueError: x must not be 7"
    assert cell.locator("img").count() == 0
    slider.focus()
    notebook.page.keyboard.press("ArrowRight")
    cell.get_by_role("img", name="A line to 8.").wait_for()
    assert alert.count() == 0
    notebook.close()


def test_two_hundred_moves_leave_memory_flat_and_no_figure_open(
    lab: str,
    browser: Browser,  # noqa: F811
) -> None:
    notebook = LabNotebook(browser, lab, "many.ipynb")
    cell = notebook.run(0)
    cell.locator("img").wait_for()
    growth, figures = notebook.run(1).locator(".jp-OutputArea-output").inner_text().split(None, 1)
    assert float(growth) < 20
    assert figures.strip() == "[]"
    assert cell.locator("img").count() == 1
    notebook.close()


def test_no_frame_is_without_its_picture_while_it_changes(lab: str, browser: Browser) -> None:  # noqa: F811
    notebook = LabNotebook(browser, lab, "many.ipynb")
    cell = notebook.run(0)
    cell.locator("img").wait_for()
    cell.evaluate(
        """cell => {
            window.frames = [];
            const look = () => {
                const picture = cell.querySelector('img');
                const there = picture?.complete && picture.naturalWidth > 0;
                const height = cell.querySelector('.widget-html').offsetHeight;
                window.seen.push(`${there ? 'picture' : 'nothing'} ${height}`);
                requestAnimationFrame(look);
            };
            window.seen = [];
            look();
        }"""
    )
    slider = cell.get_by_role("slider").first
    for count in range(1, 6):
        slider.focus()
        notebook.page.keyboard.press("ArrowRight")
        cell.locator(f'img[alt*="at alpha = {0.5 + 0.05 * count:.3g} "]').wait_for()
    seen = notebook.page.evaluate("() => [...new Set(window.seen)]")
    assert len(seen) == 1
    assert seen[0].startswith("picture")
    notebook.close()
