"""A JupyterLab server in a temporary directory, and its notebooks in a real browser."""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import nbformat
from playwright.sync_api import Browser, Locator, Page

ROOT = Path(__file__).resolve().parent.parent
SECONDS = 240  # until something is given up; a busy machine is slow, not broken
LAB = [
    "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
    "--LabApp.extension_manager=readonly",
    "--LabApp.expose_app_in_browser=True",
    "--LanguageServerManager.autodetect=False",
    "--ServerApp.open_browser=False",
    "--ServerApp.allow_root=True",
]


@contextmanager
def serve(directory: Path) -> Iterator[str]:
    """Run JupyterLab on a directory; yields what an address of it begins with.

    Settings, caches and the kernels' files stay in the directory's `.home`.
    """
    home = directory / ".home"
    settings = home / "settings" / "@jupyterlab" / "apputils-extension"
    settings.mkdir(parents=True)
    (settings / "notification.jupyterlab-settings").write_text('{"fetchNews": "false"}')
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    token = secrets.token_hex(16)
    command = [sys.executable, "-m", "jupyterlab", f"--ServerApp.root_dir={directory}", *LAB]
    command += [f"--ServerApp.port={port}", f"--IdentityProvider.token={token}"]
    with (home / "server.log").open("wb") as log:
        server = subprocess.Popen(
            command, cwd=directory, env=_environment(home), stdout=log, stderr=log
        )
    try:
        _wait_for_server(server, f"http://127.0.0.1:{port}/api/status?token={token}", home)
        yield f"http://127.0.0.1:{port}/lab/tree/{{}}?token={token}"
    finally:
        server.terminate()
        server.wait(SECONDS)


def _environment(home: Path) -> dict[str, str]:
    kept = {name: x for name, x in os.environ.items() if not name.startswith("JUPYTER")}
    own = {
        "HOME": home,
        "IPYTHONDIR": home / "ipython",
        "JUPYTER_CONFIG_DIR": home / "config",
        "JUPYTER_DATA_DIR": home / "data",
        "JUPYTER_RUNTIME_DIR": home / "runtime",
        "JUPYTERLAB_SETTINGS_DIR": home / "settings",
        "JUPYTERLAB_WORKSPACES_DIR": home / "workspaces",
        "MPLCONFIGDIR": home / "matplotlib",
        "PYTHONPATH": ROOT,
        "OMP_NUM_THREADS": 1,
    }
    return kept | {name: str(value) for name, value in own.items()}


def _wait_for_server(server: subprocess.Popen[bytes], address: str, home: Path) -> None:
    end = time.monotonic() + SECONDS
    while time.monotonic() < end and server.poll() is None:
        try:
            with urllib.request.urlopen(address, timeout=10):
                return
        except OSError:
            time.sleep(0.1)
    raise RuntimeError(f"JupyterLab did not start:\n{(home / 'server.log').read_text()[-2000:]}")


def copy_notebooks(directory: Path) -> None:
    """Copy the sections and what pairs them, so that the originals stay as they are."""
    for part in ("book", "notebooks"):
        shutil.copytree(ROOT / part, directory / part)
    shutil.copy(ROOT / "jupytext.toml", directory)


def write_notebook(path: Path, cells: Sequence[str]) -> None:
    """Write a notebook of code cells."""
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(cell) for cell in cells], metadata={"kernelspec": kernel}
    )
    nbformat.write(notebook, path)


class LabNotebook:
    """A notebook open in JupyterLab, driven as a reader drives it."""

    def __init__(self, browser: Browser, address: str, path: str) -> None:
        """Open it and wait for its kernel."""
        self.page: Page = browser.new_page(viewport={"width": 1400, "height": 1000})
        self.page.set_default_timeout(SECONDS * 1000)
        self.page.goto(address.format(path) + "&reset")
        self.page.wait_for_function("() => window.jupyterapp?.shell?.currentWidget?.sessionContext")
        self.page.evaluate(_READY)

    def close(self) -> None:
        """Stop the kernel and close the page."""
        self.page.evaluate("() => jupyterapp.shell.currentWidget.sessionContext.shutdown()")
        self.page.close()

    def run_all(self) -> None:
        """Run all cells and wait for the last.

        Raises:
            RuntimeError: a cell stopped with an error.
        """
        if not self.page.evaluate("jupyterapp.commands.execute('notebook:run-all-cells')"):
            errors = self.page.locator("[data-mime-type$=stderr], [data-mime-type$=error]")
            raise RuntimeError("\n".join(errors.all_inner_texts()) or "a cell failed")

    def run(self, position: int) -> Locator:
        """Run one cell, wait for it, and return it.

        Raises:
            RuntimeError: it stopped with an error.
        """
        cell = self.show(position)
        if not self.page.evaluate("jupyterapp.commands.execute('notebook:run-cell')"):
            raise RuntimeError(cell.inner_text())
        return cell

    def show(self, position: int) -> Locator:
        """Make a cell the active one, scroll to it, and return it."""
        self.page.evaluate(_SHOW, position)
        return self.cell(position)

    def cell(self, position: int) -> Locator:
        """Return a cell."""
        return self.page.locator(f'.jp-Cell[data-windowed-list-index="{position}"]')

    def watch(self, position: int) -> None:
        """Note the picture of a cell and, from now on, when a key goes down."""
        self.page.evaluate(_WATCH, position)

    def milliseconds(self) -> float:
        """Wait for another picture than the noted one; returns the time since the key went down.

        The picture counts from the frame that shows it decoded.
        """
        return float(self.page.evaluate("() => window.changed"))

    def wait_idle(self) -> None:
        """Wait until the kernel has answered everything."""
        self.page.evaluate(_IDLE)


_READY = """async () => {
    await jupyterapp.restored;
    const panel = jupyterapp.shell.currentWidget;
    await Promise.all([panel.revealed, panel.sessionContext.ready]);
    await panel.sessionContext.session.kernel.info;
}"""
_SHOW = """async position => {
    const notebook = jupyterapp.shell.currentWidget.content;
    notebook.activeCellIndex = position;
    notebook.deselectAll();
    await notebook.scrollToCell(notebook.widgets[position], 'start');
}"""
_WATCH = """position => {
    const cell = jupyterapp.shell.currentWidget.content.widgets[position].node;
    const picture = () => cell.querySelector('.jp-OutputArea img');
    const before = picture()?.src;
    let pressed;
    window.addEventListener('keydown', event => pressed ??= event.timeStamp, {capture: true});
    const watched = {subtree: true, childList: true, attributes: true, attributeFilter: ['src']};
    window.changed = new Promise((resolve, reject) => {
        setTimeout(() => reject(new Error('the picture did not change')), 20000);
        const observer = new MutationObserver(async () => {
            if (!picture() || picture().src === before) return;
            observer.disconnect();
            await picture().decode();
            requestAnimationFrame(() => resolve(performance.now() - pressed));
        });
        observer.observe(cell, watched);
    });
}"""
_IDLE = """async () => {
    await jupyterapp.shell.currentWidget.sessionContext.session.kernel.requestKernelInfo();
}"""
