"""The sandbox by itself: what is there, what is not, and what it says where it can't be."""

import ast
import contextlib
import ctypes
import errno
import json
import os
import platform
import shutil
import signal
import struct
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from companion.exercises import EXERCISES, PARTS
from companion.grading import sandbox, seccomp, view
from companion.grading.channel import Channel, Closed, Late, TooLong
from companion.grading.limits import Limits
from companion.grading.sandbox import Sandbox, Unavailable, available

needs_sandbox = pytest.mark.skipif(available() is not None, reason=str(available()))
ROOT = Path(__file__).resolve().parent.parent
SECONDS = 60
SUBREAPER = 36  # prctl's PR_SET_CHILD_SUBREAPER


def request(cell: str) -> bytes:
    """Return the message that asks for a cell to be run."""
    job = {"steps": [{"id": "a", "own": True, "pieces": [cell]}], "name": "x"}
    return b"start\n" + json.dumps(job).encode()


def run(cell: str, limits: Limits | None = None) -> dict:
    """Return what comes of a cell."""
    with Sandbox(limits or Limits()).start() as channel:
        channel.send(request(cell), time.monotonic() + SECONDS)
        ending, _, message = channel.receive(2**20, time.monotonic() + SECONDS).partition(b"\n")
    assert ending == b"answer", (ending, message)
    return json.loads(message)


def printed(cell: str) -> str:
    """Return what a cell prints."""
    reply = run(textwrap.dedent(cell))
    assert reply["errors"] == {"a": None}
    return reply["printed"].strip()


@needs_sandbox
def test_the_same_python_and_libraries_run_inside():
    import numpy

    code = "import sys, numpy; print(sys.version, numpy.__version__)"
    assert printed(code) == f"{sys.version} {numpy.__version__}"


@needs_sandbox
def test_what_lies_inside():
    top = printed("import os; print(*sorted(os.listdir('/')))").split()
    system = {Path(path).parts[1] for path in [*view.SYSTEM, *map(str, view.sites())]}
    base = {Path(sys.base_prefix).resolve().parts[1]}
    assert set(top) <= system | base | {"dev", "proc", "scratch", "handed-out"}
    files = printed(
        """
        import os
        top = "/handed-out/companion"
        for folder, _, names in os.walk(top):
            for name in names: print(os.path.relpath(os.path.join(folder, name), top))
        """
    )
    assert set(files.split()) == set(view.VISIBLE)


