"""What the self-check says, of whatever it is given."""

from __future__ import annotations

import itertools
import re
import time
from collections import namedtuple

import numpy as np
import pytest
import torch
from numpy.ma import masked_array

from companion.check import check
from companion.exercises import PARTS
from companion.exercises.part import arguments
from companion.exercises.plain import MOST_NUMBERS, NotPlain, plain
from tests.zoo import RIGHT, WRONG

STUDENT = "ada"
SECONDS = 1.0
RIGHT_BY_PART = {animal.part: animal for animal in RIGHT}


def answer_of(part_id: str):
    """A right answer to a part."""
    part, animal = PARTS[part_id], RIGHT_BY_PART[part_id]
    if part.kind == "function":
        return animal.answer
    return animal.answer(**arguments(part.draw(STUDENT)[0]))


def visitation(change):
    """A right answer to 20-1-a whose result is changed."""
    return lambda **case: change(np.asarray(RIGHT_BY_PART["20-1-a"].answer(**case)))


def unwritten(**case):
    raise NotImplementedError


@pytest.mark.parametrize("part_id", PARTS)
def test_what_is_not_written_yet_is_not_attempted(part_id):
    for answer in (None, ...) if PARTS[part_id].kind == "numbers" else (None, ..., unwritten):
        assert check(part_id, answer, STUDENT).status == "not attempted"


@pytest.mark.parametrize("answer", [..., "right", None])
def test_who_has_not_put_in_an_id_is_reminded_and_not_stopped(answer):
    right = answer_of("20-1-a") if answer == "right" else answer
    verdicts = [check("20-1-a", right, student) for student in ("your-id", "ada")]
    assert [verdict.status for verdict in verdicts] == [
        "right" if answer == "right" else "not attempted"
    ] * 2
    reminded = ["write your own id in place of 'your-id'" in repr(verdict) for verdict in verdicts]
    assert reminded == [True, False]


@pytest.mark.parametrize("number", [0.0, 1e-200, 1e200, 1e308, np.inf, np.nan])
@pytest.mark.parametrize("part_id", PARTS)
def test_numbers_out_of_range_bring_no_warnings(part_id, number, recwarn):
    def answer(**case):
        return np.full(shape, number)

    part = PARTS[part_id]
    shape = np.shape(part.reference(**arguments(part.draw(STUDENT)[0])))
    recwarn.clear()
    check(part_id, answer if part.kind == "function" else answer(), STUDENT)
    assert [str(one.message) for one in recwarn] == []


def test_a_function_without_return_is_told_so():
    verdict = check("20-1-a", lambda **case: None, STUDENT)
    assert (verdict.status, verdict.message) == ("not attempted", "visitation returns nothing yet.")


