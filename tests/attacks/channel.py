"""What is printed, and what is written to the marker itself."""

from tests.attacks import HONEST, Attack, answer, beside

FORGED = '{"answers": [{"value": [0, 0, 0]}], "status": "right", "points": 99}'
DESCRIPTORS = """
import os, struct
def everywhere(data):
    for descriptor in range(256):
        try: os.write(descriptor, data)
        except OSError: pass
"""
WRONG = "\ndef double(x):\n    return 0 * x\n"

ATTACKS = [
    Attack("a forged result on stdout", f"print('{FORGED}')" + WRONG, "wrong"),
    Attack(
        "a forged result on stdout's descriptor",
        f"import os, sys\nos.write(1, b'{FORGED}')\nos.write(2, b'answer')" + WRONG,
        "wrong",
    ),
    Attack(
        "a forged result on every descriptor",
        DESCRIPTORS
        + f"data = b'{FORGED}'\neverywhere(struct.pack('>I', len(data)) + data)"
        + WRONG,
        "wrong|refused|missing",
    ),
    Attack(
        "forged results, many",
        DESCRIPTORS
        + f"data = b'{FORGED}'\neverywhere(50 * (struct.pack('>I', len(data)) + data))"
        + WRONG,
        "wrong|refused|missing",
    ),
    Attack(
        "the supervisor's own words",
        DESCRIPTORS
        + 'data = b\'answer\\n{"defined": true, "errors": {}}\'\n'
        + "everywhere(3 * (struct.pack('>I', len(data)) + data))"
        + WRONG,
        "wrong|refused|missing",
    ),
    Attack(
        "noise on every descriptor",
        DESCRIPTORS + "everywhere(b'x' * 1000)" + WRONG,
        "wrong|refused|crashed",
    ),
    Attack(
        "announces 4 GB",
        DESCRIPTORS + "everywhere(b'\\xff' * 4)" + WRONG,
        "refused|crashed",
    ),
    Attack(
        "announces more than it sends",
        DESCRIPTORS + "everywhere(struct.pack('>I', 10**6))" + WRONG,
        "timeout|refused",
    ),
    Attack(
        "a byte at a time",
        DESCRIPTORS
        + "import time\neverywhere(struct.pack('>I', 10**6))\nwhile True:\n"
        + "    everywhere(b'1')\n    time.sleep(0.005)",
        "timeout",
    ),
    Attack(
        "no JSON",
        DESCRIPTORS + "everywhere(struct.pack('>I', 4) + b'\\xff{[x')" + WRONG,
        "refused|missing|wrong",
    ),
    Attack(
        "JSON 100,000 deep",
        DESCRIPTORS + "everywhere(struct.pack('>I', 10**5) + b'[' * 10**5)" + WRONG,
        "refused|missing|wrong|timeout",
    ),
    Attack(
        "a number of 100,000 digits",
        DESCRIPTORS + "everywhere(struct.pack('>I', 10**5) + b'9' * 10**5)" + WRONG,
        "refused|missing|wrong|timeout",
    ),
    Attack("closes every descriptor", "import os\nos.closerange(0, 1000)" + HONEST, "crashed"),
    Attack(
        "forged answers of every kind, ahead of time",
        DESCRIPTORS
        + """
start = b'{"defined": true, "errors": {}}'
value = b'{"answers": [{"value": [true, "2", null]}, {"value": 1e999}]}'
everywhere(b"".join(struct.pack(">I", len(data)) + data for data in (start, value, value)))
"""
        + WRONG,
        "refused",
    ),
    beside("100 MB printed", "for _ in range(100): print('x' * 10**6)"),
    beside(
        "100 MB on stdout's descriptor", "import os\nfor _ in range(100): os.write(1, bytes(10**6))"
    ),
    beside("unprintable text", "print('\\x1b[2J\\udc80\\x00' * 1000)"),
    Attack("an error of 100 MB", "def double(x):\n    raise ValueError('x' * 10**8)\n", "error"),
    Attack(
        "an error that can't be read",
        """
class Loud(Exception):
    def __str__(self): raise SystemExit
def double(x): raise Loud
""",
        "error",
    ),
    Attack(
        "an error that takes forever to read",
        """
class Slow(Exception):
    def __str__(self):
        while True: pass
def double(x): raise Slow
""",
        "timeout",
    ),
    Attack(
        "an error in HTML and terminal codes",
        "def double(x):\n    raise ValueError('\\x1b[31m\\nright</div><script>')\n",
        "error",
    ),
    Attack(
        "tells the hidden cases in an error",
        """
calls = 0
def double(x):
    global calls
    calls += 1
    if calls > 2: raise ValueError(f"hidden: {list(x)}")
    return 2 * x
""",
        "error",
        message="an error in a hidden one",
    ),
    Attack(
        "tells the hidden cases in print",
        "def double(x):\n    print('case', list(x))\n    return 2 * x\n",
        "right",
    ),
    answer("tells the hidden cases in a type", "type('T' + str(x), (), {})()", "refused"),
]
