"""Marks of honest and of mistaken work, on the real exercises."""

import dataclasses
import inspect
import json
import os
import re
import signal
import textwrap
import threading
import time
from pathlib import Path
from types import CodeType

import jupytext
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from companion.check import check
from companion.exercises import EXERCISES, PARTS
from companion.exercises.part import Misconception, Part
from companion.grading import marker
from companion.grading.collect import Answers, Step, answers
from companion.grading.limits import Limits
from companion.grading.marker import PartResult, mark
from companion.grading.notebook import Cell, read
from companion.grading.runs import Outcome, loaded, undefined
from companion.grading.sandbox import Sandbox, Unavailable, available
from tests import zoo

pytestmark = pytest.mark.skipif(available() is not None, reason=str(available()))

BOOK = Path(__file__).resolve().parent.parent / "book" / "exercises"
NAMES = {part.id: part.name for part in PARTS.values()}
SOLUTION = re.compile(r"^( *)### BEGIN SOLUTION\n.*?### END SOLUTION\n?", re.MULTILINE | re.DOTALL)
STUB = r"\1raise NotImplementedError()"
# A busy machine may take long to import torch.
SANDBOX = Sandbox(Limits(wall_seconds=60))


def notebook(exercise: str, solved: bool) -> bytes:
    """Return an exercise's notebook, with the master's solutions or with stubs."""
    content = jupytext.read(BOOK / f"{exercise}.md")
    for cell in content.cells:
        if not solved and cell.cell_type == "code":
            stub = "" if "= ..." in cell.source else STUB
            cell.source = SOLUTION.sub(stub, cell.source + "\n").strip()
    return json.dumps(content).encode()


@pytest.fixture(scope="module")
def released() -> dict[str, list[Cell]]:
    """The cells of the notebooks as students get them."""
    return {exercise: read(notebook(exercise, solved=False)) for exercise in EXERCISES}


def handed_in(folder: Path, solved: bool, released: dict[str, list[Cell]]) -> Answers:
    """Return what is found in a folder with all exercises."""
    for exercise in EXERCISES:
        (folder / f"{exercise}.ipynb").write_bytes(notebook(exercise, solved))
    return answers(folder, released, NAMES)


@pytest.mark.parametrize("student", ["ada", "Bob 7"])
def test_solutions_get_all_points(student, tmp_path, released):
    found = handed_in(tmp_path, True, released)
    results = mark(found, PARTS.values(), student, "s", SANDBOX)
    assert [result.part for result in results] == list(PARTS)
    assert [r for r in results if r.status != "right" or r.points != r.max_points] == []
    assert sum(r.points for r in results) == sum(part.points for part in PARTS.values())
    assert all(r.seconds > 0 and r.message == "" for r in results)


def test_what_was_released_gets_none(tmp_path, released):
    found = handed_in(tmp_path, False, released)
    results = mark(found, PARTS.values(), "ada", "s", SANDBOX)
    assert {(result.status, result.points) for result in results} == {("not attempted", 0)}


def test_nothing_handed_in(tmp_path, released):
    results = mark(answers(tmp_path, released, NAMES), PARTS.values(), "ada", "s", SANDBOX)
    assert {(result.status, result.points) for result in results} == {("missing", 0)}


def coded(animals: list[zoo.Animal]) -> list[zoo.Animal]:
    """Return those whose source stands alone: a function of the case, and no helpers."""
    return [
        animal
        for animal in animals
        if PARTS[animal.part].kind == "function"
        and inspect.isfunction(animal.answer)
        and names_in(animal.answer.__code__) & set(vars(inspect.getmodule(animal.answer)))
        <= {"np", "torch"}
        and not animal.answer.__code__.co_freevars
    ]


