"""Answers are found in whatever was handed in, and nothing outside of it is read."""

import io
import json
import os
import struct
import time
import tracemalloc
import zipfile
from pathlib import Path

import pytest

from companion.grading import collect, files, masters, notebook
from companion.grading.collect import Answers, Step, answers
from companion.grading.definitions import defined
from companion.grading.notebook import Unreadable, read

STUB_A = "def double(x):\n    raise NotImplementedError()"
STUB_B = "gain = ..."
SETUP = "import numpy as np"
HALF = "def double(x):\n    return x / 2"
DOUBLE = "def double(x):\n    return 2 * x"
GAIN = "gain = double(2.0)"
TEXT = "*Your answer.*"
PROOF = "The sum telescopes."
NAMES = {"20-1-a": "double", "20-1-b": "gain"}


def cell(source: str, grade_id: str | None = None, kind: str = "code", **more: object) -> dict:
    """Return a cell as it stands in a file; a name makes it an answer's."""
    graded = {"grade": kind != "code", "solution": True} | more
    metadata = {"nbgrader": {"grade_id": grade_id, "schema_version": 3} | graded}
    return {"cell_type": kind, "source": source, "metadata": metadata if grade_id else {}}


def file(*cells: dict, **more: object) -> bytes:
    """Return a notebook of some cells."""
    return json.dumps({"cells": cells, "nbformat": 4, "nbformat_minor": 5} | more).encode()


def with_ids(raw: bytes) -> bytes:
    """Return a notebook whose cells are numbered by the format's own ids."""
    content = json.loads(raw)
    for k, one in enumerate(content["cells"]):
        one["id"] = f"cell-{k}"
    return json.dumps(content).encode()


def without_names(raw: bytes) -> bytes:
    """Return a notebook without nbgrader's metadata."""
    content = json.loads(raw)
    for one in content["cells"]:
        one["metadata"] = {}
    return json.dumps(content).encode()


RELEASED_FILE = with_ids(
    file(
        cell("# Exercise 20.1", kind="markdown"),
        cell('student = "your-id"', "student"),
        cell(SETUP),
        cell(STUB_A, "20-1-a"),
        cell("check('20-1-a', double, student)", "20-1-a-check", solution=False, grade=True),
        cell(STUB_B, "20-1-b"),
        cell(TEXT, "20-1-written", kind="markdown"),
    )
)
RELEASED = {"20-1": read(RELEASED_FILE)}
STUDENT = cell('student = "ada"', "student")
A, B = cell(DOUBLE, "20-1-a"), cell(GAIN, "20-1-b")
WRITTEN = cell(PROOF, "20-1-written", kind="markdown")
WHOLE = file(STUDENT, cell(SETUP), A, B, WRITTEN)


def found(raw: bytes, folder: Path, name: str = "20-1.ipynb") -> Answers:
    """Return what is found in one file."""
    path = folder / name
    path.write_bytes(raw)
    return answers(path, RELEASED, NAMES)


def pieces(result: Answers) -> dict[str, str | None]:
    """Return what the student wrote for a and b; None where nothing was found."""
    own = {step.id: "\n".join(step.pieces) for step in result.steps["20-1"] if step.own}
    return {name: own.get(name) for name in NAMES}


COMPLETE = {"20-1-a": DOUBLE, "20-1-b": GAIN}


def test_answers_come_in_the_released_order_with_the_released_cells(tmp_path):
    result = found(WHOLE, tmp_path)
    assert result.steps["20-1"] == (
        Step("student", True, ('student = "ada"',)),
        Step("cell 3", False, (SETUP,)),
        Step("20-1-a", True, (DOUBLE,)),
        Step("20-1-b", True, (GAIN,)),
    )
    assert result.texts == {"20-1-written": PROOF}
    assert (result.ids, result.typed) == ({"20-1": "ada"}, ["ada"])
    assert result.problems == ()


def test_a_notebook_as_released_holds_no_answer(tmp_path):
    result = found(RELEASED_FILE, tmp_path)
    assert pieces(result) == {"20-1-a": None, "20-1-b": None}
    assert [step.id for step in result.steps["20-1"]] == ["student", "cell 3", "20-1-a", "20-1-b"]
    assert result.texts == {}
    assert result.typed == []


def head_and_tail(cut: int) -> list[dict]:
    return [cell(DOUBLE[:cut], "20-1-a"), cell(DOUBLE[cut:], "20-1-a")]


