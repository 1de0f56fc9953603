"""A class graded at the desk: marks, what is kept, what is marked again, and what is not."""

from __future__ import annotations

import csv
import json
import os
import re
import signal
import stat
import subprocess
import sys
import time
import tomllib
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
from distributed import LocalCluster

from companion.exercises import EXERCISES, PARTS
from companion.grading import masters
from companion.grading.__main__ import main
from companion.grading.desk import Desk, Record, hand_in_key, marking_key
from companion.grading.grade import Marking, grade
from companion.grading.gradebook import default_url, enter, written
from companion.grading.hand_ins import HandIn, hand_ins
from companion.grading.limits import Limits
from companion.grading.marker import PartResult
from companion.grading.roster import same_id
from companion.grading.sandbox import Sandbox, available

ROOT = Path(__file__).resolve().parent.parent
# A busy machine may take long to start Python.
SANDBOX = Sandbox(Limits(wall_seconds=60))
OF_20_1 = [part for part in PARTS.values() if part.id.startswith("20-1-")]
ALL = sum(part.points for part in OF_20_1)

needs_sandbox = pytest.mark.skipif(available() is not None, reason=str(available()))


def hand_in(folder: Path, student: str | None = None, **changes: str) -> Path:
    """Hand in the master of Exercise 20.1, with the student's id, and changes (old=, new=)."""
    text = masters.written(masters.masters()["20-1"])
    if student:
        text = text.replace("your-id", student)
    if changes:
        assert changes["old"] in text
        text = text.replace(changes["old"], changes["new"])
    masters.write(folder, {"20-1.ipynb": text})
    return folder


@pytest.fixture
def submissions(tmp_path: Path) -> Path:
    """A class of three: one right, one with a misconception, one who handed in what was given."""
    folder = tmp_path / "submissions"
    hand_in(folder / "ada", "ada")
    hand_in(folder / "bob", "bob", old="gamma * P_pi.T, mu)", new="gamma * P_pi, mu)")
    released = masters.written(masters.student_versions()["20-1"])
    masters.write(folder / "cy", {"20-1.ipynb": released})
    return folder


@needs_sandbox
def test_a_class_is_marked_and_only_what_changed_is_marked_again(
    submissions, tmp_path, monkeypatch
):
    desk = Desk(tmp_path / "desk")
    graded = grade(submissions, desk, SANDBOX)
    assert (sorted(graded.marked), graded.unchanged) == (["ada", "bob", "cy"], [])
    ada, bob, cy = desk.records()
    assert (ada.student, ada.id, ada.points) == ("ada", "ada", ALL)
    assert [*ada.texts] == ["20-1-written"]
    assert bob.points < ALL
    wrong = {result.part: result.misconception for result in bob.results}
    assert wrong["20-1-a"] in {m.name for m in PARTS["20-1-a"].misconceptions}
    assert {result.status for result in cy.results[: len(OF_20_1)]} == {"not attempted"}
    assert {result.status for result in cy.results[len(OF_20_1) :]} == {"missing"}

    # Where nothing has changed, no worker is started to find it out.
    with monkeypatch.context() as patched:
        patched.delattr("companion.grading.grade.joblib.Parallel")
        again = grade(submissions, desk, SANDBOX)
    assert (again.marked, again.unchanged) == ([], ["ada", "bob", "cy"])
    hand_in(submissions / "bob", "bob")
    assert grade(submissions, desk, SANDBOX).marked == ["bob"]
    assert [record.points for record in desk.records()] == [ALL, ALL, 0]
    assert grade(submissions / "cy", desk, SANDBOX, again=True).marked == ["cy"]


