"""What runs a student's code: cells in, plain numbers out.

It runs inside the sandbox, one process per part. It knows the cells and, once they have run, the
inputs of the cases; never what is right. Whatever a student's code does to this process, it can
only hand out other plain data.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import re
import sys
import types
from collections.abc import Callable
from typing import Any

from companion.exercises.part import arguments
from companion.exercises.plain import NotPlain, plain
from companion.grading.channel import Channel

REQUEST_BYTES = 2**25
BEGIN = b"cell "
TAIL = 2000  # of what was printed, and of an error's message
# Lines for Jupyter or the shell between lines of Python; what they do is no part of an answer.
MAGIC = re.compile(r"^(\s*)(?:[%!].*|[\w.]+\?{1,2}\s*)$", re.MULTILINE)
CELL_MAGIC = re.compile(r"\s*%%(\w*)[^\n]*\n?")
ABOUT_PYTHON = {"time", "timeit", "capture", "prun"}  # cell magics around Python


class Tail(io.RawIOBase):
    """The end of what was printed."""

    def __init__(self) -> None:
        self.end = b""

    def writable(self) -> bool:
        """Say that it can be written to."""
        return True

    def write(self, data: Any) -> int:
        """Take bytes in and keep the last ones."""
        new = bytes(data)
        self.end = (self.end + new)[-TAIL:]
        return len(new)

    def text(self) -> str:
        """Return what was kept."""
        return self.end.decode("utf-8", "replace")


def serve(channel: Channel) -> None:
    """Run the cells of the first message, then answer one message with cases after the other."""
    encode = json.JSONEncoder().encode
    tail = Tail()
    stream = io.TextIOWrapper(io.BufferedWriter(tail), "utf-8", "backslashreplace")
    sys.stdout = sys.stderr = stream
    job = json.loads(channel.receive(REQUEST_BYTES))
    module = types.ModuleType("__main__")
    sys.modules["__main__"] = module
    names = module.__dict__
    names.update(display=print, get_ipython=lambda: None)
    errors = {}
    for step in job["steps"]:
        channel.send(BEGIN + step["id"].encode())  # who waits can tell in which cell it hangs
        errors[step["id"]] = run_step(step, names)
    reply: dict[str, Any] = {"errors": errors, "defined": job["name"] in names}
    while True:
        with contextlib.suppress(Exception):
            stream.flush()
        channel.send(encode(reply | {"printed": tail.text()}).encode())
        cases = json.loads(channel.receive(REQUEST_BYTES))
        answer = names.get(job["name"])
        reply = {"answers": [one_answer(answer, case) for case in cases]}


def one_answer(answer: Any, case: dict[str, Any] | None) -> dict[str, Any]:
    """Return the plain value of a function in a case, or of a variable; or what went wrong."""
    try:
        value = answer if case is None else answer(**arguments(case))
        if value is None or value is Ellipsis:
            return {"nothing": True}
        return {"value": plain(value)}
    except NotPlain as error:
        return {"refused": str(error)[:TAIL]}
    except NotImplementedError:
        return {"nothing": True}
    except BaseException as error:  # SystemExit and the like are no way out
        return {"error": described(error)}


def run_step(step: dict[str, Any], names: dict[str, Any]) -> dict[str, Any] | None:
    """Run a cell, given in one or several pieces, and return the error that ended it."""
    error = None
    try:
        for code in compiled(step):
            try:
                exec(code, names)
            except BaseException as caught:
                error = error or described(caught)
    except BaseException as caught:  # not Python, or what the parser can't take
        error = described(caught)
    return error


def compiled(step: dict[str, Any]) -> list[types.CodeType]:
    """Compile a step: the master's cells by statement, a student's as a whole or by piece.

    A master's cell may import what is not there inside; its other statements count. A cell that
    was split is put together again where that gives Python.
    """
    compile_ = _compiler(f"<{step['id']}>")
    pieces = [as_python(piece) for piece in step["pieces"]]
    if step["own"]:
        try:
            return [compile_("\n".join(pieces))]
        except SyntaxError:
            if len(pieces) == 1:
                raise
            return [compile_(piece) for piece in pieces]
    statements = [statement for piece in pieces for statement in ast.parse(piece).body]
    return [compile_(ast.Module([statement], [])) for statement in statements]


def _compiler(name: str) -> Callable[[str | ast.Module], types.CodeType]:
    return lambda source: compile(source, name, "exec", dont_inherit=True)


def as_python(source: str) -> str:
    """Return a cell without the lines that are for Jupyter; its own Python stays where it was.

    Raises:
        SyntaxError: a cell in another language.

    >>> as_python("%matplotlib inline\\nx = 7 %2")
    'pass\\nx = 7 %2'
    """
    magic = CELL_MAGIC.match(source)
    if magic and magic[1] not in ABOUT_PYTHON:
        raise SyntaxError(f"this cell starts with %%{magic[1]}, so it is not Python")
    if magic:
        source = "\n" + source[magic.end() :]
    try:
        ast.parse(source)
    except SyntaxError:
        return MAGIC.sub(r"\1pass", source)
    return source


def described(error: BaseException) -> dict[str, Any]:
    """Return an error's type, its message, and where in the student's cells it came from."""
    line, cell = None, None
    trace = error.__traceback__
    while trace is not None:
        name = trace.tb_frame.f_code.co_filename
        if name.startswith("<") and name.endswith(">"):
            line, cell = trace.tb_lineno, name[1:-1]
        trace = trace.tb_next
    if isinstance(error, SyntaxError):
        line = error.lineno
    try:
        message = str(error.msg if isinstance(error, SyntaxError) else error)[:TAIL]
    except BaseException:
        message = "(its message can't be read)"
    return {"type": type(error).__name__[:80], "message": message, "line": line, "cell": cell}