def names_in(code: CodeType) -> set[str]:
    """Return the names that a function and those in it look up."""
    inner = [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    return set(code.co_names).union(*map(names_in, inner))


def one_cell(part: Part, answer: object) -> Answers:
    """Return what is found where a part's cell holds a function's source."""
    source = textwrap.dedent(inspect.getsource(answer))
    source = re.sub(r"^@.*\n", "", source, flags=re.MULTILINE)
    torch = "import torch\n" if "torch" in source else ""
    cell = f"import numpy as np\n{torch}{source}\n{part.name} = {answer.__name__}\n"
    return Answers({"one": (Step(part.id, True, (cell,)),)}, {}, {})


def named(animals: list[zoo.Animal]) -> list:
    return [pytest.param(a, id=f"{a.part} {a.name}") for a in coded(animals)]


@pytest.mark.parametrize("animal", named(zoo.WRONG))
def test_the_marker_says_of_wrong_answers_what_the_self_check_says(animal):
    part = PARTS[animal.part]
    (result,) = mark(one_cell(part, animal.answer), [part], "ada", "s", SANDBOX)
    expected = check(part.id, animal.answer, "ada")
    assert (result.status, result.points) == ("wrong", 0)
    assert (result.misconception, result.message) == (expected.misconception, expected.message)


@pytest.mark.parametrize("animal", named(zoo.RIGHT))
def test_right_answers_in_other_styles_pass(animal):
    part = PARTS[animal.part]
    (result,) = mark(one_cell(part, animal.answer), [part], "ada", "s", SANDBOX)
    assert result.status == "right", result


# A small exercise of three parts


def draw(student: str, rng: np.random.Generator) -> list[dict]:
    return [{"x": rng.random(3).tolist()} for _ in range(2)]


HALVED = Misconception("half of it", "Which way round?", lambda x: x / 2)
A, B, C = (
    Part(f"1-{name}", 2, "Double", "function", name, draw, lambda x: 2 * x, (HALVED,))
    for name in "abc"
)
OWN = Part("1-own", 1, "Own", "numbers", "own", lambda s, rng: draw(s, rng)[:1], lambda x: x, ())
GOOD = {f"1-{name}": f"def {name}(x):\n    return 2 * x" for name in "abc"}


def three(*others: str, sandbox: Sandbox = SANDBOX, **cells: str) -> list[PartResult]:
    """Mark three parts, with cells in place of the right ones."""
    texts = GOOD | {f"1-{name}": text for name, text in cells.items()}
    steps = tuple(Step(name, True, (text,)) for name, text in texts.items())
    return mark(Answers({"1": steps}, {"1": others}, {}), [A, B, C], "ada", "s", sandbox)


def statuses(results: list[PartResult]) -> list[str]:
    return [result.status for result in results]


def test_a_part_uses_what_earlier_answers_define():
    results = three(
        a="import math\ndef a(x):\n    return twice(x)\ndef twice(x): return 2 * x",
        b="def b(x):\n    return twice(x)",
        c="def c(x):\n    return [math.fsum([v, v]) for v in x]",
    )
    assert statuses(results) == ["right"] * 3


@pytest.mark.parametrize(
    ("cell", "status"),
    [
        ("1 / 0", "error"),
        ("def a(x:", "error"),
        ("while True: pass", "timeout"),
        ("import os; os._exit(3)", "crashed"),
        ("def a(x): pass", "not attempted"),
        ("def a(x): raise NotImplementedError", "not attempted"),
        ("np = sum = len = print = None\ndef a(x): return 0", "wrong"),
        ("import numpy\nnumpy.add = None\ndef a(x): return 0", "wrong"),
    ],
)
def test_what_an_earlier_part_does_costs_no_later_one(cell, status):
    limits = Limits(wall_seconds=2, cpu_seconds=1)
    text = "import numpy as np\ndef {0}(x):\n    return np.add(x, x) + 0 * len(x)"
    results = three(a=cell, b=text.format("b"), c=text.format("c"), sandbox=Sandbox(limits))
    assert statuses(results) == [status, "right", "right"]


def test_a_cell_that_hangs_is_left_out_and_the_other_cells_are_not():
    begin = time.monotonic()
    results = three(
        a="def a(x):\n    return 2 * x\ndef helper(x):\n    return x",
        b="while True: pass",
        c="def c(x):\n    return 2 * helper(x)",
        sandbox=Sandbox(Limits(wall_seconds=2, cpu_seconds=10)),
    )
    assert statuses(results) == ["right", "timeout", "right"]
    assert time.monotonic() - begin < 40


def test_other_cells_are_run_if_an_answer_needs_them():
    others = (
        "1 / 0",
        "second = lambda x: first(x)",
        "import os\nos._exit(1)",
        "def first(x): return x",
    )
    results = three(*others, b="def b(x):\n    return 2 * second(x)")
    assert statuses(results) == ["right"] * 3
    results = three(b="def b(x):\n    return 2 * second(x)")
    assert results[1].status == "error"
    assert "NameError: name 'second' is not defined (line 2)" in results[1].message


def test_other_cells_are_looked_through_once():
    """However many names are missing, and in however many parts."""
    others = ["\n" * 900_000 + f"# {k}" for k in range(8)]
    missing = {name: f"def {name}(x):\n    return nowhere_{name}(x)" for name in "abc"}
    begin = time.process_time()
    results = three(*others, **missing)
    assert time.process_time() - begin < 5
    assert statuses(results) == ["error"] * 3


def test_misconceptions_are_named_in_hidden_cases_too():
    hard_coded = A.draw("ada")
    cell = (
        f"seen = {[case['x'] for case in hard_coded]!r}\n"
        "def a(x):\n    return 2 * x if list(x) in seen else x / 2"
    )
    result = three(a=cell)[0]
    assert (result.status, result.points) == ("wrong", 0)
    assert result.misconception == "half of it"
    assert result.message.startswith("Right in the visible cases, not in the hidden ones.")


def test_own_numbers_are_those_of_the_id_that_is_marked():
    def marked(student: str, cell: str) -> str:
        steps = (Step("student", True, ("student = 'ada'",)), Step(OWN.id, True, (cell,)))
        return mark(Answers({"1": steps}, {}, {}), [OWN], student, "s", SANDBOX)[0].status

    ada = OWN.draw("ada")[0]["x"]
    assert marked("ada", f"own = {ada}") == "right"
    assert marked("bob", f"own = {ada}") == "wrong"
    assert marked("ada", "own = ...") == "not attempted"
    assert marked("ada", "own = 'a'") == "refused"
    assert marked("ada", "other = 1") == "missing"
    bob = OWN.draw("bob")[0]["x"]
    assert marked("bob", f"own = {bob} if student == 'bob' else None") == "right"


@pytest.mark.parametrize(
    "cell",
    [
        "import numpy as np\ndef a(x): return np.float32(2) * x.astype(np.float32)",
        "def a(x): return tuple(2 * v for v in x)",
        "import torch\ndef a(x): return torch.tensor(x) * 2",
        "import torch\ndef a(x): return (torch.tensor(x, requires_grad=True) * 2)",
        "import numpy as np\ndef a(x): return [np.array(2 * v) for v in x]",
        "a = lambda x: x + x",
        "class Twice:\n    def __call__(self, x): return 2 * x\na = Twice()",
        "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()\ndef a(x): return 2 * x",
        "from scipy import linalg\ndef a(x): return linalg.solve([[0.5]], x[None])[0]",
        "import warnings\ndef a(x):\n    warnings.warn('odd')\n    return 2 * x",
    ],
)
def test_right_answers_of_every_type_pass(cell):
    assert statuses(three(a=cell)) == ["right"] * 3


def test_a_sandbox_that_is_killed_costs_no_mark():
    """Whatever brings it down: the part that ran and the ones to come get one of their own."""
    cell = "import time\ntime.sleep(1)\ndef b(x):\n    return 2 * x"
    killed = []

    def kill() -> None:
        while not killed:
            time.sleep(0.3)
            for process in children(os.getpid()):
                os.kill(process, signal.SIGKILL)
                killed.append(process)

    thread = threading.Thread(target=kill)
    thread.start()
    results = three(b=cell)
    thread.join()
    assert statuses(results) == ["right"] * 3


def children(process: int) -> list[int]:
    """Return a process's children that are bubblewrap."""
    text = Path(f"/proc/{process}/task").glob("*/children")
    found = [int(word) for file in text for word in file.read_text().split()]
    return [child for child in found if Path(f"/proc/{child}/comm").read_text() == "bwrap\n"]


@pytest.mark.parametrize("size", [3, 30, 300, 1000])
def test_no_part_finds_the_cases_of_the_part_before(size):
    """What the supervisor passed on must not stay in the memory that the next part gets."""
    cell = """
import ctypes, re
lists = re.compile(rb'"x": \\[[0-9., ]+')
found = read = 0
for line in open("/proc/self/maps"):
    start, end = (int(n, 16) for n in line.split()[0].split("-"))
    if line.split()[1].startswith("rw") and end - start < 2**26:
        text = ctypes.string_at(start, end - start)
        read += len(text)
        found += len(lists.findall(text))
print(found, read > 10**6)
def b(x): return 2 * x
"""
    parts = [dataclasses.replace(p, cases=lambda s, rng: sized(rng, size)) for p in (A, B)]
    steps = (Step("1-a", True, (GOOD["1-a"],)), Step("1-b", True, (cell,)))
    results = mark(Answers({"1": steps}, {}, {}), parts, "ada", "s", SANDBOX)
    assert statuses(results) == ["right"] * 2
    assert results[1].printed == "0 True\n"


def sized(rng: np.random.Generator, size: int) -> list[dict]:
    return [{"x": rng.random(size).tolist()} for _ in range(2)]


KEYS = ["answers", "value", "error", "nothing", "refused", "defined", "errors", "message", "1-a"]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(KEYS) | st.text(), inner),
)
REPLIES = JSON | st.fixed_dictionaries(
    {"answers": st.lists(st.fixed_dictionaries({"value": JSON}) | JSON, min_size=2, max_size=2)}
)


