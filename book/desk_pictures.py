"""Draw the pictures of the desk's pages: python book/desk_pictures.py

A synthetic class hands in the masters with mistakes that students make; the desk grades it, and
what it writes is photographed. Chromium makes the pictures of pages.
"""

import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from nbgrader.api import Gradebook
from PIL import Image

from companion.check import check
from companion.grading import masters
from companion.grading.__main__ import main as companion_desk
from companion.grading.desk import Desk, file_name
from companion.grading.gradebook import ASSIGNMENT, default_url
from companion.grading.marker import PartResult

STATIC = Path(__file__).resolve().parent / "_static"
STUDENTS = 60
HANDED_IN = [f"20-{k}" for k in range(1, 9)]
# What is right in a master, what stands there instead, and how many of a class would write it.
MISTAKES = {
    "20-1": [
        ("gamma * P_pi.T, mu)", "gamma * P_pi, mu)", 0.2),
        (
            "    return np.linalg.solve(np.eye(len(mu))",
            "    return (1 - gamma) * np.linalg.solve(np.eye(len(mu))",
            0.25,
        ),
        ("gamma * P @ v - v[:, None]", "gamma * P @ v", 0.15),
    ],
    "20-2": [
        ("ratio * adv / (1 - gamma)", "ratio * adv", 0.45),
        ("terms.std(ddof=1)", "terms.std()", 0.4),
        ("(adv - mean)", "adv", 0.25),
    ],
    "20-3": [
        ("(softmax(logits) - old) / len(old)", "(old - softmax(logits)) / len(old)", 0.2),
        ("np.sqrt(2 * delta / (g @ direction))", "np.sqrt(delta / (g @ direction))", 0.35),
        ("np.diag(p_n) - np.outer(p_n, p_n)", "np.diag(p_n)", 0.3),
    ],
    "20-5": [
        (
            "np.where(adv > 0, ratio > 1 + clip_range, ratio < 1 - clip_range)",
            "np.abs(ratio - 1) > clip_range",
            0.55,
        ),
        ("np.minimum(ratio * adv", "np.maximum(ratio * adv", 0.15),
    ],
    "20-6": [
        ("kl < target / 1.5", "kl < target", 0.35),
        ("    return beta * pi / (high - adv)", "    raise ValueError('no level found')", 0.45),
    ],
    "20-7": [
        ("pi * np.exp(eta", "np.exp(eta", 0.25),
        ("return eta * (q - (pi * q).sum(axis=1, keepdims=True))", "return eta * q", 0.3),
    ],
    "20-8": [("outside & (np.abs(clipped - target) > np.abs(v - target))", "outside", 0.6)],
}
PROOF = "*Your answer.*"


def notebook(exercise: str, student: str, skill: float, rng: np.random.Generator) -> str:
    """A student's notebook: the better the student, the fewer mistakes."""
    master = masters.masters()[exercise]
    released = masters.student_version(master)
    for cell, empty in zip(master.cells, released.cells, strict=True):
        cell.source = cell.source.replace("your-id", student)
        for right, mistaken, share in MISTAKES.get(exercise, []):
            if right in cell.source and rng.random() < 2 * share * (1 - skill):
                cell.source = cell.source.replace(right, mistaken)
        unfinished = empty.source != cell.source and rng.random() < 0.15 * (1 - skill)
        if "your-id" not in empty.source and unfinished:
            cell.source = empty.source
        if empty.source == PROOF:
            cell.source = PROOF if rng.random() > skill else "The values telescope; see the sums."
    return masters.written(master)


def hand_in(folder: Path) -> None:
    """The class's hand-ins: most have all of 20.1 to 20.8, some leave out the last ones."""
    rng = np.random.default_rng(20)
    for k in range(STUDENTS):
        skill = rng.beta(2, 1.5)
        done = HANDED_IN[: 8 - rng.binomial(3, 0.6 * (1 - skill))]
        texts = {
            f"{exercise}.ipynb": notebook(exercise, f"student-{k:02}", skill, rng)
            for exercise in done
        }
        masters.write(folder / f"student-{k:02}", texts)


def mark_by_hand(desk: Desk) -> None:
    """Points and comments for the proof of 20.1, as formgrader enters them."""
    with Gradebook(default_url(desk)) as book:
        for submission in book.assignment_submissions(ASSIGNMENT):
            where = ("20-1-written", "20-1", ASSIGNMENT, submission.student.id)
            grade = book.find_grade(*where)
            if grade.needs_manual_grade:
                grade.manual_score, grade.needs_manual_grade = 4, False
                comment = book.find_comment(*where)
                comment.manual_comment = "Good. Why does the last value vanish?"
        book.db.commit()


def photograph(html: str, name: str, folder: Path, height: int, width: int = 820) -> None:
    """A picture of the top of a page, in few colours."""
    source, shot = folder / f"{name}.html", folder / f"{name}.png"
    source.write_text(html, encoding="utf-8")
    command = ["chromium", "--headless", "--no-sandbox", "--hide-scrollbars", "--disable-gpu"]
    command += [f"--window-size={width},{height}", f"--screenshot={shot}", source.as_uri()]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    keep(shot, name)


def keep(picture: Path, name: str) -> None:
    """Store a picture with a palette, which takes a third of the room."""
    target = STATIC / f"{name}.png"
    Image.open(picture).convert("RGB").quantize(64, dither=Image.Dither.NONE).save(
        target, optimize=True
    )
    print(f"{target.name}: {target.stat().st_size / 1e3:.0f} kB")


def check_page() -> str:
    """What a notebook shows below a cell whose answer has a frequent mistake."""

    def clipped_derivative(ratio: Any, adv: Any, clip_range: float) -> Any:
        return np.where(np.abs(ratio - 1) > clip_range, 0.0, adv)

    answer = check("20-5-a", clipped_derivative, "ada")
    source = 'check("20-5-a", clipped_derivative, student)'
    html = getattr(answer, "_repr_html_", lambda: f"<pre>{answer!r}</pre>")()
    return f"""<!DOCTYPE html><meta charset="utf-8"><style>
body {{ font: 14px/1.5 sans-serif; margin: 16px; color: #111; }}
pre {{ font: 13px/1.5 monospace; white-space: pre-wrap; margin: 0; }}
.cell {{ background: #f5f5f5; border: 1px solid #ccc; padding: 8px 12px; margin-bottom: 12px; }}
</style><pre class="cell">{source}</pre>{html}"""


def main() -> None:
    """Grade the class and store the pictures."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        hand_in(folder / "class")
        place = ["--desk", str(folder / "desk")]
        assert companion_desk(["release", str(folder / "handout"), *HANDED_IN, *place]) == 0
        assert companion_desk(["grade", str(folder / "class"), *place]) == 0
        desk = Desk(folder / "desk")
        mark_by_hand(desk)
        assert companion_desk(["summary", *place]) == 0
        keep(desk.folder / "summary.png", "class-summary")
        assert companion_desk(["feedback", *place]) == 0
        # One with a few mistakes: the page shows how they are named.
        chosen = min(desk.counted(), key=lambda r: abs(mistakes(r.results) - 2))
        file = desk.folder / "feedback" / f"{file_name(chosen.student)}.html"
        photograph(file.read_text(encoding="utf-8"), "feedback-page", folder, 900)
        photograph(check_page(), "self-check", folder, 130)


def mistakes(results: Sequence[PartResult]) -> int:
    """How many mistakes were named in the first two exercises."""
    return sum(bool(r.misconception) for r in results if r.part.startswith(("20-1", "20-2")))


if __name__ == "__main__":
    main()