CHECK = cell("check = print", "20-1-a-check", solution=False, grade=True)
EDITED = {
    "complete": WHOLE,
    "reordered": file(B, WRITTEN, A, STUDENT),
    "only the answers": file(A, B),
    "edited checks": file(STUDENT, cell("import os; os._exit(1)"), A, CHECK, B),
    "another kernel": file(STUDENT, A, B, metadata={"kernelspec": {"name": "ir"}}),
    "metadata that is no mapping": file(STUDENT, A, B, metadata="none"),
    "answers as markdown": file(A | {"cell_type": "markdown"}, B | {"cell_type": "raw"}),
    "answers of an unknown kind": file(A | {"cell_type": 7}, B),
    "lists of lines": file(A | {"source": DOUBLE.splitlines(keepends=True)}, B),
    "copied with the released text left behind": file(
        A, cell(STUB_A, "20-1-a"), B, cell(STUB_B, "20-1-b")
    ),
    "copied with empty cells": file(A, cell("  \n", "20-1-a"), B, cell("", "20-1-b")),
    "no names": without_names(file(STUDENT, A, B)),
    "no names, in other cells": file(cell(STUB_A, "20-1-a"), cell(DOUBLE), cell(GAIN)),
    "names of another course": file(
        cell(DOUBLE, "hw1-q1"), cell(GAIN, "hw1-q2"), STUDENT, cell(STUB_A, "20-1-a")
    ),
    "both in one cell": file(STUDENT, cell(f"{DOUBLE}\n{GAIN}", "20-1-a")),
}
EDITED |= {
    "UTF-8 with a byte order mark": b"\xef\xbb\xbf" + WHOLE,
    "UTF-16": WHOLE.decode().encode("utf-16"),
    "UTF-16, most significant first": b"\xfe\xff" + WHOLE.decode().encode("utf-16-be"),
    "UTF-32": WHOLE.decode().encode("utf-32"),
    "a byte that is no text": WHOLE.replace(b"telescopes", b"tele\xffscopes"),
    "numbers that are none": WHOLE[:-1] + b', "x": NaN, "y": ' + b"9" * 4000 + b"}",
}


@pytest.mark.parametrize("name", EDITED)
def test_edits_lose_no_answer(name, tmp_path):
    result = pieces(found(EDITED[name], tmp_path))
    if name == "both in one cell":
        assert result == {"20-1-a": f"{DOUBLE}\n{GAIN}", "20-1-b": f"{DOUBLE}\n{GAIN}"}
    else:
        assert result == COMPLETE


@pytest.mark.parametrize("cut", [0, 5, 14, 15, 19, len(DOUBLE)])
def test_a_split_cell_is_whole_again(cut, tmp_path):
    result = found(file(STUDENT, *head_and_tail(cut), B), tmp_path)
    (step,) = [step for step in result.steps["20-1"] if step.id == "20-1-a"]
    assert "".join(step.pieces) == DOUBLE


def test_of_two_versions_the_later_one_is_defined_last(tmp_path):
    result = found(file(cell(HALF, "20-1-a"), A, B), tmp_path)
    assert pieces(result)["20-1-a"] == f"{HALF}\n{DOUBLE}"


@pytest.mark.parametrize("missing", NAMES)
def test_a_deleted_cell_costs_itself_alone(missing, tmp_path):
    kept = [one for one in (A, B) if one["metadata"]["nbgrader"]["grade_id"] != missing]
    result = found(file(STUDENT, *kept), tmp_path)
    assert pieces(result) == COMPLETE | {missing: None}
    assert missing not in [step.id for step in result.steps["20-1"]]


def test_cells_are_found_by_the_formats_ids(tmp_path):
    """Where a tool has dropped nbgrader's metadata, and the answer is not known by its name."""
    changed = RELEASED_FILE.replace(json.dumps(STUB_A).encode(), b'"double = lambda x: x + x"')
    result = answers_of(without_names(changed), tmp_path, names={})
    assert pieces(result)["20-1-a"] == "double = lambda x: x + x"


def answers_of(raw: bytes, folder: Path, names: dict[str, str]) -> Answers:
    (folder / "20-1.ipynb").write_bytes(raw)
    return answers(folder, RELEASED, names)