@needs_sandbox
def test_the_command_line_grades_and_writes_a_table(submissions, tmp_path, capsys):
    desk = ["--desk", str(tmp_path / "desk")]
    (submissions / "eve.ipynb").write_text("no notebook")
    hand_in(submissions / "dan", "ada")
    assert main(["grade", str(submissions), "--jobs", "1", *desk]) == 0
    shown = capsys.readouterr()
    assert "5 students marked, 0 unchanged." in shown.out
    assert "eve: eve.ipynb: it is not a notebook" in shown.err
    assert "ada, dan have the same id, ada" in shown.err
    assert "3 written answers wait" in shown.out
    with (tmp_path / "desk" / "marks.csv").open(encoding="utf-8-sig", newline="") as opened:
        rows = [*csv.reader(opened)]
    assert rows[0] == ["student", "part", "points", "max points", "status", "misconception"]
    assert len(rows) == 1 + 5 * (len(PARTS) + len(EXERCISES))
    assert rows[1] == ["ada", "20-1-a", "2", "2", "right", ""]
    assert sum(int(row[2]) for row in rows[1:] if row[0] == "ada") == ALL

    assert main(["status", *desk]) == 0
    shown = capsys.readouterr()
    possible = sum(part.points for part in PARTS.values())
    assert re.search(rf"^ada +{ALL}/{possible} +1$", shown.out, re.MULTILINE)
    assert re.search(r"^20-1-a +2 +5 +\S", shown.out, re.MULTILINE)
    assert main(["export", "--to", str(tmp_path / "other"), *desk]) == 0
    table = (tmp_path / "other" / "marks.csv").read_bytes()
    assert table == (tmp_path / "desk" / "marks.csv").read_bytes()


