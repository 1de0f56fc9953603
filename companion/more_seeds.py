"""A button that trains more agents of the ablation, and counts the dead."""

from __future__ import annotations

from typing import Any

import ipywidgets as widgets
from IPython.display import display

from companion.ablation import AblationSettings
from companion.compiled.ppo import run_all
from companion.interval import proportion_interval

AT_ONCE = 8  # seeds, with the clip and without
FIRST = 2000  # seed, beyond those that are stored
CLIPS = {"clipped": 0.2, "no clip": None}


class MoreSeeds:
    """A button and a line of counts, as one widget, `box`."""

    def __init__(self) -> None:
        self.trained = 0  # seeds
        self.dead = dict.fromkeys(CLIPS, 0)
        self.button = widgets.Button(description=f"Train {AT_ONCE} more of each", layout=_WIDE)
        self.view = widgets.HTML("No agent trained yet.")
        self.button.on_click(self.train)
        self.box = widgets.VBox([self.button, self.view])

    def train(self, _: object = None) -> None:
        """Train agents of the next seeds, and write the counts of all so far."""
        self.button.disabled = True
        try:
            seeds = range(FIRST + self.trained, FIRST + self.trained + AT_ONCE)
            jobs = [AblationSettings(seed, clip) for clip in CLIPS.values() for seed in seeds]
            runs = run_all(jobs)
            for k, name in enumerate(CLIPS):
                self.dead[name] += sum(one.dead for one in runs[k * AT_ONCE : (k + 1) * AT_ONCE])
            self.trained += AT_ONCE
            self.view.value = "<br>".join(self._line(name) for name in CLIPS)
        finally:
            self.button.disabled = False

    def _line(self, name: str) -> str:
        rate = proportion_interval(self.dead[name], self.trained)
        return (
            f"{name}: {self.dead[name]} of {self.trained} dead, rate {rate.low:.2f} to"
            f" {rate.high:.2f}"
        )


def more_seeds() -> None:
    """Display the button; where there is no kernel, say what it would do."""
    view: dict[str, Any] = MoreSeeds().box._repr_mimebundle_()
    text = f"(With a kernel: a button that trains {AT_ONCE} more agents with the clip and without.)"
    display(view | {"text/plain": text}, raw=True)


_WIDE = {"width": "auto"}
