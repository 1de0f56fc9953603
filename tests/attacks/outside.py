"""Files: others' work, masters, marks, secrets; and filling the disk."""

from tests.attacks import HONEST, Attack, beside

TRY = """
def attempt(do, *args):
    try: print("done", do(*args))
    except Exception as error:
        kept = getattr(error, "errno", 0) in (1, 13, 30)  # not permitted, no access, read-only
        print("kept out" if kept else type(error).__name__)
"""


def attempts(name: str, *calls: str, printed: str) -> Attack:
    """Return an attack by function calls, each of which must fail in a given way."""
    lines = [f"attempt({call})" for call in calls]
    return beside(name, "import os\n" + TRY + "\n".join(lines), printed=printed)


NO_FILE = "FileNotFoundError\n"
NO_MODULE = "ModuleNotFoundError\n"

ATTACKS = [
    attempts("reads the gradebook", "open, GRADEBOOK", printed=NO_FILE),
    attempts("writes the gradebook", "open, GRADEBOOK, 'a'", printed=NO_FILE),
    attempts("deletes the gradebook", "os.remove, GRADEBOOK", printed=NO_FILE),
    attempts(
        "opens the gradebook as a database",
        "lambda: __import__('sqlite3').connect(GRADEBOOK).execute('select 1')",
        printed="OperationalError",
    ),
    attempts("reads the master", "open, MASTER", printed=NO_FILE),
    attempts(
        "reads another student's work",
        "open, OTHER",
        "os.listdir, os.path.dirname(OTHER)",
        printed=NO_FILE * 2,
    ),
    attempts(
        "reads the home directory", "os.listdir, HOME", "os.listdir, '/home'", printed=NO_FILE * 2
    ),
    attempts("reads accounts", "open, '/etc/passwd'", "open, '/etc/shadow'", printed=NO_FILE * 2),
    attempts(
        "reads devices",
        "open, '/dev/mem'",
        "open, '/dev/tty'",
        "os.listdir, '/sys'",
        printed=NO_FILE * 3,
    ),
    attempts(
        "imports the answers",
        "lambda: __import__('companion.exercises.exercise_20_1')",
        "lambda: __import__('companion.exercises.judge')",
        "lambda: __import__('companion.improvement')",
        "lambda: __import__('companion.objective')",
        "lambda: __import__('companion.grading.marker')",
        printed=NO_MODULE * 5,
    ),
    attempts(
        "asks for the parts",
        "lambda: __import__('companion.exercises').exercises.PARTS",
        printed="ModuleNotFoundError",
    ),
    beside(
        "searches for the answers",
        """
import os
names = {name for _, _, files in os.walk("/handed-out") for name in files}
print("exercise_20_1.py" in names, "judge.py" in names, "part.py" in names)
""",
        printed="False False True",
    ),
    beside(
        "reads the environment",
        """
import os
text = repr(dict(os.environ)) + open("/proc/self/cmdline").read()
try: text += open("/proc/self/environ").read()
except PermissionError: pass
print("CANARY" in text, HOME in text)
""",
        printed="False False",
    ),
    beside(
        "searches its memory for the secret and the hidden cases",
        """
import ctypes, re
secret = re.compile(rb"hidden.secre[t].7391")
found = read = 0
for line in open("/proc/self/maps"):
    start, end = (int(n, 16) for n in line.split()[0].split("-"))
    if line.split()[1].startswith("rw") and end - start < 2**26:
        text = ctypes.string_at(start, end - start)
        read += len(text)
        found += len(secret.findall(text))
print(found, read > 10**6)
""",
        printed="0 True",
    ),
    attempts(
        "writes where Python lies",
        "open, os.__file__, 'a'",
        "open, __import__('numpy').__file__, 'a'",
        "open, os.path.dirname(os.__file__) + '/sitecustomize.py', 'w'",
        "open, os.path.dirname(os.__file__) + '/site-packages/x.pth', 'w'",
        "open, '/handed-out/companion/policy.py', 'a'",
        printed="kept out\n" * 5,
    ),
    attempts(
        "writes elsewhere",
        "open, '/x', 'w'",
        "open, '/proc/x', 'w'",
        "os.mkdir, '/dev/x'",
        "os.mkdir, '/new'",
        "os.rename, '/handed-out', '/y'",
        printed="kept out\nFileNotFoundError\nkept out\nkept out\nkept out\n",
    ),
    attempts(
        "links to the outside",
        "lambda: os.symlink(GRADEBOOK, 'g') or open('g')",
        "os.link, GRADEBOOK, 'h'",
        printed=NO_FILE * 2,
    ),
    beside(
        "a file of 10 GB",
        """
size = 0
try:
    with open("big", "wb") as file:
        while True: size += file.write(bytes(10**6))
except OSError as error:
    print(error.strerror, size < 2 * 10**7)
""",
        printed="File too large True",
    ),
    beside(
        "a sparse file of a terabyte",
        """
try:
    with open("big", "wb") as file: file.truncate(10**12)
except OSError as error:
    print(error.strerror)
""",
        printed="File too large",
    ),
    beside(
        "files that fill the folder",
        """
try:
    for k in range(100):
        with open(str(k), "wb") as file: file.write(bytes(10**7))
except OSError as error:
    print(error.strerror, k < 10)
""",
        printed="No space left on device True",
    ),
    Attack(
        "a million files",
        "for k in range(10**6): open(str(k), 'w').close()" + HONEST,
        "crashed|timeout",
    ),
    Attack(
        "files for the next part",
        """
for name in ("numpy.py", "sitecustomize.py", "json.py", "companion.py"):
    open(name, "w").write("raise SystemExit")
"""
        + HONEST,
        "right",
    ),
    beside(
        "folders without end",
        """
import os
for _ in range(1500):
    os.mkdir("d")
    os.chdir("d")
""",
    ),
    beside("a closed folder", "import os\nos.chmod('/scratch', 0)"),
    beside("another folder", "import os\nos.chdir('/')"),
    beside("other rights for new files", "import os\nos.umask(0o777)"),
]
