"""Answers that are not numbers, or claim to be."""

from tests.attacks import HONEST, Attack, answer

EVERYTHING = """
class Everything:
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __sub__(self, other): return 0
    __rsub__ = __mul__ = __rmul__ = __truediv__ = __sub__
    def __le__(self, other): return True
    def __abs__(self): return self
    def __float__(self): return 0.0
    def __bool__(self): return True
    def __iter__(self): return iter([self])
    def __len__(self): return 1
    def __getattr__(self, name): return self
    def __call__(self, *args, **kwargs): return self
def double(x): return Everything()
"""
SUBCLASS = """
class Equal({base}):
    def __eq__(self, other): return True
    def __sub__(self, other): return 0
    def __le__(self, other): return True
    __hash__ = None
"""
ARRAY_SUBCLASS = """
import numpy as np
class Equal(np.ndarray):
    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs): return True
    def tolist(self): return Equal
def double(x): return np.zeros(x.shape).view(Equal)
"""
PROTOCOL = """
import numpy as np
class Late:
    def __array__(self, *args, **kwargs): return np.zeros(3)
    __array_interface__ = property(lambda self: np.zeros(3).__array_interface__)
    def tolist(self): return [0.0]
    def item(self): return 0.0
def double(x): return Late()
"""
LIAR = """
class Liar:
    @property
    def __class__(self): return float
    def __float__(self): return 0.0
def double(x): return Liar()
"""
METACLASS = """
class Meta(type):
    def __eq__(cls, other): return True
    def __hash__(cls): return hash(float)
class Number(metaclass=Meta):
    def __float__(self): return 0.0
def double(x): return Number()
"""
FAKE_TORCH = """
import sys, types
class Tensor:
    def detach(self): return self
    def tolist(self): return "right"
fake = types.ModuleType("torch")
fake.Tensor = fake.Parameter = Tensor
fake.nn = fake
sys.modules["torch"] = fake
def double(x): return Tensor()
"""
LOOP = "\ndef double(x):\n    loop = []\n    loop.append(loop)\n    return loop\n"
DEEP = (
    "\ndef double(x):\n    deep = 0.0\n    for _ in range(10**5): deep = [deep]\n    return deep\n"
)
STATEFUL = """
calls = 0
def double(x):
    global calls
    calls += 1
    return 2 * x if calls <= 2 else 3 * x
"""
IN_PLACE = "\ndef double(x):\n    x *= 2\n    return x\n"
EXHAUSTED = "\ndef double(x):\n    yield from 2 * x\n"

ATTACKS = [
    Attack("equal to everything", EVERYTHING, "refused"),
    Attack(
        "float subclass",
        SUBCLASS.format(base="float") + "def double(x): return Equal(0.0)",
        "refused",
    ),
    Attack(
        "list subclass",
        SUBCLASS.format(base="list") + "def double(x): return Equal(2 * x)",
        "refused",
    ),
    Attack(
        "int subclass", SUBCLASS.format(base="int") + "def double(x): return Equal()", "refused"
    ),
    Attack("array subclass", ARRAY_SUBCLASS, "refused"),
    Attack("array protocol", PROTOCOL, "refused"),
    Attack("class that lies about its class", LIAR, "refused"),
    Attack("class equal to float", METACLASS, "refused|wrong"),
    Attack("fake torch", FAKE_TORCH, "refused"),
    Attack("generator", EXHAUSTED, "refused"),
    Attack("list that holds itself", LOOP, "refused"),
    Attack("list 100,000 deep", DEEP, "refused"),
    Attack("wrong from the third call on", STATEFUL, "wrong", message="hidden"),
    Attack("changes its inputs", IN_PLACE, "right"),
    Attack("defined twice, the later one wrong", HONEST + "double = lambda x: 0 * x", "wrong"),
    answer("NaN", "float('nan') * x"),
    answer("infinity", "float('inf') + x"),
    answer("NaN in one entry", "[2 * x[0], float('nan'), 2 * x[2]]"),
    answer("huge integer", "10**400"),
    answer("integer of a million digits", "1 << 3_300_000"),
    answer("complex", "2 * x + 0j"),
    answer("one complex", "complex(2, 0)"),
    answer("truth value", "True"),
    answer("array of truth values", "x == x"),
    answer("text", "'2 * x'"),
    answer("text of a number", "str(2.0)"),
    answer("list of texts", "[str(2 * v) for v in x]"),
    answer("bytes", "(2 * x).tobytes()"),
    answer("mapping", "{'status': 'right', 'points': 99}"),
    answer("set", "set(2 * x)"),
    answer("iterator", "map(float, 2 * x)"),
    answer("range", "range(3)"),
    answer("memory view", "memoryview(2 * x)"),
    answer("function", "double"),
    answer("type", "float"),
    answer("object array", "np.array([object()] * 3)"),
    answer("object array of numbers", "(2 * x).astype(object)"),
    answer("structured array", "np.zeros(3, dtype=[('a', float)])"),
    answer("masked array", "np.ma.masked_all(3)"),
    answer("matrix", "np.asmatrix(2 * x)"),
    answer("dates", "np.array(['2026-01-01'] * 3, dtype='M8[D]')"),
    answer("fraction", "__import__('fractions').Fraction(1, 2)"),
    answer("decimal", "__import__('decimal').Decimal(1)"),
    answer("ragged", "[[1.0], [1.0, 2.0]]"),
    answer("ten million numbers", "np.zeros(10**7)"),
    answer("a terabyte that takes no memory", "np.broadcast_to(0.0, (10**6, 10**6))"),
    answer("33 dimensions", "np.zeros((1,) * 33)"),
    answer("wrong shape", "2 * x[:, None]", "wrong"),
    answer("one number for three", "2.0", "wrong"),
    answer("empty", "[]", "wrong"),
    answer("nothing", "None", "not attempted"),
    answer("ellipsis", "...", "not attempted"),
    answer("notes on the answer", "(_ for _ in ()).throw(Exception('status: right'))", "error"),
]
