"""What a stored output may not hold, because a second run would not reproduce it."""

import re
from collections.abc import Iterator
from typing import Any

WIDGET = "application/vnd.jupyter.widget-view+json"
RERUN = "run make execute"
CLEAN = "change what is printed, then run make execute"
LONGEST_LINE = 100

# What changes from run to run or from machine to machine.
UNSTABLE = {
    "a memory address": r"\b0x[0-9a-fA-F]{6,}",
    "an absolute path": r"(?<![\w/:.<])(?:/[\w.+-]+){2,}|\b[A-Za-z]:\\|(?<!\w)~/|file://",
    "a timing": r"\b\d+(?:\.\d+)?\s?(?:[nu\u00b5\u03bcm]s|secs?|seconds?|minutes?)\b"
    r"|(?i:\b(?:took|elapsed|time|runtime|duration|in|after)\W+)\d+\s?s\b|\b\d+\.\d+\s?s\b"
    r"|\b\d+ s elapsed|\b\d\d?:\d\d:\d\d\b|\bCPU times\b|\bWall time\b",
    "a rate": r"\d\s?(?:[a-z]+|)/s(?:ec|econd)?\b|\bs/it\b",
    "a warning": r"\b\w*Warning\b|\bwarning:",
    "a progress bar": r"\d%\||[\u2588-\u258f]|\u2501{3}|\[[=#]{3,}|#{8}",
    "an ANSI code": r"\x1b",
    "a carriage return": r"\r",
}
DATA_URI = re.compile(r"data:[\w/+;=-]+,[\w+/=\s]+")
# What would take a cell out of the regression.
EXEMPTIONS = re.compile(r"#\s*(?:NBVAL|PYTEST_VALIDATE)_|nbval-|raises-exception|skip-execution")


def cell_problems(cell: Any) -> Iterator[str]:
    """What a cell's outputs hold that a second run would not reproduce."""
    if found := EXEMPTIONS.search("\n".join([*cell.metadata.get("tags", []), cell.source])):
        yield f"{found[0]} takes the cell out of the regression: delete it"
    for output in cell.outputs:
        if output.output_type == "error":
            yield f"an error: mend the cell, then {RERUN}"
        elif output.get("name") == "stderr":
            yield f"something on stderr: {CLEAN}"
        elif WIDGET in output.get("data", {}):
            yield f"a widget that only its own kernel can show: {RERUN}"
        else:
            yield from (f"{problem}: {CLEAN}" for problem in text_problems(output))


def text_problems(output: Any) -> Iterator[str]:
    """What the text of one output holds that it must not."""
    texts = {"text/plain": output.text} if output.output_type == "stream" else output.data
    for mime, text in texts.items():
        if mime.startswith("image/") and mime != "image/svg+xml":
            continue
        for what, pattern in UNSTABLE.items():
            if found := re.search(pattern, DATA_URI.sub("", str(text))):
                yield f"{what} ({found[0]!a})"
        widest = max(map(len, text.splitlines()), default=0) if mime == "text/plain" else 0
        if widest > LONGEST_LINE:
            yield f"a line of {widest} columns, more than {LONGEST_LINE}"