def test_format_3(tmp_path):
    def old(one: dict) -> dict:
        return {"cell_type": "code", "input": one["source"], "metadata": one["metadata"]}

    content = {"nbformat": 3, "worksheets": [{"cells": [old(A)]}, {"cells": [old(B)]}, 7]}
    assert pieces(found(json.dumps(content).encode(), tmp_path)) == COMPLETE


def test_other_cells_are_kept_for_what_they_define(tmp_path):
    helper = "def helper(x):\n    return x"
    result = found(file(STUDENT, cell(SETUP), cell(helper), A, B), tmp_path)
    assert result.others["20-1"] == (helper,)


NO_NOTEBOOKS = {
    "empty": b"",
    "truncated": WHOLE[:-40],
    "text": b"def double(x): return 2 * x",
    "an image": b"\x89PNG\r\n\x1a\n" + bytes(range(256)),
    "a list": b"[]",
    "a number": b"7",
    "no cells": b"{}",
    "cells that are no list": b'{"cells": {"a": 1}}',
    "100,000 brackets": b"[" * 100_000,
    "100,000 mappings": b'{"a":' * 100_000,
    "half a byte order mark": b"\xff\xfe\x00",
    "an HTML page": b"<!DOCTYPE html><html></html>",
    "a zip file by another name": b"PK\x03\x04" + bytes(100),
}


@pytest.mark.parametrize("name", NO_NOTEBOOKS)
def test_what_is_no_notebook_is_a_problem_and_no_error(name, tmp_path):
    result = found(NO_NOTEBOOKS[name], tmp_path)
    assert pieces(result) == dict.fromkeys(NAMES)
    assert len(result.problems) == 1
    assert result.problems[0].startswith("20-1.ipynb: it is not")


def test_cells_that_are_none_are_passed_over(tmp_path):
    odd = [7, None, "text", [], {}, {"cell_type": "code"}, {"source": 7}, {"source": [1, "x"]}]
    odd += [{"source": "y", "metadata": 7}, {"source": "z", "metadata": {"nbgrader": [1]}}]
    odd += [{"source": "z", "metadata": {"nbgrader": {"grade_id": {"a": 1}, "solution": 1}}}]
    assert pieces(found(file(*odd, A, *odd, B), tmp_path)) == COMPLETE


def test_a_million_cells_take_bounded_time_and_memory(tmp_path):
    many = ",".join(['{"cell_type":"code","source":""}'] * 10**6).encode()
    raw = b'{"cells": [' + many + b"," + file(A, B)[11:]
    begin = time.process_time()
    result = found(raw, tmp_path)
    assert time.process_time() - begin < 15
    assert pieces(result) == COMPLETE or result.problems


def test_a_large_notebook_is_refused_before_it_is_parsed(tmp_path):
    tracemalloc.start()
    with pytest.raises(Unreadable, match="larger"):
        read(bytes(notebook.MOST_BYTES + 1))
    with pytest.raises(Unreadable, match="values"):
        read(b"[" + b"[]," * notebook.MOST_VALUES)
    assert tracemalloc.get_traced_memory()[1] < 2 * notebook.MOST_BYTES
    tracemalloc.stop()


def test_many_answers_with_one_name_and_long_cells(tmp_path):
    long = cell("#" * (collect.MOST_CHARACTERS + 1), "20-1-a")
    result = found(file(long, *[cell(f"x = {k}", "20-1-a") for k in range(20_000)], A, B), tmp_path)
    assert result.steps["20-1"]
    (problem,) = result.problems
    assert problem == "20-1.ipynb: a cell was left out, which has more than 1,000,000 characters"


@pytest.mark.parametrize(
    ("cells", "notebooks", "too_much"),
    [
        ([cell("\n" * 900_000)] * 17, 4, 4),
        ([cell("\n" * 900_000)] * 8, 1, 0),
        ([cell("\n" * 70_000)], 100, 0),
        ([cell("x = 1")] * 4900, 10, 6),
        ([cell("".join(f"a{10**5 * k + j}=\n" for j in range(10**5))) for k in range(8)], 1, 0),
        ([cell("import " + "a " * 499_000)] * 8, 1, 0),
        ([cell("a: " + " " * 900_000)] * 8, 1, 0),
    ],
)
def test_no_text_takes_long_to_look_through(cells, notebooks, too_much, tmp_path):
    """Each answer of each exercise is there, says nothing, and is looked for in all cells."""
    released = masters.released()
    ids = [str(one.grade_id) for some in released.values() for one in some if one.solution]
    raw = file(*cells, *[cell("", name) for name in ids])
    for k in range(notebooks):
        (tmp_path / f"{k}.ipynb").write_bytes(raw)
    begin = time.process_time()
    result = answers(tmp_path, released, masters.NAMES)
    assert time.process_time() - begin < 10
    assert len(result.problems) == too_much
    assert all("it was left out" in problem for problem in result.problems)


