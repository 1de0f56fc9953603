"""How every test runs: one thread, nothing written to the home directory, no silent skip."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from nbval.plugin import IPyNbCell

# Scripts, not modules to search for examples; and notebooks that wait for a student's answers.
collect_ignore_glob = ["tests/bench*.py", "notebooks/exercises/*"]
ON_CI = os.environ.get("CI") == "true"
FRESH = "COMPANION_TEST_HOME"
# nbval gives a finished cell 5 seconds to hand over its output; a busy machine needs more.
OUTPUT_SECONDS = 120
PNG = r"\AiVBORw0KGgo[A-Za-z0-9+/=\s]*\Z"

# Printed digits depend on the order of sums, and so on the number of threads.
os.environ.setdefault("OMP_NUM_THREADS", "1")
settings.register_profile("companion", deadline=None, derandomize=ON_CI)
settings.load_profile("companion")


def pytest_configure(config: pytest.Config) -> None:
    """Give kernels and Matplotlib a fresh home; xdist's workers inherit the first one's."""
    if FRESH not in os.environ:
        home = tempfile.mkdtemp(prefix="companion-")
        os.environ[FRESH] = home
        config.add_cleanup(lambda: shutil.rmtree(home, ignore_errors=True))
        config.add_cleanup(lambda: os.environ.pop(FRESH))
        for variable in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR"):
            os.environ[variable] = str(Path(home, variable.lower()))
        os.environ["IPYTHONDIR"] = str(Path(home, "ipython"))
        os.environ.setdefault("MPLCONFIGDIR", str(Path(home, "matplotlib")))


def pytest_itemcollected(item: pytest.Item) -> None:
    """Let nbval wait, and compare how many pictures a cell makes, if not their pixels."""
    if isinstance(item, IPyNbCell):
        item.output_timeout = OUTPUT_SECONDS
        notebook = item.parent
        notebook.skip_compare = tuple(key for key in notebook.skip_compare if key != "image/png")
        notebook.sanitize_patterns[PNG] = "a picture"


def fail_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    """Turn a skip into a failure that keeps the reason."""
    if ON_CI and report.skipped and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        report.outcome = "failed"
        report.longrepr = f"CI allows no skip. {reason}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Iterator[None]:
    report = yield
    fail_skip(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Iterator[None]:
    report = yield
    fail_skip(report)
    return report
