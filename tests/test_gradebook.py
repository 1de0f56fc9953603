"""Marks in nbgrader's gradebook, marks by hand from there, tables, and feedback pages."""

from __future__ import annotations

import csv
import shutil
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from nbconvert.exporters import HTMLExporter
from nbgrader.api import Gradebook
from nbgrader.preprocessors import GetGrades
from nbgrader.server_extensions.formgrader.handlers import template_path
from traitlets.config import Config

from companion.exercises import EXERCISES, PARTS
from companion.grading import gradebook, masters
from companion.grading.__main__ import main
from companion.grading.course import write_course
from companion.grading.desk import Desk, Record
from companion.grading.export import part_rows, total, write_all
from companion.grading.feedback import page
from companion.grading.grade import Marking
from companion.grading.gradebook import ASSIGNMENT, Written, default_url, written
from companion.grading.hand_ins import HandIn
from companion.grading.marker import PartResult
from companion.grading.sandbox import Sandbox

POINTS = sum(part.points for part in PARTS.values())
NASTY = "<script>alert(1)</script><img src=\"http://x\" onerror='a'>&amp;\x1b[31m"


def record(student: str, right: bool, **texts: str) -> Record:
    """A student who has all parts right or wrong, and written answers."""
    status = "right" if right else "wrong"
    results = [
        PartResult(part.id, part.points if right else 0, part.points, status)
        for part in PARTS.values()
    ]
    return Record(
        student,
        student,
        f"key {right} {texts}",
        results,
        {n.replace("_", "-"): t for n, t in texts.items()},
    )


@pytest.fixture(scope="module")
def entered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A desk's folder with two students, entered into its gradebook, which takes long to make."""
    desk = Desk(tmp_path_factory.mktemp("desk"))
    desk.keep(record("ada", True, **{"20_1_written": "A proof."}))
    desk.keep(record("bob", False))
    enter(desk.records(), desk, default_url(desk))
    return desk.folder


@pytest.fixture
def desk(entered: Path, tmp_path: Path) -> Desk:
    """A copy of that desk."""
    return Desk(shutil.copytree(entered, tmp_path / "desk"))


def enter(records: list[Record], desk: Desk, url: str) -> list[Record]:
    """Enter all that is new, and return it."""
    return list(gradebook.enter(records, desk, url))


def mark_by_hand(desk: Desk, student: str, points: float, comment: str) -> None:
    """What formgrader does when an instructor marks a written answer."""
    with Gradebook(default_url(desk)) as book:
        grade = book.find_grade("20-1-written", "20-1", ASSIGNMENT, student)
        grade.manual_score, grade.needs_manual_grade = points, False
        found = book.find_comment("20-1-written", "20-1", ASSIGNMENT, student)
        found.manual_comment = comment
        book.db.commit()


def stands(desk: Desk, student: str) -> Written:
    """How the first written part of a student stands."""
    return written(desk.records(), default_url(desk))[student][0]


def table(file: Path) -> list[list[str]]:
    with file.open(encoding="utf-8-sig", newline="") as opened:
        return [*csv.reader(opened)]


def test_nbgrader_has_the_marks_and_waits_for_written_answers(desk):
    with Gradebook(default_url(desk)) as book:
        ada, bob = (book.find_submission(ASSIGNMENT, student) for student in ("ada", "bob"))
        assert (ada.score, bob.score) == (POINTS, 0)
        assert ada.max_score == POINTS + sum(one.max_points for one in _every(desk, "ada"))
        assert {n.name: n.needs_manual_grade for n in ada.notebooks} == {
            exercise: exercise == "20-1" for exercise in EXERCISES
        }
        assert not bob.needs_manual_grade
        grade = book.find_grade("20-3-a-check", "20-3", ASSIGNMENT, "ada")
        assert grade.auto_score == grade.max_score == PARTS["20-3-a"].points
    assert (stands(desk, "ada").status, stands(desk, "bob").status) == ("waits", "not attempted")


def _every(desk: Desk, student: str) -> list[Written]:
    return written(desk.records(), default_url(desk))[student]


