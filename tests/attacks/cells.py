"""Cells that are no Python, or that Python chokes on."""

from tests.attacks import HONEST, Attack, beside

ATTACKS = [
    beside("a command of the shell", "!rm -rf ~ /\n!touch pwned"),
    beside("an installation", "%pip install numpy==1.0\n%matplotlib inline\n!!ls\nlen?"),
    Attack(
        "magic in the answer", "def double(x):\n    %time\n    !ls\n    return 2 * x\n", "right"
    ),
    Attack("a cell of the shell", "%%bash\nrm -rf ~\n" + HONEST, "error", message="%%bash"),
    Attack(
        "a cell of another language", "%%javascript\nalert(1)\n", "error", message="%%javascript"
    ),
    Attack("a timed cell", "%%time" + HONEST, "right"),
    Attack("asks for input", "name = input('password? ')" + HONEST, "error", message="EOFError"),
    Attack("asks for input in the answer", "def double(x):\n    return float(input())\n", "error"),
    Attack(
        "reads standard input",
        "import sys\nprint(repr(sys.stdin.read()))" + HONEST,
        "right",
        printed="''",
    ),
    Attack("system by IPython", "get_ipython().system('touch pwned')" + HONEST, "error"),
    beside("display", "display(1, 'two')", printed="1 two"),
    Attack("not finished", "def double(x:\n    return 2 * x\n", "error", message="SyntaxError"),
    Attack("an indented cell", "    def double(x):\n        return 2 * x\n", "error"),
    Attack("null bytes", "x = 1\x00" + HONEST, "error"),
    Attack("half a character", "# \udc80" + HONEST, "error"),
    Attack("200,000 brackets", "(" * 200_000, "error|crashed"),
    Attack("100,000 minus signs", "x = " + "-" * 100_000 + "1" + HONEST, "error|crashed"),
    Attack("200,000 terms", "x = " + "+".join("1" * 200_000) + HONEST, "error|crashed"),
    Attack("half a million lines", "\n" * 500_000 + HONEST, "right"),
    Attack("a coding line", "# -*- coding: rot13 -*-" + HONEST, "right"),
    Attack("from the future", "from __future__ import annotations" + HONEST, "right"),
    Attack("a class called double", "class double:\n    def __init__(self, x): pass\n", "refused"),
    Attack("a number called double", "double = 2.0\n", "error"),
    Attack(
        "a partial function",
        "from functools import partial\ndouble = partial(lambda x, by: by * x, by=2)",
        "right",
    ),
    Attack("another argument", "def double(y):\n    return 2 * y\n", "error", message="argument"),
    Attack(
        "any arguments", "def double(**names):\n    return [2 * v for v in names['x']]\n", "right"
    ),
    Attack("nothing defined", "2 + 2\n", "missing"),
    Attack("deletes its answer", HONEST + "del double\n", "missing"),
    Attack(
        "plots", "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()" + HONEST, "right"
    ),
]
