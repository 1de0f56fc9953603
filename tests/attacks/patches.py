"""Changes to the language, the libraries and the worker, from inside."""

from tests.attacks import HONEST, Attack, beside

WRONG = "\ndef double(x):\n    return 0 * x\n"
WORKER = "import sys\nworker = sys.modules['companion.grading.worker']\n"

ATTACKS = [
    Attack(
        "patched comparisons",
        """
import builtins, math, numpy as np
always = lambda *args, **kwargs: True
builtins.all = builtins.any = math.isclose = always
np.allclose = np.array_equal = np.isclose = np.testing.assert_allclose = always
"""
        + WRONG,
        "wrong",
    ),
    Attack("patched sums", "import builtins\nbuiltins.abs = lambda v: 0" + WRONG, "wrong"),
    Attack(
        "patched builtins",
        """
import builtins
for name in ("isinstance", "type", "len", "float", "getattr"):
    setattr(builtins, name, lambda *args: True)
"""
        + WRONG,
        "wrong|refused|crashed|error",
    ),
    Attack(
        "no builtins left",
        WRONG + "import builtins\nvars(builtins).clear()",
        "wrong|refused|crashed|error|missing",
    ),
    Attack(
        "the check of companion",
        """
import companion.check
companion.check.check = lambda *args: "right"
"""
        + WRONG,
        "error",
    ),
    Attack(
        "the check, caught",
        """
try:
    from companion import check
    check.check = check.judge = lambda *args: "right"
except ImportError:
    print("no check here")
"""
        + WRONG,
        "wrong",
        printed="no check here",
    ),
    Attack(
        "no assertions",
        "import ast, builtins\nbuiltins.AssertionError = type('Quiet', (Exception,), {})" + WRONG,
        "wrong",
    ),
    Attack("debugging off", "__debug__ = False" + HONEST, "error"),
    Attack(
        "patched traceback",
        """
ip = get_ipython()
ip.showtraceback = ip.showsyntaxerror = lambda *args: None
"""
        + WRONG,
        "error",
    ),
    Attack(
        "what makes plain numbers",
        WORKER + "worker.plain = lambda value: 'right'" + WRONG,
        "refused",
    ),
    Attack(
        "what answers cases",
        WORKER
        + "worker.one_answer = lambda *a: {'status': 'right', 'points': 99, 'value': True}"
        + WRONG,
        "refused",
    ),
    Attack(
        "a forged number of answers",
        WORKER + "worker.one_answer = lambda answer, case: [answer] * 0" + WRONG,
        "refused",
    ),
    Attack(
        "the encoder",
        """
import json, json.encoder
forged = '{"answers": "right", "status": "right", "defined": true, "errors": {}}'
for where in (json.JSONEncoder, json.encoder.JSONEncoder):
    where.encode = where.iterencode = lambda self, value: forged
json.dumps = lambda *args, **kwargs: forged
"""
        + WRONG,
        "wrong|refused|crashed",
    ),
    Attack(
        "a poisoned numpy",
        """
import sys, types
class Fake(types.ModuleType):
    def __getattr__(self, name): return lambda *args, **kwargs: True
sys.modules["numpy"] = Fake("numpy")
"""
        + WRONG,
        "wrong",
    ),
    Attack(
        "the type of arrays",
        "import numpy\nnumpy.ndarray.__eq__ = lambda *args: True" + WRONG,
        "error",
    ),
    beside("trace function", "import sys\nsys.settrace(lambda *args: sys.settrace(None))"),
    beside(
        "import hook",
        """
import sys
class Hook:
    def find_spec(self, name, path=None, target=None): raise SystemExit("no imports")
sys.meta_path.insert(0, Hook())
sys.path[:] = []
""",
    ),
    beside(
        "at the end of the process",
        """
import atexit, threading
def late():
    open("/handed-out/late", "w")
    while True: pass
atexit.register(late)
class Late:
    def __del__(self): late()
keep = Late()
""",
    ),
    beside(
        "a thread that goes on",
        "import threading\nthreading.Thread(target=exec, args=('while 1: pass',)).start()",
    ),
    beside(
        "garbage collector's callbacks",
        "import gc\ngc.callbacks.append(lambda *args: 1 / 0)\ngc.collect()",
    ),
    beside("recursion limit of 1 in later code", "import sys\nsys.setrecursionlimit(200)"),
    beside("warnings as errors", "import warnings\nwarnings.simplefilter('error')"),
    beside(
        "a numpy that raises",
        "import numpy as np\nnp.seterr(all='raise')\nnp.set_printoptions(threshold=0)",
    ),
    beside("closed streams", "import sys\nsys.stdout.close()\nsys.stderr = None"),
    Attack(
        "frames and objects that know what is right",
        """
import gc, sys
seen = []
frame = sys._getframe()
while frame:
    seen += list(frame.f_locals.values()) + list(frame.f_globals.values())
    frame = frame.f_back
seen += gc.get_objects()
names = {getattr(v, "__name__", "") for v in seen if callable(v)}
print("what_is_" + "right" in names, "companion.exercises.exercise_20_1" in sys.modules)
"""
        + WRONG,
        "wrong",
        printed="False False",
    ),
    Attack(
        "pokes into the interpreter's integers",
        """
import ctypes
for k in range(3):
    ctypes.c_int.from_address(id(k) + 24).value = 2
"""
        + WRONG,
        "wrong|refused|crashed|error|timeout|missing",
    ),
]
