"""Where a student's code runs: a process that sees Python and nothing else, within limits.

Bubblewrap gives it namespaces of its own (no network, no other process, no home, no file but the
interpreter's and the modules that an exercise hands out, one small temporary folder); the kernel's
limits bound what it uses; a filter takes away the system calls that no answer needs. As root, it
first becomes an ordinary user, whom the limit on the number of processes binds.
"""

from __future__ import annotations

import functools
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field

from companion.grading import view
from companion.grading.channel import Channel
from companion.grading.limits import Limits
from companion.grading.seccomp import program

NOBODY = "65534"
PROBE_SECONDS = 60
END_SECONDS = 10
INSTALL = "Marking needs bubblewrap 0.8 or newer; get it with: apt install bubblewrap"
NO_NAMESPACES = """bubblewrap can't make namespaces here. An administrator allows them with
    sysctl kernel.unprivileged_userns_clone=1               (Debian 10 and older)
    sysctl kernel.apparmor_restrict_unprivileged_userns=0   (Ubuntu 24.04 and newer)
and in a container with
    docker run --security-opt seccomp=unconfined --security-opt apparmor=unconfined \\
        --security-opt systempaths=unconfined
bubblewrap itself said: """
# Isolated Python begins with its standard library alone.
SUPERVISOR = """import sys
sys.path[:0] = sys.argv[2:]
from companion.grading.supervisor import main
main()"""
ENVIRONMENT = {
    "HOME": view.SCRATCH,
    "TMPDIR": view.SCRATCH,
    "LANG": "C.UTF-8",
    "MPLBACKEND": "Agg",
    # Each thread counts as a process, and two students share two cores already.
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}


class Unavailable(RuntimeError):
    """There is no sandbox on this machine; says why, and how to get one."""


@functools.cache
def available() -> str | None:
    """Say why there is no sandbox on this machine, and how to get one; None if there is one."""
    if sys.platform != "linux":
        return "The sandbox needs Linux; on Windows use WSL, on macOS a virtual machine."
    if shutil.which("bwrap") is None:
        return INSTALL
    if os.geteuid() == 0 and shutil.which("setpriv") is None:
        return "As root the sandbox needs setpriv; get it with: apt install util-linux"
    with _filter() as descriptors:
        try:
            done = subprocess.run(
                [*_bubblewrap(Limits(), descriptors), *view.python("-c", "print(6 * 7)")],
                capture_output=True,
                text=True,
                env={},
                cwd="/",
                pass_fds=descriptors,
                timeout=PROBE_SECONDS,
            )
        except subprocess.TimeoutExpired:
            return f"bubblewrap did not start Python within {PROBE_SECONDS} seconds; try again"
    if done.stdout == "42\n":
        return None
    said = done.stderr.strip()[:500]
    return f"{INSTALL} ({said})" if "nknown option" in said else NO_NAMESPACES + said


@dataclass(frozen=True)
class Sandbox:
    """How submissions are run.

    Args:
        limits: what one part may use.
        unsafe: without bubblewrap, run under the limits alone. A student's code can then read and
            change whatever the instructor can.
    """

    limits: Limits = field(default_factory=Limits)
    unsafe: bool = False

    @contextmanager
    def start(self) -> Iterator[Channel]:
        """Start a process for parts of one student; at the end, kill it and all it has started.

        Raises:
            Unavailable: there is no sandbox, and unsafe was not asked for.
        """
        reason = available()
        if reason is not None and not self.unsafe:
            raise Unavailable(reason)
        with self._inside() if reason is None else self._unprotected() as process:
            assert process.stdin is not None
            assert process.stdout is not None
            yield Channel(process.stdout.fileno(), process.stdin.fileno())

    @contextmanager
    def _inside(self) -> Iterator[subprocess.Popen[bytes]]:
        with _filter() as descriptors:
            process = _popen(
                [*_bubblewrap(self.limits, descriptors), *self._supervisor(view.HANDED_OUT)],
                env={},
                cwd="/",
                pass_fds=descriptors,
            )
        with process:
            try:
                yield process
            finally:
                # All of bubblewrap's processes: the first of two has no right to kill the second.
                os.killpg(process.pid, signal.SIGKILL)

    @contextmanager
    def _unprotected(self) -> Iterator[subprocess.Popen[bytes]]:
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
            here = ENVIRONMENT | {"HOME": scratch, "TMPDIR": scratch}
            command = self._supervisor(str(view.PACKAGE.parent))
            with _popen(command, env=here, cwd=scratch, pass_fds=()) as process:
                try:
                    yield process
                finally:
                    _hang_up(process)

    def _supervisor(self, package: str) -> list[str]:
        limits = json.dumps(asdict(self.limits))
        return view.python("-c", SUPERVISOR, limits, package, *map(str, view.sites()))


def _hang_up(process: subprocess.Popen[bytes]) -> None:
    """Let the supervisor end the part's processes, which are no group of its own; then kill it."""
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()
    with suppress(subprocess.TimeoutExpired):
        process.wait(END_SECONDS)
    process.kill()


def _popen(
    command: list[str], env: dict[str, str], cwd: str, pass_fds: tuple[int, ...]
) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        bufsize=0,
        env=env,
        cwd=cwd,
        pass_fds=pass_fds,
        start_new_session=True,  # Ctrl-C is for the marker, which then ends this
    )


@contextmanager
def _filter() -> Iterator[tuple[int, ...]]:
    """Offer the filter of system calls as a descriptor to read it from, if there is one."""
    lines = program()
    if lines is None:
        yield ()
        return
    inside, outside = os.pipe()
    try:
        os.write(outside, lines)
        os.close(outside)
        yield (inside,)
    finally:
        os.close(inside)


def _bubblewrap(limits: Limits, filters: tuple[int, ...]) -> list[str]:
    """Return the command that runs another one inside; as root, in two steps."""
    bwrap = str(shutil.which("bwrap"))
    inside = [
        *[bwrap, "--unshare-all", "--unshare-user", "--disable-userns"],
        *["--uid", NOBODY, "--gid", NOBODY, "--hostname", "sandbox"],
        *["--die-with-parent", "--new-session", "--as-pid-1", "--clearenv"],
        *[word for name, value in ENVIRONMENT.items() for word in ("--setenv", name, value)],
        *[word for descriptor in filters for word in ("--seccomp", str(descriptor))],
        *view.private(limits.scratch_bytes),
    ]
    if os.geteuid() != 0:
        return inside
    setpriv = str(shutil.which("setpriv"))
    return [
        *[bwrap, "--die-with-parent", "--clearenv", *view.readable(bwrap, setpriv), "--"],
        *[setpriv, "--reuid", NOBODY, "--regid", NOBODY, "--clear-groups"],
        *["--inh-caps=-all", "--bounding-set=-all", "--pdeathsig", "KILL", "--", *inside],
    ]