@pytest.mark.parametrize("part_id", PARTS)
def test_an_answer_comes_within_a_second(part_id):
    wrong = [a.answer for a in WRONG if a.part == part_id and PARTS[part_id].kind == "function"]
    check(part_id, answer_of(part_id), STUDENT)  # torch loads parts of itself at first use
    for answer in [answer_of(part_id), *wrong]:
        start = time.perf_counter()
        check(part_id, answer, STUDENT)
        assert time.perf_counter() - start < SECONDS


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda rho: rho[:, None], r"has shape \(\d, 1\); shape \(\d,\) is asked for"),
        (lambda rho: rho[1:], r"has shape \(\d,\); shape \(\d,\) is asked for"),
        (lambda rho: rho.sum(), r"has a single number; shape \(\d,\) is asked for"),
        (lambda rho: rho * np.nan, r"NaN or infinity \(a division"),
        (lambda rho: np.where(rho == rho.max(), np.inf, rho), "the answer holds NaN or infinity"),
        (lambda rho: -rho, "opposite sign"),
        (lambda rho: 1.7 * rho, "off by the same factor"),
        (lambda rho: rho + np.eye(len(rho))[2], r"entry \[2\] is too large"),
        (lambda rho: rho - np.eye(len(rho))[0], r"entry \[0\] is too small"),
        (lambda rho: 0 * rho, r"entry \[\d\] is too small"),
        (lambda rho: rho + 0j, "an array of complex128"),
        (lambda rho: rho > 0, "an array of bool"),
        (lambda rho: rho.astype(object), "an array of object"),
        (lambda rho: np.matrix(rho), "an object of type matrix"),
        (lambda rho: masked_array(rho), "an object of type MaskedArray"),
        (lambda rho: [str(x) for x in rho], "an object of type str"),
        (lambda rho: {"rho": rho}, "an object of type dict"),
        (lambda rho: (x for x in rho), "an object of type generator"),
        (lambda rho: [rho, 1.0], "numbers beside lists"),
        (lambda rho: [[1.0], [1.0, 2.0]], "rows of different length"),
        (lambda rho: [True, *rho[1:]], "a truth value"),
        (lambda rho: [10**400, *rho[1:]], "too large"),
        (lambda rho: np.zeros((200, 200)), r"an array of shape \(200, 200\)"),
        (lambda rho: [], r"has shape \(0,\)"),
    ],
)
def test_an_answer_that_cannot_be_right_is_told_why(change, said):
    verdict = check("20-1-a", visitation(change), STUDENT)
    assert verdict.status == "wrong"
    assert verdict.misconception is None
    assert re.search(said, verdict.message), verdict.message


def test_an_error_is_named_with_its_line():
    def visitation(P, gamma, mu, pi):
        rho = [0 for _ in mu]
        return gamma / rho[0]

    verdict = check("20-1-a", visitation, STUDENT)
    assert verdict.status == "wrong"
    line = visitation.__code__.co_firstlineno + 2
    assert "raised ZeroDivisionError" in verdict.message
    assert verdict.message.endswith(f"(line {line}: return gamma / rho[0]).")
    assert set(verdict.case) == {"P", "gamma", "mu", "pi"}


def test_a_name_that_is_not_there_yet_comes_with_what_to_do_and_sentences_end():
    def visitation(P, gamma, mu, pi):
        return state_values(P)  # noqa: F821

    message = check("20-1-a", visitation, "your-id").message
    assert "NameError: name 'state_values' is not defined" in message
    assert "). Run the cells above first, and the answer's own. These are nobody's" in message


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (lambda P, gamma: 1, "TypeError: .*unexpected keyword argument 'mu'"),
        (lambda **case: exit(), "SystemExit"),
        (lambda **case: visitation(plain)(**case["P"]), "TypeError"),
        (3.0, "visitation is not a function, but"),
        ([1.0], "but <class 'list'>"),
    ],
)
def test_an_answer_that_cannot_be_called_is_told_so(answer, said):
    verdict = check("20-1-a", answer, STUDENT)
    assert verdict.status == "wrong"
    assert re.search(said, verdict.message), verdict.message


def test_numbers_of_another_kind_are_told_so():
    assert "type function" in check("20-1-d", lambda: 0, STUDENT).message
    assert "is asked for" in check("20-1-d", 1.0, STUDENT).message


def test_numbers_cannot_be_found_by_trying():
    numbers = np.asarray(answer_of("20-1-d"))
    for sign in (-1, 1):
        verdict = check("20-1-d", numbers + sign * np.eye(len(numbers))[1], STUDENT)
        assert verdict.message == "The 2nd entry is not right."
    off = numbers + np.eye(len(numbers))[1] - np.eye(len(numbers))[2]
    assert check("20-1-d", off, STUDENT).message == "The 2nd entry is not right, and 1 more."


def test_another_students_numbers_are_wrong():
    assert check("20-1-d", answer_of("20-1-d"), STUDENT).status == "right"
    assert check("20-1-d", answer_of("20-1-d"), "grace").status == "wrong"


def test_the_id_counts_without_case_and_spaces():
    assert check("20-1-d", answer_of("20-1-d"), f" {STUDENT.upper()} ").status == "right"


