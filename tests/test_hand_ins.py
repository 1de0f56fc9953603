"""Who handed in what, as Canvas, Moodle and others name it; and whether the ids fit."""

from __future__ import annotations

import csv
import io
import shutil
import zipfile
from pathlib import Path

import pytest

from companion.exercises import EXERCISES
from companion.grading import masters
from companion.grading.__main__ import main
from companion.grading.collect import answers
from companion.grading.desk import Desk, Record
from companion.grading.export import write_all
from companion.grading.hand_ins import HandIn, hand_ins
from companion.grading.lms import canvas_file
from companion.grading.marker import PartResult
from companion.grading.roster import misfits, read_roster, squeezed
from companion.grading.sandbox import available

needs_sandbox = pytest.mark.skipif(available() is not None, reason=str(available()))
CANVAS_LIST = """\
Student,ID,SIS User ID,SIS Login ID,Section,Chapter 20 (9)
    Points Possible,,,,,129
"Doe, Jane",12345,s001,jdoe,A,
"Ng, Bob",12346,s002,bng,A,
"Ng, Bob",12347,s003,bng2,A,
"Roe, Cy",12348,s004,croe,A,7
"""


@pytest.fixture(scope="module")
def solved() -> dict[str, str]:
    """The masters of two exercises, as a student would hand them in."""
    return {name: masters.written(masters.masters()[name]) for name in ("20-1", "20-2")}


@pytest.fixture
def flat(solved: dict[str, str], tmp_path: Path) -> Path:
    """Canvas's download: two students of one name, one late and with an older attempt."""
    folder = tmp_path / "submissions"
    released = masters.written(masters.student_versions()["20-1"])
    masters.write(
        folder,
        {
            "ngbob_12346_901_20-1.ipynb": solved["20-1"].replace("your-id", "bng"),
            "ngbob_12346_902_20-2.ipynb": solved["20-2"].replace("your-id", "bgn"),
            "ngbob_LATE_12347_903_20-1.ipynb": released,
            "ngbob_LATE_12347_904_20-1-1.ipynb": solved["20-1"].replace("your-id", "bng"),
            "doejane_12345_905_notes.txt": "The proof is on paper.",
        },
    )
    return folder


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("doejane_12345_67890_20-1.ipynb", ("doejane_12345", 67890, "20-1.ipynb")),
        ("doejane_LATE_12345_67890_20-1-1.ipynb", ("doejane_12345", 67890, "20-1-1.ipynb")),
        ("doejane_late_12345_67890_x.zip", ("doejane_12345", 67890, "x.zip")),
        ("van_der_berg_1_2_a_3_4_b.ipynb", ("van_der_berg_1", 2, "a_3_4_b.ipynb")),
        ("m\u00fcllerjo_1_2_x.ipynb", ("m\u00fcllerjo_1", 2, "x.ipynb")),
        ("anon_aB3x9_67890_20-1.ipynb", ("anon_aB3x9", 67890, "20-1.ipynb")),
        ("20-1.ipynb", None),
        ("further-1.ipynb", None),
        ("doejane_20-1.ipynb", None),
        ("doejane_12345_20-1.ipynb", None),
    ],
)
def test_names_of_canvas(name, expected):
    assert canvas_file(name) == expected


def test_canvas_flat_folder_and_zip_file_are_one_hand_in_per_student(flat):
    expected = {
        "doejane_12345": ["notes.txt"],
        "ngbob_12346": ["20-1.ipynb", "20-2.ipynb"],
        "ngbob_12347": ["20-1.ipynb", "ngbob_LATE_12347_903_20-1.ipynb"],
    }
    found = hand_ins(flat)
    assert {student: sorted(one.files.values()) for student, one in found.items()} == expected
    assert found["ngbob_12347"].files["ngbob_LATE_12347_904_20-1-1.ipynb"] == "20-1.ipynb"

    archive = Path(shutil.make_archive(str(flat.parent / "download"), "zip", flat))
    zipped = hand_ins(archive)
    assert {**zipped} == {
        name: HandIn(archive, one.files, canvas=True)
        for name, one in found.items()
        if name != "doejane_12345"
    }
    assert found["doejane_12345"].canvas
    released = masters.released()
    for student, one in zipped.items():
        here = answers(flat, released, masters.NAMES, found[student].files)
        assert answers(archive, released, masters.NAMES, one.files) == here
        assert here.problems == ()
    assert here.typed == ["bng"]  # in the second attempt; nothing in the first
    nothing = answers(flat, released, masters.NAMES, found["doejane_12345"].files)
    assert nothing.typed == []
    assert len(nothing.problems) == 1