def test_marks_by_hand_stay_until_the_text_changes(desk):
    mark_by_hand(desk, "ada", 4.5, "Which value is left?")
    marked = Written("20-1", 4.5, 6, "marked", "Which value is left?")
    assert stands(desk, "ada") == marked
    for new in (["ada", "bob"], []):  # the desk has moved; the second time, all is there
        found = enter(desk.records(), desk, default_url(desk))
        assert [one.student for one in found] == new
        assert stands(desk, "ada") == marked
    desk.keep(record("ada", False, **{"20_1_written": "A better proof."}))
    enter(desk.records(), desk, default_url(desk))
    assert stands(desk, "ada") == Written("20-1", 0, 6, "waits", "Which value is left?")
    assert total(desk.record("ada"), _every(desk, "ada"))[0] == 0
    with Gradebook(default_url(desk)) as book:  # for who marks the new text
        assert book.find_submission(ASSIGNMENT, "ada").score == 4.5


def test_marks_by_hand_of_an_answer_that_was_withdrawn_are_gone(desk):
    mark_by_hand(desk, "ada", 4.5, "")
    mark_by_hand(desk, "bob", 3, "On paper.")  # there never was a text
    desk.keep(record("ada", False))
    desk.keep(record("bob", True))
    enter(desk.records(), desk, default_url(desk))
    assert stands(desk, "ada") == Written("20-1", 0, 6, "not attempted")
    assert total(desk.record("ada"), _every(desk, "ada"))[0] == 0
    assert stands(desk, "bob") == Written("20-1", 3, 6, "marked", "On paper.")


def test_after_ctrl_c_what_was_marked_by_hand_since_does_not_wait_again(desk, monkeypatch):
    for student in ("ada", "bob"):
        desk.keep(record(student, True, **{"20_1_written": "Another proof."}))

    def interrupted(book, one, entered):
        if one.student == "bob":
            raise KeyboardInterrupt
        enter_student(book, one, entered)

    enter_student = gradebook._enter_student
    with monkeypatch.context() as patched:
        patched.setattr(gradebook, "_enter_student", interrupted)
        with pytest.raises(KeyboardInterrupt):
            enter(desk.records(), desk, default_url(desk))
    assert stands(desk, "ada").waits
    mark_by_hand(desk, "ada", 5, "")
    new = enter(desk.records(), desk, default_url(desk))
    assert [one.student for one in new] == ["bob"]
    assert stands(desk, "ada") == Written("20-1", 5, 6, "marked")
    assert stands(desk, "bob").waits


def test_after_ctrl_c_formgrader_shows_every_student(desk, tmp_path, monkeypatch):
    """Whose notebooks were not written is entered once more; whose were is not."""
    for student in ("ada", "bob", "cy"):
        desk.keep(record(student, True, **{"20_1_written": "Another proof."}))
    course, url = tmp_path / "course", default_url(desk)

    def interrupted(folder, texts):
        if "bob" in folder.parts:
            raise KeyboardInterrupt
        masters.write(folder, texts)

    with monkeypatch.context() as patched:
        patched.setattr("companion.grading.course.write", interrupted)
        with pytest.raises(KeyboardInterrupt):
            write_course(gradebook.enter(desk.records(), desk, url), course, url)
    assert [path.name for path in (course / "autograded").iterdir()] == ["ada"]
    (course / "autograded" / "ada").rename(course / "autograded" / "seen")
    write_course(gradebook.enter(desk.records(), desk, url), course, url)
    assert {path.name for path in (course / "autograded").iterdir()} == {"seen", "bob", "cy"}


@pytest.mark.parametrize("text", ["", "[]", '{"20-1-wr'])
def test_spoilt_digests_are_named(text, desk):
    (file,) = (desk.folder / "entered").glob("ada-*")
    file.write_text(text)
    with pytest.raises(ValueError, match=rf"{file.name} is spoilt: delete it"):
        enter(desk.records(), desk, default_url(desk))


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("foo://x", "foo"),
        ("nonsense", "URL"),
        ("oracle+cx_oracle://x", "No module named 'cx_Oracle'"),
        ("sqlite:////nowhere/gradebook.db", "unable to open database file"),
    ],
)
@pytest.mark.parametrize("command", ["export", "grade"])
def test_a_database_that_is_none_is_named_before_anything_is_marked(
    command, url, said, desk, tmp_path, capsys
):
    words = [command, *([str(tmp_path / "submissions")] if command == "grade" else [])]
    assert main([*words, "--desk", str(desk.folder), "--db", url]) == 1
    shown = capsys.readouterr().err
    if command == "grade":
        shown = shown.removeprefix("Checking the sandbox and what has changed.\n")
    assert shown.startswith("companion-desk: the gradebook (--db) can't be opened: ")
    assert said in shown


