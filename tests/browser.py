"""A browser for the tests: Debian's Chromium under Playwright, and what a page did in it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Page,
    Request,
    Response,
    sync_playwright,
)

NAMES = ("chromium", "chromium-browser", "google-chrome")
# Nothing that a browser does for itself: no first-run pages, no updates, no telemetry.
FLAGS = [
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-gpu",
    "--disable-quic",
    "--disable-sync",
    "--no-first-run",
]


@contextmanager
def chromium() -> Iterator[Browser]:
    """Run Chromium.

    Raises:
        FileNotFoundError: there is none; the message says what to install.
    """
    path = next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        missing = f"no browser among {', '.join(NAMES)}: on Debian, apt-get install chromium"
        raise FileNotFoundError(missing)
    root = ["--no-sandbox"] if os.name == "posix" and os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=path, args=FLAGS + root)
        yield running
        running.close()


@pytest.fixture(scope="module")  # Playwright's event loop must not outlive the module
def browser() -> Iterator[Browser]:
    """Start Chromium for the tests of a module, or skip them and say what to install."""
    with ExitStack() as stack:
        try:
            running = stack.enter_context(chromium())
        except FileNotFoundError as missing:
            pytest.skip(str(missing))
        yield running


@dataclass
class Log:
    """What the pages of a context asked for, and what went wrong in them.

    requests: every address asked for.
    errors: errors on the console, uncaught exceptions, and requests that failed, unless they did
        because the page was left.
    """

    requests: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)


def watch(context: BrowserContext) -> Log:
    """Record from now on what the pages of a context do."""
    log = Log()
    context.on("request", lambda request: log.requests.append(request.url))

    def failed(request: Request) -> None:
        if request.failure != "net::ERR_ABORTED":
            log.errors.append(f"{request.url} failed: {request.failure}")

    def answered(response: Response) -> None:
        if response.status >= 400:
            log.errors.append(f"{response.url}: status {response.status}")

    def said(message: ConsoleMessage) -> None:
        if message.type == "error":
            log.errors.append(f"console: {message.text}")

    context.on("requestfailed", failed)
    context.on("response", answered)
    context.on("console", said)
    context.on("weberror", lambda error: log.errors.append(f"exception: {error.error}"))
    return log


def settled(page: Page) -> None:
    """Wait until a page's mathematics, if it has any, is typeset."""
    page.wait_for_load_state("load")
    page.evaluate("() => window.MathJax?.startup?.promise")