def test_moodles_zip_file_is_a_class_and_a_students_own_is_one_student(solved, tmp_path):
    moodle, own = tmp_path / "moodle.zip", tmp_path / "eve.zip"
    with zipfile.ZipFile(moodle, "w") as archive:
        for student in ("Ada Lovelace_11", "Bob Ng_12"):
            archive.writestr(f"{student}_assignsubmission_file/20-1.ipynb", solved["20-1"])
    with zipfile.ZipFile(own, "w") as archive:
        archive.writestr("my work/20-1.ipynb", solved["20-1"])
        archive.writestr("my work/20-2.ipynb", solved["20-2"])
    found = hand_ins(moodle)
    assert list(found) == [f"{n}_assignsubmission_file" for n in ("Ada Lovelace_11", "Bob Ng_12")]
    assert next(iter(found.values())).files == {
        "Ada Lovelace_11_assignsubmission_file/20-1.ipynb": "20-1.ipynb"
    }
    assert hand_ins(own) == {"eve": HandIn(own)}


def test_a_zip_file_within_canvas_zip_file(solved, tmp_path):
    inner, outer = tmp_path / "inner.zip", tmp_path / "outer.zip"
    with zipfile.ZipFile(inner, "w") as archive:
        archive.writestr("20-1.ipynb", solved["20-1"].replace("your-id", "ada"))
    with zipfile.ZipFile(outer, "w") as archive:
        archive.write(inner, "doejane_1_2_all.zip")
    (one,) = hand_ins(outer).values()
    found = answers(outer, masters.released(), masters.NAMES, one.files)
    assert (found.ids, found.problems) == ({"20-1": "ada"}, ())


def test_a_link_among_canvas_files_is_not_followed(flat):
    (flat / "eve_1_2_20-1.ipynb").symlink_to(flat / "ngbob_12346_901_20-1.ipynb")
    assert "eve_1" not in hand_ins(flat)


@needs_sandbox
def test_a_wrong_id_loses_nothing_and_is_reported(flat, tmp_path, capsys):
    """Marks go by Canvas's number, own numbers by what was typed, notebook by notebook."""
    roster = tmp_path / "grades.csv"
    roster.write_text(CANVAS_LIST, encoding="utf-8")
    desk = ["--desk", str(tmp_path / "desk"), "--jobs", "1"]
    assert main(["grade", str(flat), "--roster", str(roster), *desk]) == 0
    said = capsys.readouterr().err
    jane, one, other = Desk(tmp_path / "desk").records()
    assert (jane.student, jane.points) == ("doejane_12345", 0)
    of_both = [r for r in one.results if r.part.startswith(("20-1-", "20-2-"))]
    assert one.typed == ["bng", "bgn"]
    assert {r.status for r in of_both} == {"right"}
    assert other.points == sum(r.max_points for r in of_both if r.part.startswith("20-1-"))
    assert "ngbob_12346: typed several ids (bng, bgn); each notebook counts with its own" in said
    assert "ngbob_12346: typed the id bgn, which is not on the roster," in said
    assert "ngbob_12347: typed the id bng, which is Ng, Bob's on the roster," in said
    assert "ngbob_12346, ngbob_12347 have the same id, bng" in said
    assert "handed in nothing: Roe, Cy\n" in said
    with (tmp_path / "desk" / "canvas.csv").open(encoding="utf-8-sig", newline="") as opened:
        rows = [*csv.reader(opened)]
    assert [row[:2] for row in rows[2:]] == [
        ["Doe, Jane", "12345"],
        ["Ng, Bob", "12346"],
        ["Ng, Bob", "12347"],
        ["Roe, Cy", "12348"],
    ]
    assert main(["status", "--desk", str(tmp_path / "desk")]) == 0  # the roster was kept
    assert "which is not on the roster" in capsys.readouterr().err


def record(student: str, *typed: str, canvas: bool = False) -> Record:
    """A student who has tried a part and typed in some ids."""
    result = PartResult("20-1-a", 2, 2, "right")
    return Record(student, [*typed, student][0], "key", [result], {}, [], list(typed), canvas)


def test_ids_against_the_names_of_hand_ins_where_there_is_no_roster():
    fits = [
        record("ada", "Ada"),
        record("Bob Ng_4_assignsubmission_file", "bng"),
        record("ngbob_12346", "bng2", canvas=True),
        record("roe_7"),
    ]
    assert misfits(fits, None) == ["roe_7: no id was typed in; the numbers derive from roe_7"]
    (line,) = misfits([record("ada", "adda")], None)
    assert line == "ada: typed the id adda and is marked with that one's numbers"
    lines = misfits([record("ada", "ada"), record("roe_7", "ada")], None)
    assert lines[0].startswith("roe_7: typed the id ada, which is another one's,")
    assert lines[1].startswith("ada, roe_7 have the same id, ada")


@pytest.mark.parametrize(
    "text",
    [
        CANVAS_LIST,
        CANVAS_LIST.replace(",", ";").replace('"Doe; Jane"', '"Doe, Jane"'),
        "Full name\tID number\tEmail address\nJane Doe\t12345\tjdoe@uni.edu\n",
        "who,number,key\nJane Doe,12345,jdoe\n",
    ],
)
@pytest.mark.parametrize(
    "student", ["jdoe", "doejane_12345", "Jane Doe_12345_assignsubmission_file", "JDOE"]
)
def test_rosters_of_several_makers(text, student, tmp_path):
    file = tmp_path / "roster.csv"
    file.write_text("\ufeff" + text, encoding="utf-8")
    lines = misfits([record(student, "jdoe", canvas=student == "doejane_12345")], read_roster(file))
    assert [line for line in lines if "nothing" not in line] == []
    assert "7" not in {key for row in read_roster(file) for key in row.keys}  # a grade is no id