def test_no_module_that_lies_inside_holds_an_answer():
    """Nor does it import one that is not there."""
    inside = {f"companion.{name[:-3]}".replace("/", ".") for name in view.VISIBLE}
    rules = [
        rule for p in PARTS.values() for rule in (p.reference, *(m.wrong for m in p.misconceptions))
    ]
    modules = {rule.__module__ for rule in rules}
    assert len(modules) >= len(EXERCISES)
    assert not modules & inside
    for name in view.VISIBLE:
        for node in ast.walk(ast.parse((view.PACKAGE / name).read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("companion"):
                names = {f"{node.module}.{alias.name}" for alias in node.names}
                assert names <= inside or {node.module} <= inside


@needs_sandbox
def test_only_the_scratch_folder_can_be_written_to():
    places = printed(
        """
        import os
        for folder, _, _ in os.walk("/"):
            if folder.startswith("/proc"): continue
            if os.access(folder, os.W_OK): print(folder)
        """
    )
    assert places == "/scratch"


@needs_sandbox
def test_the_environment_holds_what_is_put_there():
    names = printed("import os; print(*sorted(os.environ))").split()
    assert set(names) <= {*sandbox.ENVIRONMENT, "PWD", "LC_CTYPE"}


@needs_sandbox
def test_limits_are_those_that_were_set():
    limits = Limits(cpu_seconds=7, memory_bytes=2**29, processes=9, open_files=50)
    cell = """
import resource as r
kinds = (r.RLIMIT_CPU, r.RLIMIT_DATA, r.RLIMIT_NPROC, r.RLIMIT_NOFILE, r.RLIMIT_CORE)
print([r.getrlimit(kind)[0] for kind in kinds])
"""
    assert run(cell, limits)["printed"].strip() == str([7, 2**29, 9, 50, 0])


@pytest.mark.parametrize("wall_seconds", [0.5, 1000])
def test_without_a_sandbox_no_part_goes_on_after_its_end(wall_seconds, tmp_path, monkeypatch):
    """Neither one that was late nor one that is still waited for."""
    monkeypatch.setattr(sandbox, "available", lambda: "none")
    cell = f"""
        import os, subprocess, time
        with open({str(tmp_path / "ids")!r}, "w") as file:
            print(os.getpid(), subprocess.Popen(["sleep", "1000"]).pid, file=file, flush=True)
        while True: time.sleep(1)
        """
    limits = Limits(wall_seconds=wall_seconds)
    with Sandbox(limits, unsafe=True).start() as channel:
        channel.send(request(textwrap.dedent(cell)))
        if wall_seconds < SECONDS:
            assert channel.receive(2**20, time.monotonic() + SECONDS).startswith(b"timeout")
        end = time.monotonic() + SECONDS
        while not (tmp_path / "ids").exists() or not (tmp_path / "ids").read_text().endswith("\n"):
            assert time.monotonic() < end
            time.sleep(0.02)
        ids = [int(word) for word in (tmp_path / "ids").read_text().split()]
        assert all(map(alive, ids))
    time.sleep(0.1)
    assert not any(map(alive, ids))


def alive(process: int) -> bool:
    """Say whether a process is there and no zombie."""
    with contextlib.suppress(OSError):
        status = Path(f"/proc/{process}/stat").read_text()
        return status.rpartition(")")[2].split()[0] != "Z"
    return False


def test_a_probe_that_hangs_is_said(monkeypatch, tmp_path):
    (tmp_path / "bwrap").write_text("#!/bin/sh\nexec sleep 1000\n")
    (tmp_path / "bwrap").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr(sandbox, "PROBE_SECONDS", 0.2)
    available.cache_clear()
    try:
        assert "bubblewrap did not start Python within 0.2 seconds" in str(available())
    finally:
        available.cache_clear()


@needs_sandbox
def test_the_sandbox_ends_with_who_started_it():
    """A marker that is killed leaves no process behind."""
    code = f"""
        import time
        from companion.grading.limits import Limits
        from companion.grading.sandbox import Sandbox
        with Sandbox(Limits(wall_seconds=1000)).start() as channel:
            channel.send({request("import time; time.sleep(1000)")!r})
            print("started", flush=True)
            time.sleep(1000)
        """
    ctypes.CDLL(None).prctl(SUBREAPER, 1, 0, 0, 0)  # orphans become children of this process
    others = set(below(os.getpid()))  # pools that earlier tests left idle
    command = [sys.executable, "-c", textwrap.dedent(code)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT) as marker:
        assert marker.stdout is not None
        assert marker.stdout.readline() == b"started\n"
        deadline = time.monotonic() + SECONDS
        while len(set(below(os.getpid())) - others) < 3:  # a busy machine takes its time
            assert time.monotonic() < deadline
            time.sleep(0.02)
        marker.kill()
    deadline = time.monotonic() + SECONDS
    while left := set(below(os.getpid())) - others:
        assert time.monotonic() < deadline
        time.sleep(0.02)
        for process in left:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(process, os.WNOHANG)


def below(process: int) -> list[int]:
    """Return all processes that come from one."""
    found = []
    for file in Path(f"/proc/{process}/task").glob("*/children"):
        try:
            children = [int(word) for word in file.read_text().split()]
        except OSError:
            continue
        found += children + [inner for child in children for inner in below(child)]
    return found


@needs_sandbox
def test_modules_beside_the_libraries_are_not_seen(tmp_path):
    """As when the package is installed from a wheel and not from its source tree."""
    site = tmp_path / "lib" / "site-packages"
    numpy = Path(sys.modules["numpy"].__file__ or "").parent
    for folder in (numpy, numpy.with_name("numpy.libs"), view.PACKAGE):
        if folder.exists():
            ignored = shutil.ignore_patterns("tests", "__pycache__")
            shutil.copytree(folder, site / folder.name, ignore=ignored)
    for folder in [tmp_path, *tmp_path.parents]:
        if folder.stat().st_uid == os.getuid() and os.getuid() == 0:
            folder.chmod(folder.stat().st_mode | 0o055)
    cell = f"""
import os, companion, numpy
print(os.listdir({str(site / "companion")!r}), companion.__file__, numpy.__file__)
import companion.exercises.exercise_20_1
"""
    code = f"""
        import sys
        sys.path[:0] = [{str(site)!r}]
        from companion.grading import view
        from companion.grading.sandbox import Sandbox
        view.LIBRARIES = ("numpy",)
        with Sandbox().start() as channel:
            channel.send({request(cell)!r})
            print(channel.receive(2**20).decode())
        """
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=SECONDS,
    )
    assert done.stderr == ""
    reply = json.loads(done.stdout.partition("\n")[2])
    inside = f"[] /handed-out/companion/__init__.py {site}/numpy/__init__.py\n"
    assert reply["printed"] == inside
    assert reply["errors"]["a"]["type"] == "ModuleNotFoundError"


# Where there is none


@pytest.fixture
def programs(monkeypatch, tmp_path):
    """A search path with no programs."""
    monkeypatch.setenv("PATH", str(tmp_path))
    available.cache_clear()
    yield tmp_path
    available.cache_clear()


def test_without_bubblewrap_it_says_how_to_get_it(programs):
    assert "apt install bubblewrap" in str(available())
    with pytest.raises(Unavailable, match="apt install bubblewrap"), Sandbox().start():
        pass


def test_where_the_kernel_refuses_it_says_what_an_administrator_can_do(programs):
    for name in ("bwrap", "setpriv"):
        script = programs / name
        script.write_text("#!/bin/sh\necho 'bwrap: No permissions' >&2\nexit 1\n")
        script.chmod(0o755)
    reason = str(available())
    assert "sysctl kernel.apparmor_restrict_unprivileged_userns=0" in reason
    assert "bwrap: No permissions" in reason


def test_on_other_systems_it_says_so(monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    available.cache_clear()
    assert "Linux" in str(available())
    monkeypatch.undo()
    available.cache_clear()


# The filter of system calls, run here as the kernel runs it


def verdict(program: bytes, architecture: int, number: int, *arguments: int) -> int:
    """Return what a filter says of a system call.

    Reference: Linux, Documentation/networking/filter.rst.
    """
    words = [*arguments, *[0] * (6 - len(arguments))]
    data = struct.pack("<IIQ6Q", number, architecture, 0, *words)
    at, value = 0, 0
    while True:
        code, if_true, if_false, k = struct.unpack_from("=HBBI", program, 8 * at)
        at += 1
        if code == 0x20:
            value = struct.unpack_from("<I", data, k)[0]
        elif code == 0x06:
            return k
        else:
            holds = {0x15: value == k, 0x35: value >= k, 0x45: bool(value & k)}[code]
            at += if_true if holds else if_false


ALLOWED, KILLED = 0x7FFF0000, 0x80000000
# read, write, mmap, futex, exit_group, fork by clone, execve, getpid
ORDINARY = {
    "x86_64": [0, 1, 9, 202, 231, 56, 59, 39],
    "aarch64": [63, 64, 222, 98, 94, 220, 221, 172],
}


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_the_filter_denies_what_it_lists_and_nothing_else(machine, monkeypatch):
    monkeypatch.setattr(platform, "machine", lambda: machine)
    program = seccomp.program()
    assert program is not None
    column, architecture = seccomp.MACHINES[machine]
    denied = 0x00050000 | errno.EPERM
    for numbers in seccomp.DENIED.values():
        assert verdict(program, architecture, numbers[column]) == denied
        assert verdict(program, architecture ^ 1, numbers[column]) == KILLED
    for *numbers, argument in seccomp.FOR_OTHERS.values():
        own, other = [0, 0], [0, 0]
        other[argument] = 1
        assert verdict(program, architecture, numbers[column], *own) == ALLOWED
        assert verdict(program, architecture, numbers[column], *other) == denied
    for number in ORDINARY[machine]:
        assert verdict(program, architecture, number) == ALLOWED
        assert verdict(program, architecture, number | 0x40000000) == KILLED
    clone = seccomp.CLONE[column]
    for flag in (0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000):
        assert verdict(program, architecture, clone, flag | signal.SIGCHLD) == denied
    assert verdict(program, architecture, clone, 0x3D0F00) == ALLOWED  # a thread
    assert verdict(program, architecture, 435) == 0x00050000 | errno.ENOSYS


def test_an_unknown_machine_has_no_filter(monkeypatch):
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    assert seccomp.program() is None


# The channel


@pytest.fixture
def pair():
    """Two sides of a connection."""
    ends = [os.pipe(), os.pipe()]
    yield Channel(ends[0][0], ends[1][1]), Channel(ends[1][0], ends[0][1])
    for end in sum(ends, ()):
        with contextlib.suppress(OSError):
            os.close(end)


def test_messages_pass_in_both_directions(pair):
    one, other = pair
    for size in (0, 1, 1000, 50_000):
        one.send(bytes(size))
        other.send(b"x" * size)
        assert other.receive(10**6) == bytes(size)
        assert one.receive(10**6) == b"x" * size


def test_a_channel_keeps_its_limits(pair):
    one, other = pair
    soon = time.monotonic() + 0.1
    with pytest.raises(Late):
        one.receive(100, soon)
    with pytest.raises(Late):
        one.send(bytes(10**7), soon)  # no one reads, and the pipe is full
    other.send(bytes(101))
    with pytest.raises(TooLong):
        one.receive(100)


def test_a_message_that_drips_in_is_late(pair):
    one, other = pair
    os.write(other.outbox, struct.pack(">I", 1000))
    begin = time.monotonic()
    one.gone = lambda: bool(os.write(other.outbox, b"x")) and False
    with pytest.raises(Late):
        one.receive(1000, begin + 0.3)
    assert time.monotonic() - begin < 2


def test_a_closed_channel_says_so(pair):
    one, other = pair
    os.close(other.outbox)
    with pytest.raises(Closed):
        one.receive(100)
    os.close(other.inbox)
    with pytest.raises(Closed):
        one.send(b"x")