@pytest.mark.parametrize("student", ["", "  ", None, 7])
def test_an_id_is_needed(student):
    with pytest.raises(ValueError, match="student must be your id"):
        check("20-1-a", unwritten, student)


def test_parts_are_known_by_id():
    """What is shown of the 51 parts are those of the exercise, or the exercises."""
    own = ", ".join(part for part in PARTS if part.startswith("20-1-"))
    for near in ("20-1", "20-1-z", "20.1"):
        with pytest.raises(ValueError, match=f"part_id must be one of {own}; got '{near}'$"):
            check(near, unwritten, STUDENT)
    with pytest.raises(ValueError, match=r"the exercises are 20-1, 20-2, .*further-4$"):
        check("visitation", unwritten, STUDENT)


@pytest.mark.parametrize("part_id", PARTS)
def test_nothing_that_is_shown_holds_a_number_of_the_answer(part_id, capsys):
    part = PARTS[part_id]
    answers = [a.answer for a in WRONG if a.part == part_id]
    if part.kind == "numbers":
        answers = [answer(**arguments(part.draw(STUDENT)[0])) for answer in answers]
    off = (
        (lambda **case: 1.23 * np.asarray(answer_of(part_id)(**case)))
        if (part.kind == "function")
        else 1.23 * np.asarray(answer_of(part_id))
    )
    for answer in [*answers, off, answer_of(part_id)]:
        verdict = check(part_id, answer, STUDENT)
        for shown in (repr(verdict), verdict.message, verdict._repr_html_()):
            assert not re.search(r"\d\.\d", re.sub("<.*?>", "", shown))
        assert "expected" not in vars(verdict)
        assert verdict.case is None or set(verdict.case) == set(part.draw(STUDENT)[0])
    assert capsys.readouterr().out == ""


def test_a_verdict_shows_itself_in_one_line_and_escapes_what_was_handed_in():
    def visitation(**case):
        raise ValueError("<script>")

    verdict = check("20-1-a", visitation, STUDENT)
    assert "\n" not in repr(verdict)
    assert repr(verdict).startswith("20-1-a Visitation: wrong. The answer raised ValueError")
    assert "<script>" not in verdict._repr_html_()
    assert "&lt;script&gt;" in verdict._repr_html_()


def test_plain_takes_numbers_of_every_library_by_exact_type():
    numbers = [np.float32(0.5), np.array(0.5), torch.tensor(0.5), torch.tensor([0.5], dtype=float)]
    assert [plain(number) for number in numbers] == [0.5, 0.5, 0.5, [0.5]]
    assert plain(torch.nn.Parameter(torch.ones(2, 1))) == [[1.0], [1.0]]
    assert plain([np.int8(1), (2, 3.0)][1]) == [2.0, 3.0]
    assert type(plain(np.float64(1))) is float


class Equal(float):
    """Claims to equal everything."""

    def __eq__(self, other):
        return True

    __hash__ = float.__hash__


class EveryClass(type):
    """Its classes claim to be each class that they are compared with."""

    def __eq__(cls, other):
        return True

    def __hash__(cls):
        return hash(float)


class Disguised(metaclass=EveryClass):
    """Would be the number 1.0."""

    def __float__(self):
        return 1.0


@pytest.mark.parametrize(
    "value",
    [
        Equal(1.0),
        [Equal(1.0)],
        Disguised(),
        [Disguised()],
        namedtuple("Pair", "x y")(1.0, 2.0),
        type("Array", (np.ndarray,), {})(2),
        [[[[[1.0]]]]],
        [0.0] * (MOST_NUMBERS + 1),
        np.zeros((1, 1, 1, 1, 1)),
        1j,
        "1",
        torch.tensor([True]),
        object(),
    ],
    ids=map(str, itertools.count()),
)
def test_plain_refuses_everything_else(value):
    with pytest.raises(NotPlain):
        plain(value)


def test_plain_ends_on_a_list_that_holds_itself():
    endless: list = []
    endless.append(endless)
    with pytest.raises(NotPlain, match="deep"):
        plain(endless)