def test_a_name_that_two_have_is_no_ones(tmp_path):
    file = tmp_path / "roster.csv"
    file.write_text(CANVAS_LIST, encoding="utf-8")
    roster = read_roster(file)
    assert misfits([record("ngbob", "bng")], roster)[0] == "ngbob: is 2 times on the roster"
    assert misfits([record("eve", "eve")], roster)[0] == "eve: is not on the roster"
    assert squeezed("Ng, Bob") in roster[1].keys & roster[2].keys


@pytest.mark.parametrize("raw", [b"", b"ID\n", b"ID,Name\n,\n", b"ID\n\xff\xfe\n"])
def test_a_roster_of_nobody_is_refused(raw, tmp_path, capsys):
    (tmp_path / "roster.csv").write_bytes(raw)
    with pytest.raises(ValueError, match=r"roster (holds nobody|must be)"):
        read_roster(tmp_path / "roster.csv")


def test_a_roster_that_is_not_there_is_named_in_a_sentence(tmp_path, capsys):
    options = ["--roster", str(tmp_path / "nosuch.csv"), "--desk", str(tmp_path / "desk")]
    assert main(["grade", str(tmp_path), *options]) == 1
    assert f"{tmp_path / 'nosuch.csv'}: there is no such roster\n" in capsys.readouterr().err


def test_further_attempts_keep_their_names(tmp_path):
    for exercise in EXERCISES:
        masters.write(tmp_path, {f"roe_1_{len(exercise)}_{exercise}-2.ipynb": "{}"})
    (one,) = hand_ins(tmp_path).values()
    assert sorted(one.files.values()) == sorted(f"{exercise}.ipynb" for exercise in EXERCISES)


def test_canvas_students_by_number(tmp_path):
    """Only what Canvas named ends with its number; student_01 in a folder is a login."""
    records = [record("doejane_12345", "x", canvas=True), record("student_01", "student_01")]
    _, canvas, _ = write_all(records, {}, tmp_path)
    with canvas.open(encoding="utf-8-sig", newline="") as opened:
        rows = [*csv.reader(opened)]
    assert rows[2:] == [
        ["doejane", "12345", "", "", "", "2"],
        ["student_01", "", "", "student_01", "", "2"],
    ]


def lms_rows(roster: str, records: list[Record], folder: Path) -> list[list[list[str]]]:
    """The rows of canvas.csv and moodle.csv below their heads."""
    (folder / "roster.csv").write_text(roster, encoding="utf-8")
    _, *files = write_all(records, {}, folder, read_roster(folder / "roster.csv"))
    tables = [[*csv.reader(io.StringIO(file.read_text(encoding="utf-8-sig")))] for file in files]
    return [tables[0][2:], tables[1][1:]]


def test_tables_take_names_and_numbers_from_the_roster(tmp_path):
    """Who handed in nothing has a row with 0 points; who is not on the roster keeps the name."""
    by_hand = "name,login,email\nAnna A,anna,anna@x.org\nBo B,bo,bo@x.org\n"
    canvas, moodle = lms_rows(by_hand, [record("anna"), record("eve")], tmp_path)
    assert canvas == [
        ["Anna A", "", "", "anna", "", "2"],
        ["eve", "", "", "eve", "", "2"],
        ["Bo B", "", "", "bo", "", "0"],
    ]
    assert [row[:3] for row in moodle] == [["", "Anna A", "2"], ["", "eve", "2"], ["", "Bo B", "0"]]
    canvas_list = """Student,ID,SIS User ID,SIS Login ID,Section
    Points Possible,,,,
"Doe, Jane",12345,U1,jdoe,Monday
"""
    (row,), _ = lms_rows(canvas_list, [record("doejane_12345", canvas=True)], tmp_path)
    assert row == ["Doe, Jane", "12345", "U1", "jdoe", "Monday", "2"]
    moodle_list = "First name,Last name,ID number,Email address\nCy,Roe,7,cyroe@x.org\n"
    _, (row,) = lms_rows(moodle_list, [record("Cy Roe_4_assignsubmission_file")], tmp_path)
    assert row[:3] == ["Participant 4", "Cy Roe", "2"]


def test_a_name_that_ends_with_a_number_is_nobodys_number_elsewhere(tmp_path):
    masters.write(tmp_path / "class" / "group_7", {"20-1.ipynb": "{}"})
    (one,) = hand_ins(tmp_path / "class").values()
    assert not one.canvas
    (tmp_path / "roster.csv").write_text("name,id\nRoe,7\n", encoding="utf-8")
    group = record("group_7", "ada")
    assert misfits([group], read_roster(tmp_path / "roster.csv"))[0] == (
        "group_7: is not on the roster"
    )
    (line,) = misfits([group], None)
    assert line == "group_7: typed the id ada and is marked with that one's numbers"
