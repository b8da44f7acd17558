"""The picture of a notebook: run by Jupyter Notebook in a browser without a display, so that `spy.show` has its controls there,
as its user sees them. `python tools/gallery_pictures.py --only notebook`.

Needs `pip install ipykernel ipywidgets notebook` for the Python that runs it, and Chromium or Chrome.
"""

from __future__ import annotations

import base64
import importlib
import importlib.util
import itertools
import json
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

PACKAGES = ("ipykernel", "ipywidgets", "notebook", "websocket")
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
CELLS = (
    "# One function of a pixel, and what it draws",
    """\
import slangpy as spy

%load_ext slangpy
device = spy.create_device(type=spy.DeviceType.cpu)
light = spy.Tensor.empty(device, (128, 512), "float3")""",
    """\
%%slang waves

float3 rings(int2 pixel, float3 tint, float spacing)
{
    float wave = cos(6.2832 * distance(pixel, float2(180, 40)) / spacing);
    wave += 0.8 * cos(6.2832 * distance(pixel, float2(400, 100)) / spacing);
    return tint * wave * wave / 3;
}""",
    """\
waves.rings(spy.call_id(), spy.float3(0.25, 0.6, 1), 24, _result=light)
spy.show(light, exposure=0.5)""",
    """\
waves.rings(spy.grid((2, 3)), spy.float3(1, 0.5, 0.25), 24)""",
)
"""The first is text."""
WIDTH, HEIGHT = 860, 1500
PATIENCE = 60.0
"""Seconds for a server to answer, and for the page to be drawn."""
KERNEL = "jupyterapp.shell.currentWidget.sessionContext.session.kernel"
READY = f"{KERNEL}.connectionStatus == 'connected' && {KERNEL}.status == 'idle'"
DRAWN = """(() => {
    const image = document.querySelector(".jupyter-widgets.widget-image");
    const cells = [...document.querySelectorAll(".jp-Notebook .jp-CodeCell")];
    if (cells.length < COUNT || !image?.naturalWidth || !cells.at(-1).querySelector(".jp-OutputArea-output")) return 0;
    document.querySelector(".jp-mod-selected")?.classList.remove("jp-mod-selected", "jp-mod-active");
    return Math.ceil(cells.at(-1).getBoundingClientRect().bottom);
})()""".replace("COUNT", str(len(CELLS) - 1))
"""How many rows of the page the cells take, once all have run; else 0."""


class Missing(RuntimeError):
    """What the picture needs and this machine does not have."""


def browser() -> str:
    """Its path; Missing says all that is missing."""
    absent = [name for name in PACKAGES if importlib.util.find_spec(name) is None]
    found = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    wanted = ["packages: pip install ipykernel ipywidgets notebook"] if absent else []
    if found is None:
        wanted.append(f"a browser: one of {', '.join(BROWSERS)} on PATH")
    if wanted or found is None:
        raise Missing(f"the picture of a notebook needs {' and '.join(wanted)} (by {sys.executable})")
    return found


def wait_for(what: str, ask: Callable[[], Any]) -> Any:
    """The first answer that is not empty."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        try:
            answer = ask()
        except (URLError, ConnectionError, FileNotFoundError):
            answer = None
        if answer:
            return answer
        time.sleep(0.2)
    raise TimeoutError(f"{what}: nothing within {PATIENCE:.0f} s")


@contextmanager
def running(command: list[str], log: Path) -> Iterator[None]:
    """A program until the end of the block; an error shows what it wrote."""
    with log.open("w") as out, subprocess.Popen(command, stdout=out, stderr=out) as process:
        try:
            yield
        except Exception:
            print(log.read_text(), file=sys.stderr)
            raise
        finally:
            process.terminate()


def write_notebook(path: Path) -> None:
    """Cells that have not run."""
    text, *code = CELLS
    bare: dict[str, Any] = {"cell_type": "code", "metadata": {}, "execution_count": None, "outputs": []}
    cells = [{"cell_type": "markdown", "metadata": {}, "source": text}, *({**bare, "source": cell} for cell in code)]
    for number, cell in enumerate(cells):
        cell["id"] = str(number)
    kernel = {"name": "python3", "display_name": "Python 3"}
    notebook = {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    path.write_text(json.dumps(notebook), "utf-8")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def take_picture(profile: Path) -> bytes:
    """PNG of the page of the browser that runs with this profile."""

    def find_page() -> str | None:
        port = (profile / "DevToolsActivePort").read_text().split()[0]
        pages = json.load(urlopen(f"http://127.0.0.1:{port}/json"))
        return next((page["webSocketDebuggerUrl"] for page in pages if page["type"] == "page"), None)

    address = wait_for("browser", find_page)
    line = importlib.import_module("websocket").create_connection(address, suppress_origin=True, timeout=PATIENCE)
    numbers = itertools.count(1)

    def ask(method: str, **params: Any) -> Any:
        number = next(numbers)
        line.send(json.dumps({"id": number, "method": method, "params": params}))
        while (answer := json.loads(line.recv())).get("id") != number:
            pass  # events
        return answer["result"]

    def evaluate(expression: str) -> Any:
        return ask("Runtime.evaluate", expression=expression)["result"].get("value")

    wait_for("kernel", lambda: evaluate(READY))
    evaluate("jupyterapp.commands.execute('notebook:run-all-cells')")
    height = wait_for("picture", lambda: evaluate(DRAWN)) + 16
    clip = {"x": 0, "y": 0, "width": WIDTH, "height": min(height, HEIGHT), "scale": 1}
    return base64.b64decode(ask("Page.captureScreenshot", clip=clip)["data"])


def draw_notebook(path: Path) -> None:
    """Missing names what has to be installed first."""
    chosen = browser()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        work, port = Path(name), free_port()
        write_notebook(work / "waves.ipynb")
        server = [
            sys.executable, "-m", "notebook", "--no-browser", "--allow-root", f"--ServerApp.port={port}", f"--ServerApp.root_dir={work}",
            "--IdentityProvider.token=", "--ServerApp.password=", "--JupyterNotebookApp.expose_app_in_browser=True",
        ]  # fmt: skip
        page = f"http://127.0.0.1:{port}/notebooks/waves.ipynb"
        sight = [
            chosen, "--headless", "--no-sandbox", "--hide-scrollbars", "--remote-debugging-port=0",
            f"--user-data-dir={work / 'profile'}", f"--window-size={WIDTH},{HEIGHT}", page,
        ]  # fmt: skip
        with running(server, work / "server.log"):
            wait_for("Jupyter", lambda: urlopen(f"http://127.0.0.1:{port}/api"))
            with running(sight, work / "browser.log"):
                path.write_bytes(take_picture(work / "profile"))