def test_who_could_not_be_marked_keeps_earlier_marks(desk):
    enter([Record("ada", "ada", "", problems=["could not be marked"])], desk, default_url(desk))
    with Gradebook(default_url(desk)) as book:
        assert book.find_submission(ASSIGNMENT, "ada").score == POINTS
    assert written([record("nobody", False)], default_url(desk)) == {}


@pytest.mark.parametrize("name", ["\udce9", "a'; DROP TABLE grade; --", NASTY, "=1"])
def test_any_name_can_be_entered_and_exported(name, desk, tmp_path):
    desk.keep(record(name, True))
    enter(desk.records(), desk, default_url(desk))
    found = written([desk.record(name)], default_url(desk))
    assert len(found[name]) == len(EXERCISES)
    (marks, *_) = write_all(desk.records(), found, tmp_path)
    rows = table(marks)[1:]
    assert len(rows) == 3 * len(PARTS) + len(EXERCISES)
    assert not any(value.startswith("=") for row in rows for value in row)


def test_tables_hold_marks_by_hand_and_totals_that_an_lms_takes(desk, tmp_path):
    desk.keep(record("Bob Ng_4711_assignsubmission_file", True))
    enter(desk.records(), desk, default_url(desk))
    mark_by_hand(desk, "ada", 4.5, "")
    assert main(["export", "--desk", str(desk.folder), "--to", str(tmp_path / "out")]) == 0
    marks, canvas, moodle = (
        table(tmp_path / "out" / f"{name}.csv") for name in ("marks", "canvas", "moodle")
    )
    most = POINTS + sum(one.max_points for one in _every(desk, "ada"))
    bob = "Bob Ng_4711_assignsubmission_file"
    assert ["ada", "20-1-written", "4.5", "6", "marked", ""] in marks
    assert canvas[0] == ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", "Chapter 20"]
    assert canvas[1][0].strip() == "Points Possible"
    assert float(canvas[1][-1]) == most
    assert {row[3]: float(row[-1]) for row in canvas[2:]} == {
        "ada": POINTS + 4.5,
        "bob": 0,
        bob: POINTS,
    }
    assert ["Participant 4711", "Bob Ng", str(POINTS), str(int(most))] in moodle


# Each would be HTML or a link that runs code, were it taken over as it is.
HOSTILE = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<\x00script>alert(1)</script>",
    "[a](javascript:alert(1))",
    "[a](javascript\\:alert(1))",
    "[a](java&#115;cript:alert(1))",
    "[a](<javascript&colon;alert(1)>)",
    "[a]\n\n[a]: javascript:alert(1)",
    "[a][b]\n\n[b]:\n  javascript:alert(1)",
    "![a](x.png)",
    "<javascript:alert(1)>",
    "- <b>a</b>\n\n      <i>b</i>\n",
    "$a<img src=x>$",
    "=" * 3 + " ]]><svg/onload=alert(1)>",
]


@pytest.mark.parametrize("name", ["work/ada.ipynb", "../ada", "..", "a" * 250])
def test_whose_name_is_no_folders_can_be_marked_by_hand_as_well(name, desk, tmp_path):
    desk.keep(record(name, True, **{"20_1_written": "A proof."}))
    url = default_url(desk)
    enter(desk.records(), desk, url)
    assert written(desk.records(), url)[name][0].waits
    write_course([desk.record(name)], tmp_path / "course", url)
    (folder,) = (tmp_path / "course" / "autograded").iterdir()
    with Gradebook(url) as book:
        assert book.find_submission(ASSIGNMENT, folder.name).needs_manual_grade
    assert "A proof." in (folder / ASSIGNMENT / "20-1.ipynb").read_text(encoding="utf-8")


