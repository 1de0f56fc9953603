"""A live figure on a page without a kernel: its picture, its numbers and its controls."""

import json
import re
from collections.abc import Mapping
from html import escape
from typing import Any

from companion.drawing import Choice, LiveFigure, Slider
from companion.frames import Grid, grid, stop_text
from companion.render import WIDTH


def figure_html(
    name: str, figure: LiveFigure, data: Mapping[str, Any], *, ident: str, root: str
) -> str:
    """The HTML of a live figure at its start; live.js adds what moves.

    Args:
        name: of the figure, which is that of its picture and its script too.
        figure: the figure itself.
        data: what `companion.frames.record` returned for it.
        ident: what the ids of the elements begin with, unique on its page.
        root: of the site, from the page.
    """
    stops = grid(figure)
    alt, numbers = at_start(figure, data)
    rows = "".join(
        f"<div><dt>{escape(key)}</dt><dd>{_unbroken(value)}</dd></div>"
        for key, value in numbers.items()
    )
    width, height = data["size"]
    return f"""<figure class="live" id="{ident}" data-live="{name}">
<form class="live-controls" autocomplete="off" hidden>
{_controls(figure, stops, ident)}
<button type="button">Reset</button>
{_note(figure, stops)}
<p class="live-problem" role="alert"></p>
</form>
<p class="live-swipe">Wider than the screen: swipe the picture.</p>
<div class="live-picture">
<img class="dark-light" src="{root}_static/live/{name}.png" width="{WIDTH}"
 height="{round(WIDTH * height / width)}" alt="{escape(alt)}">
</div>
<dl class="live-numbers">{rows}</dl>
<script type="application/json">{_json(figure, stops)}</script>
</figure>
"""


def at_start(figure: LiveFigure, data: Mapping[str, Any]) -> tuple[str, dict[str, str]]:
    """The alt text and the numbers that were recorded for the start."""
    frame = grid(figure).settings().index(figure.defaults())
    texts = data["texts"]
    words = [texts[position] for position in data["numbers"][frame]]
    return texts[data["alts"][frame]], dict(zip(words[::2], words[1::2], strict=True))


def _unbroken(text: str) -> str:
    """Each word in an element of its own, so that no number is broken at its sign or after <."""
    return re.sub(r"(?:< )?\S+", lambda word: f"<span>{escape(word[0])}</span>", text)


def _controls(figure: LiveFigure, stops: Grid, ident: str) -> str:
    return "\n".join(
        f'<div class="live-control"><label for="{ident}-{keyword}">'
        f'<span class="live-symbol">{escape(control.symbol)}</span> {escape(control.name)}</label>'
        f"{_input(control, stops, keyword, f'{ident}-{keyword}')}</div>"
        for keyword, control in figure.controls.items()
    )


def _input(control: Slider | Choice, stops: Grid, keyword: str, ident: str) -> str:
    start, last = stops.start[keyword], len(stops.stops[keyword]) - 1
    if isinstance(control, Choice):
        options = "".join(
            f'<option value="{i}"{" selected" if i == start else ""}>{escape(text)}</option>'
            for i, text in enumerate(control.options)
        )
        return f'<select id="{ident}" name="{keyword}">{options}</select>'
    text = escape(stop_text(control.start))
    return (
        f'<input type="range" id="{ident}" name="{keyword}" min="0" max="{last}" step="1"'
        f' value="{start}" aria-valuetext="{text}"><output for="{ident}">{text}</output>'
    )


def _note(figure: LiveFigure, stops: Grid) -> str:
    if not stops.joint:
        note = "Here one control moves at a time, the others go back; in the notebook all move."
    elif any(
        isinstance(control, Slider) and len(stops.stops[keyword]) < len(control.grid())
        for keyword, control in figure.controls.items()
    ):
        note = "Here the sliders have fewer stops than in the notebook."
    else:
        return ""
    return f'<p class="live-note">{note}</p>'


def _json(figure: LiveFigure, stops: Grid) -> str:
    controls = [
        {
            "name": keyword,
            "start": stops.start[keyword],
            "texts": [stop_text(value) for value in values],
        }
        for keyword, values in stops.stops.items()
    ]
    text = json.dumps({"joint": stops.joint, "controls": controls}, separators=(",", ":"))
    return text.replace("<", "\\u003c")
