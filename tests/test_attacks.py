"""Every attack gets the mark that it must get, and touches nothing outside."""

import ctypes
import dataclasses
import hashlib
import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from companion.exercises.part import Misconception, Part
from companion.grading.collect import Answers, Step
from companion.grading.limits import Limits
from companion.grading.marker import PartResult, mark
from companion.grading.sandbox import Sandbox, available
from tests.attacks import Attack, answers, cells, channel, outside, patches, processes, system


def parameters(*modules: ModuleType) -> list:
    """Return the attacks of some modules, with names for their tests."""
    return [
        pytest.param(attack, id=f"{module.__name__.rpartition('.')[2]}: {attack.name}")
        for module in modules
        for attack in module.ATTACKS
    ]


QUIET = parameters(answers, cells)  # what one student could try part by part
LOUD = parameters(patches, processes, system, outside, channel)
FEWEST = 60
# A busy machine may keep an honest answer waiting for long.
LIMITS = Limits(memory_bytes=3 * 2**27, scratch_files=2000, processes=24, wall_seconds=60)
# Some attacks hang until they are stopped.
SHORT = dataclasses.replace(LIMITS, wall_seconds=3, cpu_seconds=1)
SECRET = "hidden-secret-7391"
SUBREAPER = 36  # prctl's PR_SET_CHILD_SUBREAPER

pytestmark = pytest.mark.skipif(available() is not None, reason=str(available()))


def cases(student: str, rng: np.random.Generator) -> list[dict]:
    return [{"x": rng.random(3).tolist()} for _ in range(2)]


def what_is_right(x):
    return 2 * x


HALVED = Misconception("half of it", "Which way round?", lambda x: x / 2)
BEFORE, DOUBLE, AFTER = (
    Part(name, 1, "Double", "function", name, cases, what_is_right, (HALVED,))
    for name in ("before", "double", "after")
)


class Outside:
    """What an attack must not touch: files, a listener, processes."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.files = {
            name: folder / "home" / path
            for name, path in {
                "GRADEBOOK": "course/gradebook.db",
                "MASTER": "course/source/20-1.ipynb",
                "OTHER": "course/submitted/bob/20-1.ipynb",
            }.items()
        }
        for path in self.files.values():
            path.parent.mkdir(parents=True)
            path.write_text(f"{path.name}: CANARY")
        self.listeners = [socket.create_server(("127.0.0.1", 0)), socket.socket(socket.AF_UNIX)]
        self.port = self.listeners[0].getsockname()[1]
        self.listeners[1].bind(f"\0companion-{self.port}")
        self.listeners[1].listen()
        self.datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.datagrams.bind(("127.0.0.1", self.port))
        for listener in [*self.listeners, self.datagrams]:
            listener.setblocking(False)

    def told(self) -> str:
        """Return what an attack is told about the outside."""
        known = {name: str(path) for name, path in self.files.items()} | {"HOME": str(self.home)}
        return "".join(f"{name} = {value!r}; " for name, value in known.items()) + (
            f"PORT = {self.port}"
        )

    def state(self) -> dict[str, str]:
        """Return the contents of all files."""
        return {
            str(path): hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "folder"
            for path in sorted(self.home.rglob("*"))
        }

    def called(self) -> bool:
        """Say whether anyone has connected or sent a datagram."""
        for listen in (*(listener.accept for listener in self.listeners), self.receive):
            try:
                listen()
            except BlockingIOError:
                continue
            return True
        return False

    def receive(self) -> None:
        """Take a datagram."""
        self.datagrams.recv(1)


def descendants() -> list[int]:
    """Return the processes that come from this one; orphans among them are its children."""
    parents = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                state = Path("/proc", name, "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            parents[int(name)] = int(state[1])
    found = {os.getpid()}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return sorted(found - {os.getpid()})


@pytest.fixture(scope="module")
def outside_world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outside]:
    """A home with a gradebook, a master and another student's work, and someone who listens."""
    world = Outside(tmp_path_factory.mktemp("outside"))
    ctypes.CDLL(None).prctl(SUBREAPER, 1, 0, 0, 0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(world.home))
        patch.setenv("CANARY", "CANARY")
        patch.chdir(world.home)
        yield world
    for listener in [*world.listeners, world.datagrams]:
        listener.close()


def step(name: str, attack: str, world: Outside) -> Step:
    """Return an attack's cell; what must be its first line stays the first."""
    told = "" if attack.startswith(("%%", "    ", "from __future__")) else world.told() + "\n"
    return Step(name, True, (told + attack,))


@pytest.fixture(scope="module")
def together(outside_world: Outside) -> dict[str, PartResult]:
    """The results of all quiet attacks in one student's notebooks, by their names."""
    attacks = [parameter.values[0] for parameter in QUIET]
    parts = [dataclasses.replace(DOUBLE, id=attack.name) for attack in attacks]
    exercises = {a.name: (step(a.name, a.cell, outside_world),) for a in attacks}
    return {result.part: result for result in marked(exercises, parts, outside_world, LIMITS)}


def marked(
    exercises: dict[str, tuple[Step, ...]], parts: list[Part], world: Outside, limits: Limits
) -> list[PartResult]:
    """Mark attacks after an honest answer and before another, and look what they touched."""
    before = world.state()
    inner = Step(BEFORE.id, True, ("def before(x):\n    return [2 * v for v in x]\n",))
    after = Step(AFTER.id, True, ("def after(x):\n    return x + x\n",))
    last = list(exercises)[-1]
    steps = {"honest": (inner,)} | exercises | {last: (*exercises[last], after)}
    first, *results, end = mark(
        Answers(steps, {}, {}), [BEFORE, *parts, AFTER], "eve", SECRET, Sandbox(limits)
    )
    assert first.status == "right", first
    assert end.status == "right", end
    assert world.state() == before
    assert not world.called()
    wait_for(lambda: not descendants())
    return results


@pytest.mark.parametrize("attack", QUIET)
def test_quiet_attack(attack: Attack, together: dict[str, PartResult]) -> None:
    as_it_must(attack, together[attack.name])


@pytest.mark.parametrize("attack", LOUD)
def test_loud_attack(attack: Attack, outside_world: Outside) -> None:
    steps = {"attack": (step(DOUBLE.id, attack.cell, outside_world),)}
    limits = SHORT if "timeout" in attack.status else LIMITS
    (result,) = marked(steps, [DOUBLE], outside_world, limits)
    as_it_must(attack, result)


def as_it_must(attack: Attack, result: PartResult) -> None:
    """Hold a result against what an attack must get."""
    assert result.status in attack.status.split("|"), result
    assert result.points == (result.status == "right")
    assert attack.message in result.message, result
    assert attack.printed in result.printed, result
    assert_nothing_told(result)


def assert_nothing_told(result: PartResult) -> None:
    """No hidden case, no expected value and no terminal code may be in what a student sees."""
    part = dataclasses.replace(DOUBLE, id=result.part)
    hidden = [x for case in part.draw("eve", SECRET) for x in case["x"]]
    text = result.message + result.printed
    assert not [x for x in hidden if str(x) in text or str(2 * x) in text]
    assert "\x1b" not in result.message
    assert len(result.message) < 1000


def wait_for(condition) -> None:
    """The kernel ends what a killed namespace held a moment later."""
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, descendants()
        time.sleep(0.01)
        reap()


def reap() -> None:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def test_there_are_enough_attacks() -> None:
    assert len(QUIET + LOUD) >= FEWEST