@pytest.mark.parametrize(
    "line",
    [
        *("f = 1", "f=1", "f: int = 1", "f : 'a' = 1", "def f(x): pass", "async  def f():"),
        *("class f:", "class f(A):", "import f", "import a.f as b", "from .a import b, f  # c"),
    ],
)
def test_a_line_that_defines_a_name(line):
    assert "f" in defined(f"x\n{line}\r\ny")
    assert "f" not in defined(f"x\n  {line}\n")


@pytest.mark.parametrize(
    "line",
    ["f == 1", "f", "f(x) = 1", "ff = 1", "def ff():", "import ff", "import a  # f", "f: int"],
)
def test_a_line_that_defines_no_such_name(line):
    assert "f" not in defined(line)


# Folders


def test_a_folder_of_a_student(tmp_path):
    inner = tmp_path / "20 Chapter" / "Exercise (1)"
    inner.mkdir(parents=True)
    (inner / "my solution FINAL (2).ipynb").write_bytes(WHOLE)
    (inner / "notes.txt").write_text("not for marking")
    (tmp_path / ".ipynb_checkpoints").mkdir()
    (tmp_path / ".ipynb_checkpoints" / "20-1.ipynb").write_bytes(file(cell(HALF, "20-1-a")))
    (tmp_path / "__MACOSX").mkdir()
    (tmp_path / "__MACOSX" / "20-1.ipynb").write_bytes(file(cell(HALF, "20-1-a")))
    result = answers(tmp_path, RELEASED, NAMES)
    assert pieces(result) == COMPLETE
    assert result.problems == ()


def test_of_two_notebooks_the_one_with_the_released_name_counts(tmp_path):
    (tmp_path / "20-1.ipynb").write_bytes(file(A))
    (tmp_path / "20-1 copy.ipynb").write_bytes(file(cell(HALF, "20-1-a"), B))
    assert pieces(answers(tmp_path, RELEASED, NAMES)) == COMPLETE


def test_an_empty_folder_and_none(tmp_path):
    for path in (tmp_path, tmp_path / "nowhere.ipynb"):
        result = answers(path, RELEASED, NAMES)
        assert pieces(result) == dict.fromkeys(NAMES)
        assert len(result.problems) == 1


def test_links_and_pipes_are_not_followed(tmp_path):
    outside = tmp_path / "outside"
    (outside / "deep").mkdir(parents=True)
    (outside / "20-1.ipynb").write_bytes(WHOLE)
    (outside / "deep" / "20-1.ipynb").write_bytes(WHOLE)
    with zipfile.ZipFile(outside / "all.zip", "w") as archive:
        archive.writestr("20-1.ipynb", WHOLE)
    inside = tmp_path / "eve"
    inside.mkdir()
    (inside / "20-1.ipynb").symlink_to(outside / "20-1.ipynb")
    (inside / "all.zip").symlink_to(outside / "all.zip")
    (inside / "folder").symlink_to(outside / "deep")
    (inside / "loop").symlink_to(inside)
    (inside / "nowhere.ipynb").symlink_to("/nonexistent")
    os.mkfifo(inside / "pipe.ipynb")
    result = answers(inside, RELEASED, NAMES)
    assert pieces(result) == dict.fromkeys(NAMES)
    assert sorted(problem.split(":")[0] for problem in result.problems) == [
        "20-1.ipynb",
        "all.zip",
        "nowhere.ipynb",
        "pipe.ipynb",
    ]


def test_a_folder_without_end(tmp_path):
    deep = tmp_path
    for _ in range(50):
        deep = deep / "d"
        deep.mkdir()
        (deep / "20-1.ipynb").write_bytes(b"{}")
    for k in range(200):
        (tmp_path / f"{k}.ipynb").write_bytes(b"{}")
    listed = list(files.notebooks(tmp_path))
    assert len(listed) == files.MOST_FILES + 1
    assert "left out" in listed[-1].problem


# Zip files


def zipped(folder: Path, members: dict[str, bytes], **more: int) -> Path:
    path = folder / "eve.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, **more) as archive:
        for name, raw in members.items():
            archive.writestr(name, raw)
    return path