@needs_sandbox
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_ctrl_c_loses_nothing_and_the_next_call_goes_on(jobs, tmp_path):
    submissions, desk = tmp_path / "submissions", Desk(tmp_path / "desk")
    for number in range(8):
        hand_in(submissions / f"student-{number}", f"student-{number}")
    command = [sys.executable, "-m", "companion.grading", "grade", str(submissions)]
    process = subprocess.Popen(
        [*command, "--jobs", jobs, "--desk", str(desk.folder)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    while process.poll() is None and not desk.records():
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    _, said = process.communicate(timeout=120)
    assert process.returncode == 130, said
    assert "the same command goes on from here" in said
    kept = {record.student for record in desk.records()}
    assert 1 <= len(kept) < 8
    graded = grade(submissions, desk, Sandbox())
    assert set(graded.unchanged) == kept
    assert [record.points for record in desk.records()] == [ALL] * 8


@needs_sandbox
def test_a_cluster_of_two_workers_gives_the_same_marks(submissions, tmp_path):
    here, there = Desk(tmp_path / "here"), Desk(tmp_path / "there")
    masters.write(there.folder, {"secret": here.secret})
    grade(submissions, here, SANDBOX)
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        grade(submissions, there, SANDBOX, scheduler=cluster.scheduler_address)
    marks = [
        [(r.student, replace(result, seconds=0.0)) for r in desk.records() for result in r.results]
        for desk in (here, there)
    ]
    assert marks[0] == marks[1]
    assert len(marks[0]) == 3 * len(PARTS)


def test_without_a_sandbox_the_desk_refuses_and_says_how_to_get_one(submissions, tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "companion.grading", "grade", str(submissions)],
        cwd=ROOT,
        env=os.environ | {"PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 1
    assert "apt install bubblewrap" in done.stderr or "needs Linux" in done.stderr
    assert not (ROOT / "desk").exists()


def test_who_handed_in_what(tmp_path):
    for name in ("ada", "bob", "__MACOSX", ".hidden"):
        (tmp_path / name).mkdir()
    for name in ("bob.zip", "cy.ipynb", "notes.txt", "20-1.ipynb"):
        (tmp_path / name).touch()
    (tmp_path / "link").symlink_to("/etc")
    found = {name: one.path.name for name, one in hand_ins(tmp_path).items()}
    assert found == {
        "20-1": "20-1.ipynb",
        "ada": "ada",
        "bob": "bob",
        "bob.zip": "bob.zip",
        "cy": "cy.ipynb",
    }
    assert hand_ins(tmp_path / "cy.ipynb") == {"cy": HandIn(tmp_path / "cy.ipynb")}
    for exercise in EXERCISES:
        (tmp_path / "ada" / f"{exercise}.ipynb").touch()
    assert hand_ins(tmp_path / "ada") == {"ada": HandIn(tmp_path / "ada")}
    with pytest.raises(ValueError, match="no folder, notebook or zip file"):
        hand_ins(tmp_path / "bob")
    with pytest.raises(ValueError, match="there is no such folder"):
        hand_ins(tmp_path / "nothing")


def test_the_secret_is_made_once_and_for_the_instructor_alone(tmp_path):
    one, other = Desk(tmp_path / "one"), Desk(tmp_path / "other")
    assert re.fullmatch(r"[0-9a-f]{32}", one.secret)
    assert one.secret != other.secret
    assert Desk(tmp_path / "one").secret == one.secret
    assert stat.S_IMODE((tmp_path / "one" / "secret").stat().st_mode) == 0o600
    assert (tmp_path / "one" / ".gitignore").read_text() == "*\n"  # no commit gives it away
    (tmp_path / "one" / "secret").write_text("\n")
    with pytest.raises(ValueError, match="is empty"):
        _ = Desk(tmp_path / "one").secret


@pytest.mark.parametrize("name", ["ada", "../../ada", "Ada", "A" * 250, "\udce9", "a/b\n", "=1"])
def test_what_is_kept_comes_back_whatever_the_name(name, tmp_path):
    desk = Desk(tmp_path / "desk")
    result = PartResult("20-1-a", 0, 2, "wrong", "a name", "<b>", "\x1b[31m", 0.5)
    record = Record(name, "id", "key", [result], {"20-1-written": "proof"}, ["a problem"], ["id"])
    desk.keep(record)
    desk.keep(Record("other", "other", ""))
    assert desk.record(name) == record
    assert {one.student for one in desk.records()} == {name, "other"}
    assert {path.parent for path in tmp_path.rglob("*.*")} == {desk.students}


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"results": 1}', '{"results": [{"a": 1}]}'])
def test_a_spoilt_record_is_none_so_that_the_student_is_marked_again(text, tmp_path):
    desk = Desk(tmp_path)
    desk.keep(Record("ada", "ada", "key"))
    (file,) = desk.students.iterdir()
    file.write_text(text)
    assert desk.record("ada") is None
    assert desk.records() == []


def test_keys_change_with_all_that_marks_depend_on(tmp_path):
    keys = {
        marking_key(secret, settings, texts)
        for secret in "ab"
        for settings in ("safe", "unsafe")
        for texts in (["one", "two"], ["onetwo"], ["two", "one"])
    }
    assert len(keys) == 12
    ada = HandIn(hand_in(tmp_path / "ada"))
    first = hand_in_key(ada, "key")
    assert hand_in_key(ada, "key") == first != hand_in_key(ada, "other")
    file = tmp_path / "ada" / "20-1.ipynb"
    file.rename(file.with_name("renamed.ipynb"))
    assert hand_in_key(ada, "key") != first


def test_what_goes_wrong_with_one_student_is_a_problem_of_that_one(tmp_path):
    marking = Marking(masters.released(), "", SANDBOX)  # no secret: the marker refuses
    record = marking.student("ada", HandIn(hand_in(tmp_path / "ada")))
    assert (record.key, record.results) == ("", ())
    assert record.problems[0].startswith("could not be marked: ValueError: secret")


@needs_sandbox
@pytest.mark.parametrize("fails", ["mark", "hand_in_key"])
def test_who_can_not_be_marked_again_keeps_the_marks_from_before(fails, tmp_path, monkeypatch):
    """A disk that fails erases nothing, costs no one else anything, and is tried again."""
    submissions, desk = tmp_path / "submissions", Desk(tmp_path / "desk")
    hand_in(submissions / "ada", "ada")
    grade(submissions, desk, SANDBOX, jobs=1)
    (before,) = desk.records()
    hand_in(submissions / "ada", "ada", old="gamma * P_pi.T, mu)", new="gamma * P_pi, mu)")

    def failing(*arguments):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(f"companion.grading.grade.{fails}", failing)
        for _ in range(2):
            assert grade(submissions, desk, SANDBOX, jobs=1).marked == ["ada"]
            (kept,) = desk.records()
            assert (kept.key, kept.points, kept.texts) == ("", ALL, before.texts)
            (problem,) = kept.problems
            assert problem.endswith("No space left on device; the marks are those from before")
    assert grade(submissions, desk, SANDBOX, jobs=1).marked == ["ada"]
    (after,) = desk.records()
    assert after.points < ALL
    assert after.problems == []


def test_students_with_one_id_are_named():
    records = [Record("a", "x", ""), Record("b", "y", ""), Record("c", "x", "")]
    assert same_id(records) == {"x": ["a", "c"]}


def test_nothing_marked_yet_says_what_to_do(tmp_path, capsys):
    for command in ("status", "export", "feedback", "summary"):
        assert main([command, "--desk", str(tmp_path)]) == 1
        assert "companion-desk grade SUBMISSIONS" in capsys.readouterr().err


def test_release_by_the_command_line(tmp_path, capsys):
    assert main(["release", str(tmp_path / "handout")]) == 0
    assert f"{len(EXERCISES)} notebooks" in capsys.readouterr().out
    for file in (tmp_path / "handout").iterdir():
        assert json.loads(file.read_text())["nbformat"] == 4


def test_what_was_released_counts_and_nothing_else(tmp_path, monkeypatch, capsys):
    """The same points can be reached in every table, in the summary and on the pages."""
    monkeypatch.setattr(masters, "check_marks", list)  # which test_masters does
    desk = Desk(tmp_path / "desk")
    options = ["--desk", str(desk.folder)]
    for name in ("ada", "bob"):
        results = [PartResult(part.id, 1, part.points, "right") for part in PARTS.values()]
        texts = {"20-1-written": "A proof.", "further-2-written": "Another one."}
        desk.keep(Record(name, name, "key", results, texts))
    assert len([*enter(desk.records(), desk, default_url(desk))]) == 2

    def possible(*exercises: str) -> float:
        by_hand = {
            one.exercise: one.max_points
            for one in written(desk.records(), default_url(desk))["ada"]
        }
        parts = [p.points for p in PARTS.values() if p.id.rpartition("-")[0] in exercises]
        return sum(parts) + sum(by_hand[exercise] for exercise in exercises)

    assert main(["release", str(tmp_path / "all"), *options]) == 0
    assert not desk.released.exists()
    every = EXERCISES
    for new, counts in (([], every), (["20.2", "20-1"], every[:2]), (["20-3"], every[:3])):
        if new:
            assert main(["release", str(tmp_path / f"{new}.zip"), *new, *options]) == 0
        for command in ("export", "feedback", "summary"):
            assert main([command, *options]) == 0
        most = f"{possible(*counts):g}"
        with (desk.folder / "marks.csv").open(encoding="utf-8-sig") as opened:
            rows = [*csv.DictReader(opened)]
        assert {row["part"].rpartition("-")[0] for row in rows} == {*counts}
        for name in ("canvas", "moodle"):
            text = (desk.folder / f"{name}.csv").read_text(encoding="utf-8")
            assert text.splitlines()[1].endswith(f",{most}"), name
        assert f"2 students, {most} points" in capsys.readouterr().out
        for page in (desk.folder / "feedback").iterdir():
            assert f" of {most} points" in page.read_text(encoding="utf-8")
            assert page.read_text(encoding="utf-8").count("<h2>") == len(counts)
    assert [path.name for path in sorted((tmp_path / "all").iterdir())] == sorted(
        f"{exercise}.ipynb" for exercise in EXERCISES
    )
    with zipfile.ZipFile(tmp_path / "['20-3'].zip") as archive:
        assert archive.namelist() == ["20-3.ipynb"]
    assert main(["release", str(tmp_path / "one.zip"), "20-1", *options]) == 0
    assert "one.zip: 1 notebook with no line" in capsys.readouterr().out
    assert main(["release", str(tmp_path / "x"), "20-9", *options]) == 1
    assert "no exercise 20-9; there are 20-1, 20-2," in capsys.readouterr().err


def test_a_processor_without_a_filter_is_said(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("companion.grading.seccomp.program", lambda: None)
    assert main(["grade", str(tmp_path / "none"), "--desk", str(tmp_path / "desk")]) == 1
    assert "no filter of system calls for this processor" in capsys.readouterr().err


@pytest.mark.parametrize(
    "command",
    [[], *([word] for word in ("release", "grade", "status", "feedback", "export", "summary"))],
)
def test_help_names_every_argument(command, capsys):
    with pytest.raises(SystemExit) as stopped:
        main([*command, "--help"])
    assert stopped.value.code == 0
    assert "companion-desk" in capsys.readouterr().out


def test_the_script_is_the_module():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["scripts"]["companion-desk"] == f"{main.__module__}:main"


def test_two_gradings_of_one_desk_do_not_run_at_once(tmp_path):
    desk = Desk(tmp_path / "desk")
    with (
        desk.alone(),
        pytest.raises(ValueError, match="another `grade` is at work on this desk"),
        Desk(tmp_path / "desk").alone(),
    ):
        pass
    with desk.alone():
        pass
