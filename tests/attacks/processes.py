"""Processes: ending, killing, hanging, multiplying, outliving."""

from tests.attacks import HONEST, Attack, beside

LIBC = "import ctypes, os\nlibc = ctypes.CDLL(None, use_errno=True)\n"

ATTACKS = [
    Attack("exit in the cell", "import sys\nsys.exit(0)" + HONEST, "error"),
    Attack("exit in the answer", "def double(x):\n    raise SystemExit(0)\n", "error"),
    Attack("hard exit in the cell", HONEST + "import os\nos._exit(0)", "crashed"),
    Attack("hard exit in the answer", "import os\ndef double(x):\n    os._exit(0)\n", "crashed"),
    Attack("keyboard interrupt", "def double(x):\n    raise KeyboardInterrupt\n", "error"),
    Attack("generator exit", "def double(x):\n    raise GeneratorExit\n", "error"),
    Attack("kills itself", HONEST + "import os\nos.kill(os.getpid(), 9)", "crashed"),
    Attack("stops itself", HONEST + "import os\nos.kill(os.getpid(), 19)", "timeout"),
    Attack("aborts", HONEST + "import os\nos.abort()", "crashed"),
    Attack("reads address 0", HONEST + "import ctypes\nctypes.string_at(0)", "crashed"),
    beside("kills the parent", "import os\nos.kill(os.getppid(), 9)\nos.kill(1, 15)"),
    beside(
        "kills everyone",
        """
import os
for signal in (1, 2, 3, 6, 9, 10, 11, 12, 13, 14, 15, 17, 18, 19, 20, 24, 25, 31, 34, 64):
    try: os.kill(-1, signal)
    except OSError: pass
""",
    ),
    Attack("infinite loop in the cell", HONEST + "while True: pass", "timeout"),
    Attack("infinite loop in the answer", "def double(x):\n    while True: pass\n", "timeout"),
    Attack(
        "infinite loop that ignores signals",
        """
import signal
for number in range(1, 65):
    try: signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError): pass
signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))
while True:
    try:
        while True: pass
    except BaseException: pass
""",
        "timeout|crashed",
    ),
    Attack("sleeps", HONEST + "import time\ntime.sleep(1000)", "timeout"),
    Attack(
        "hangs outside of Python",
        HONEST + "import re\nre.match('(a+)+$', 'a' * 40 + 'b')",
        "timeout",
    ),
    Attack("a power that never ends", HONEST + "x = 9**9**9", "timeout|crashed|error"),
    Attack(
        "fork bomb",
        """
import os
while True:
    try: os.fork()
    except OSError: pass
""",
        "timeout|crashed",
    ),
    Attack(
        "fork bomb until it fails",
        "import os\nwhile True: os.fork()",
        "error|timeout|refused|missing|crashed",  # what its processes say at once may be no JSON
    ),
    Attack(
        "forks that all answer",
        "import os\nfor _ in range(3): os.fork()\ndef double(x):\n    return 0 * x\n",
        "wrong|refused|crashed|missing",
    ),
    Attack(
        "thread bomb",
        """
import threading, time
while True: threading.Thread(target=time.sleep, args=(1000,)).start()
""",
        "error",
    ),
    Attack("memory bomb", "x = []\nwhile True: x.append(bytearray(10**7))", "error|crashed"),
    Attack(
        "memory bomb of many processes",
        """
import os, time
for _ in range(8):
    if os.fork() == 0:
        x = bytearray(b"1") * 50_000_000
        time.sleep(100)
time.sleep(100)
""",
        "crashed",
        message="memory",
    ),
    Attack(
        "memory bomb in shared memory",
        """
import mmap
kept = []
while True:
    kept.append(mmap.mmap(-1, 10**8))
    for k in range(0, 10**8, 4096): kept[-1][k] = 1
""",
        "crashed",
        message="memory",
    ),
    Attack("one array of a terabyte", "import numpy as np\nnp.ones(10**12)", "error"),
    Attack("deep recursion", "def double(x):\n    return double(x)\n", "error"),
    Attack(
        "deep recursion without a limit",
        "import sys\nsys.setrecursionlimit(10**9)\ndef double(x):\n    return double(x)\n",
        "error|crashed|timeout",
    ),
    Attack(
        "deep recursion in C",
        """
import sys
sys.setrecursionlimit(10**9)
class Deep:
    def __repr__(self): return repr([self])
repr(Deep())
""",
        "error|crashed|timeout|missing",
    ),
    beside(
        "background process",
        """
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        while True: time.sleep(0.01)
    os._exit(0)
""",
    ),
    beside(
        "background process that takes over the sandbox",
        """
import os, time
if os.fork() == 0:
    os.setsid()
    while True:
        try: os.kill(-1, 9)
        except OSError: pass
        time.sleep(0.001)
time.sleep(0.05)
""",
        status="right|crashed",
    ),
    Attack(
        "becomes another program",
        HONEST + "import os\nos.execv('/proc/self/exe', ['python', '-c', 'pass'])",
        "crashed",
    ),
    Attack(
        "alarm", HONEST + "import signal\nsignal.setitimer(0, 0.001)\nsignal.pause()", "crashed"
    ),
    beside(
        "traces the parent",
        LIBC + "print(libc.ptrace(16, os.getppid(), 0, 0), os.strerror(ctypes.get_errno()))",
        printed="-1 Operation not permitted",
    ),
    beside(
        "writes the parent's memory",
        """
for name in ("mem", "environ", "maps", "fd/3", "root/etc"):
    try: open(f"/proc/1/{name}", "r+b").close()
    except OSError as error: print(error.strerror)
""",
        printed="Permission denied\n" * 4,
    ),
    beside(
        "limits of the parent",
        """
import os, resource
for change in (
    lambda: resource.prlimit(1, resource.RLIMIT_CPU, (0, 0)),
    lambda: os.sched_setaffinity(1, {0}),
    lambda: os.setpriority(os.PRIO_PROCESS, 1, 19),
    lambda: os.sched_setscheduler(1, os.SCHED_IDLE, os.sched_param(0)),
):
    try: change()
    except OSError as error: print(error.strerror)
""",
        printed="Operation not permitted\n" * 4,
    ),
    Attack("limits raised", "import resource\nresource.setrlimit(0, (-1, -1))" + HONEST, "error"),
]