@pytest.mark.parametrize(
    "name",
    [
        "20-1.ipynb",
        "eve/20-1.ipynb",
        "../../../../tmp/20-1.ipynb",
        "/etc/20-1.ipynb",
        "C:\\20-1.ipynb",
    ],
)
def test_a_zip_file_is_read_and_never_unpacked(name, tmp_path):
    inside = tmp_path / "a" / "b"
    inside.mkdir(parents=True)
    path = zipped(inside, {name: WHOLE})
    assert pieces(answers(path, RELEASED, NAMES)) == COMPLETE
    assert pieces(answers(inside, RELEASED, NAMES)) == COMPLETE
    assert [p.name for p in tmp_path.rglob("*") if p.is_file()] == ["eve.zip"]
    assert not Path("/tmp/20-1.ipynb").exists()


def problems(path: Path) -> str:
    result = answers(path, RELEASED, NAMES)
    assert pieces(result) == dict.fromkeys(NAMES)
    return "; ".join(result.problems)


def test_a_link_in_a_zip_file(tmp_path):
    link = zipfile.ZipInfo("20-1.ipynb")
    link.external_attr = 0o120777 << 16
    path = tmp_path / "eve.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(link, "/etc/passwd")
    assert "it is a link" in problems(path)


def test_a_bomb(tmp_path):
    """A gigabyte in a megabyte: no more is unpacked than a notebook may have."""
    path = tmp_path / "eve.zip"
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("20-1.ipynb", "w", force_zip64=True) as member,
    ):
        for _ in range(256):
            member.write(bytes(2**22))
    tracemalloc.start()
    assert "larger" in problems(path)
    assert tracemalloc.get_traced_memory()[1] < 4 * notebook.MOST_BYTES
    tracemalloc.stop()


def test_many_bombs(tmp_path):
    raw = bytes(notebook.MOST_BYTES)
    path = zipped(tmp_path, {f"{k}.ipynb": raw for k in range(8)})
    assert "too much" in problems(path)


def test_a_zip_file_in_a_zip_file_is_left_alone(tmp_path):
    inner = io.BytesIO()
    with zipfile.ZipFile(inner, "w") as archive:
        archive.writestr("20-1.ipynb", WHOLE)
    assert "no notebook" in problems(zipped(tmp_path, {"inner.zip": inner.getvalue()}))


def test_a_zip_file_of_many_names(tmp_path):
    path = zipped(tmp_path, {f"{k}.txt": b"" for k in range(files.MOST_ENTRIES + 1)})
    assert "files" in problems(path)


def test_a_zip_file_that_lies_about_its_contents(tmp_path):
    path = zipped(tmp_path, {"20-1.ipynb": WHOLE})
    raw = path.read_bytes()
    end = raw.rfind(b"PK\x05\x06")
    lies = {
        "a table of 4 GB": struct.pack("<4s4H2IH", b"PK\x05\x06", 0, 0, 1, 1, 2**32 - 1, 0, 0),
        "a table elsewhere": struct.pack("<4s4H2IH", b"PK\x05\x06", 0, 0, 1, 1, 46, 2**31, 0),
        "nothing": b"PK\x05\x06",
        "64 bits": b"PK\x06\x07" + bytes(16) + raw[end:],
    }
    for name, record in lies.items():
        path.write_bytes(raw[:end] + record)
        assert problems(path), name


@pytest.mark.parametrize("at", range(0, 400, 7))
def test_a_damaged_zip_file(at, tmp_path):
    path = zipped(tmp_path, {"20-1.ipynb": WHOLE})
    raw = bytearray(path.read_bytes())
    raw[at % len(raw)] ^= 0xFF
    path.write_bytes(raw)
    result = answers(path, RELEASED, NAMES)
    assert pieces(result) == COMPLETE or result.problems


def test_other_compression_and_encryption(tmp_path):
    path = tmp_path / "eve.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("20-1.ipynb", WHOLE)
    assert "unusual" in problems(path)
    raw = bytearray(zipped(tmp_path, {"20-1.ipynb": WHOLE}).read_bytes())
    for signature, offset in ((b"PK\x01\x02", 8), (b"PK\x03\x04", 6)):
        raw[raw.find(signature) + offset] |= 1
    path.write_bytes(raw)
    assert "encrypted" in problems(path)