def test_model_answers_lie_in_the_assignments_source_and_nowhere_else(desk, tmp_path):
    write_course(desk.records(), tmp_path / "course", default_url(desk))
    holding = [
        file.relative_to(tmp_path / "course").parts
        for file in (tmp_path / "course").rglob("*.ipynb")
        if "BEGIN SOLUTION" in file.read_text(encoding="utf-8")
    ]
    assert sorted(holding) == sorted(
        ("source", ASSIGNMENT, f"{exercise}.ipynb") for exercise in EXERCISES
    )
    proof = "each $\\\\gamma^{t+1} v_\\\\pi(S_{t+1})$ is added once and subtracted once"
    texts = {file.parent.parent.name: file.read_text() for file in tmp_path.rglob("20-1.ipynb")}
    assert {name for name, text in texts.items() if proof in text} == {"source"}
    assert {"source", "ada", "bob"} <= texts.keys()


def test_formgrader_shows_written_answers_and_runs_nothing_of_them(desk, tmp_path):
    for number, text in enumerate([*HOSTILE, "Since $a<b$, *so*."]):
        desk.keep(record(f"student-{number}", True, **{"20_1_written": text}))
    url = default_url(desk)
    new = [one for one in enter(desk.records(), desk, url) if one.student.startswith("student-")]
    assert {one.student for one in new} == {f"student-{n}" for n in range(len(HOSTILE) + 1)}
    write_course(new, tmp_path / "course", url)
    config = Config()
    config.HTMLExporter.template_name = "formgrade"
    config.HTMLExporter.extra_template_basedirs = [template_path]
    config.HTMLExporter.preprocessors = [GetGrades]
    exporter = HTMLExporter(config=config)
    shown = {
        one.student: Tags(answer_in_formgrader(exporter, tmp_path / "course", one, url))
        for one in new
    }
    honest = shown.pop(f"student-{len(HOSTILE)}")
    assert "Since $a< b$, so." in honest.shown
    assert {"em", "p"} <= honest.tags
    for page_ in shown.values():
        assert not page_.tags & {"a", "script", "img", "svg", "b", "i"}, page_.shown
        assert not page_.attributes & {"href", "src", "onerror", "onload"}


def answer_in_formgrader(exporter: Any, course: Path, one: Record, url: str) -> str:
    """The part of formgrader's page that shows the student's written answer."""
    names = {"assignment": ASSIGNMENT, "notebook": "20-1", "student": one.student}
    resources = {f"{name}_id": value for name, value in names.items()} | {
        "submission_id": "x",
        "index": 0,
        "total": 1,
        "base_url": "/",
        "notebook_path": "x",
        "student": one.student,
        "last_name": None,
        "first_name": None,
        "nbgrader": {**names, "db_url": url},
    }
    file = course / "autograded" / one.student / ASSIGNMENT / "20-1.ipynb"
    html, _ = exporter.from_filename(str(file), resources=resources)
    assert "right." in html
    assert html.count("Student's answer") == 1
    assert 'id="20-1-written"' in html  # the field for the points
    return str(html[html.index("Student's answer") : html.index("</main>")])