@given(start=JSON, replies=st.lists(REPLIES, max_size=2))
def test_whatever_comes_back_gets_a_mark(start, replies):
    """A student's code may send any JSON; the marker takes it, and never stops for it."""
    outcome = Outcome(start=start, answers=replies)
    undefined(outcome)
    assert isinstance(marker.printed(outcome), str)
    result = marker.not_defined(A, outcome)
    assert result is None or (result.points == 0 and len(result.message) < 2000)
    for reply in replies:
        result = marker.compared(A, A.draw("ada"), reply)
        assert result.points == (2 if result.status == "right" else 0)
        assert len(result.message) < 2000


@pytest.mark.parametrize(
    "text", [b"", b"{", b"\xff", b"[" * 10**5, b"9" * 10**5, b'"' + b"x" * 10, b"nul", b"1 2"]
)
def test_what_is_no_json_is_nothing(text):
    assert loaded(text) is None


@pytest.mark.parametrize("depth", range(900, 1000, 5))
def test_deep_lists_are_refused(depth):
    reply = loaded(b'{"answers": [{"value": ' + b"[" * depth + b"]" * depth + b"}, {}]}")
    assert marker.compared(A, A.draw("ada"), reply).status == "refused"


def test_students_are_told_the_limits():
    limits = Limits()
    told = (
        f"A part may compute for {limits.cpu_seconds} seconds, last {limits.wall_seconds:g} in all,"
        f" and take {limits.memory_bytes / 2**30:g} GB."
    )
    page = Path(__file__).resolve().parent.parent / "book" / "student.md"
    assert told in " ".join(page.read_text(encoding="utf-8").split())


def test_a_secret_and_an_id_are_needed():
    with pytest.raises(ValueError, match="secret"):
        mark(Answers({}, {}, {}), [], "ada", "")
    nobodys = Answers({"1": (Step("1-a", True, (GOOD["1-a"],)),)}, {}, {})
    with pytest.raises(ValueError, match="student"):
        mark(nobodys, [A], " ", "s", SANDBOX)


def test_without_a_sandbox_nothing_is_marked_unless_unsafe(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    available.cache_clear()
    try:
        with pytest.raises(Unavailable, match="apt install bubblewrap"):
            three()
        results = three(sandbox=dataclasses.replace(SANDBOX, unsafe=True))
        assert statuses(results) == ["right"] * 3
        limits = Limits(wall_seconds=2, cpu_seconds=1)
        cells = {"a": "open('left behind', 'w').write('x')\n1 / 0", "b": "while True: pass"}
        results = three(**cells, sandbox=Sandbox(limits, unsafe=True))
        assert statuses(results) == ["error", "timeout", "right"]
        assert not Path("left behind").exists()
    finally:
        available.cache_clear()