class Tags(HTMLParser):
    """The tags and the text of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.shown = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[Any]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.shown += data


def test_a_page_shows_whatever_a_student_wrote_as_text():
    results = [
        PartResult(part, 0, 2, "wrong", NASTY, NASTY, NASTY) for part in ("20-1-a", "20-1-b")
    ]
    nasty = Record(NASTY, NASTY, "key", results, {}, [NASTY])
    found = Tags(page(nasty, [Written("20-1", 1.5, 6, "marked", NASTY)]))
    plain = Tags(page(record("ada", False), [Written("20-1", 1.5, 6, "marked")]))
    assert found.tags - {"pre"} == plain.tags
    assert (
        found.attributes
        == plain.attributes
        == {"charset", "content", "http-equiv", "lang", "name", "scope"}
    )
    assert found.shown.count("<script>alert(1)</script>") >= 8
    assert "\x1b" not in found.shown


def test_a_page_says_what_came_out_and_what_waits():
    result = PartResult("20-1-a", 0, 2, "wrong", "a name", "Look at the transpose.", "7\n")
    shown = Tags(
        page(
            Record("ada", "ada", "key", [result]),
            [Written("20-1", 0, 6, "waits"), Written("20-2", 3, 5, "marked", "Good.")],
        )
    ).shown
    assert "3 of 13 points; 1 written answer waits to be marked." in shown
    assert "wrong. Look at the transpose.7" in shown
    assert "marked. Good." in shown
    assert "of 0 points" not in shown  # of exercises that are none of the course's


def test_a_page_says_in_a_line_what_was_not_handed_in():
    results = [PartResult(part.id, 0, part.points, "missing") for part in PARTS.values()]
    results[0] = PartResult("20-1-a", 2, 2, "right")
    shown = Tags(page(Record("ada", "ada", "key", results))).shown
    assert shown.count("Nothing was handed in: 0 of") == len(EXERCISES) - 1
    assert "Exercise 20.8" in shown
    assert "Further exercise 1" in shown
    assert "further-1" not in shown


def test_a_page_and_the_tables_tell_what_was_left_empty_from_what_is_not_there(desk, tmp_path):
    """One word for the same thing, in automatic and written parts."""
    folder = tmp_path / "cy"
    texts = {f"{name}.ipynb": masters.written(v) for name, v in masters.student_versions().items()}
    cut = texts["20-2.ipynb"][:-100]
    masters.write(folder, {"20-1.ipynb": texts["20-1.ipynb"], "20-2.ipynb": cut})
    marked = Marking(masters.released(), "secret", Sandbox()).student("cy", HandIn(folder))
    enter([marked], desk, default_url(desk))
    stand = written([marked], default_url(desk))["cy"]
    rows = {row[1]: row[4] for row in part_rows(marked, stand)}
    came_out = {"20-1": "not attempted", "20-2": "unreadable"}
    assert rows == {part: came_out.get(part.rpartition("-")[0], "missing") for part in rows}
    assert {f"{exercise}-written" for exercise in EXERCISES} <= {*rows}
    shown = Tags(page(marked, stand)).shown
    most = [
        sum(part.points for part in PARTS.values() if part.id.startswith(f"{exercise}-"))
        + next(one.max_points for one in stand if one.exercise == exercise)
        for exercise in ("20-1", "20-2")
    ]
    assert f"Exercise 20.1\nNothing was attempted: 0 of {most[0]:g} points." in shown
    assert f"Exercise 20.2\nThe notebook could not be read: 0 of {most[1]:g} points." in shown
    assert shown.count("Nothing was handed in: 0 of") == len(EXERCISES) - 2


def test_a_page_says_the_id_of_each_exercise_if_they_differ():
    results = [PartResult(part.id, part.points, part.points, "right") for part in PARTS.values()]
    ids = {"20-1": "bng", "20-2": "bng", "20-3": "bne"}
    one = Record("ngbob", "bng", "key", results, typed=["bng", "bne"], ids=ids)
    shown = Tags(page(one)).shown
    assert "Exercise 20.2\nYour numbers derive from the id bng." in shown
    assert "Exercise 20.3\nYour numbers derive from the id bne." in shown
    assert shown.count("Your numbers derive") == 3
    same = Record("ngbob", "bng", "key", results, typed=["bng"], ids=dict.fromkeys(ids, "bng"))
    assert Tags(page(same)).shown.count("Your numbers derive from the id bng.") == 1


def test_feedback_by_the_command_line_and_another_database(desk, tmp_path, capsys):
    url = f"sqlite:///{tmp_path / 'elsewhere.db'}"
    enter(desk.records(), desk, url)
    options = ["--desk", str(desk.folder), "--db", url]
    assert main(["feedback", *options]) == 0
    assert "2 pages" in capsys.readouterr().out
    pages = sorted((desk.folder / "feedback").iterdir())
    assert [file.name.partition("-")[0] for file in pages] == ["ada", "bob"]
    assert f"{POINTS} of" in pages[0].read_text(encoding="utf-8")
