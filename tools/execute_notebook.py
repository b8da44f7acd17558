"""Runs the code cells of notebooks in order and stores what they print and show, with IPython alone.

    SLANGPY_DEVICE_TYPE_OVERRIDE=cpu python tools/execute_notebook.py examples/03_notebook/*.ipynb
    ... --check        runs them, stores nothing, and says where what is printed has changed
    ... --html FOLDER  runs nothing, and writes pages as they look in a browser
"""

from __future__ import annotations

import argparse
import base64
import html
import json
import sys
from pathlib import Path
from typing import Any

import matplotlib
from IPython.core.displayhook import CapturingDisplayHook
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.pylabtools import select_figure_formats
from IPython.utils.capture import capture_output
from matplotlib import pyplot

KINDS = ("image/png", "text/html", "text/plain")
"""Of what a cell shows: the first that there is, and the text."""


def lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def shown(data: dict[str, Any]) -> dict[str, Any]:
    """The data of one output as notebooks store it."""
    kept: dict[str, Any] = {}
    for kind in KINDS:
        if kind in data and (kind == "text/plain" or not kept):
            value = data[kind]
            text = base64.b64encode(value).decode("ascii") if isinstance(value, bytes) else str(value)
            kept[kind] = text if kind == "image/png" else lines(text)
    return kept


def ignore(value: Any) -> None:
    """What is shown of the last line's value where that ends with a semicolon."""


def run_cell(shell: InteractiveShell, source: str) -> list[dict[str, Any]]:
    """Its outputs: what is printed, then what is shown."""
    with capture_output(display=True) as captured:
        quiet = source.rstrip().endswith(";")
        shell.display_trap.hook = ignore if quiet else CapturingDisplayHook(shell=shell, outputs=captured._outputs)
        result = shell.run_cell(source)
        for number in pyplot.get_fignums():  # figures appear where they were drawn, as Jupyter does it
            formatter: Any = shell.display_formatter
            data, _ = formatter.format(pyplot.figure(number))
            captured._outputs.append({"data": data, "metadata": {}})
        pyplot.close("all")
    result.raise_error()
    outputs: list[dict[str, Any]] = []
    if captured.stdout:
        outputs.append({"name": "stdout", "output_type": "stream", "text": lines(captured.stdout)})
    for output in captured.outputs:
        outputs.append({"data": shown(output.data), "metadata": {}, "output_type": "display_data"})
    return outputs


def execute(notebook: dict[str, Any]) -> None:
    shell = InteractiveShell()
    shell.colors = "nocolor"
    select_figure_formats(shell, {"png"})
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    try:
        for count, cell in enumerate(cells, 1):
            cell["outputs"] = run_cell(shell, "".join(cell["source"]))
            cell["execution_count"] = count
    finally:
        if shell.history_manager:
            shell.history_manager.end_session()


def printed(notebook: dict[str, Any]) -> list[str]:
    """What the code cells print, each as one text."""
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    return ["".join("".join(o["text"]) for o in cell["outputs"] if o.get("name") == "stdout") for cell in cells]


STYLE = """body { font: 16px/1.5 sans-serif; max-width: 820px; margin: 2em auto; color: #222 }
pre { font: 13px/1.4 monospace; padding: 8px 12px; margin: 6px 0; white-space: pre-wrap }
.source { background: #f4f6f8; border-left: 3px solid #4a7ebb } table { font-size: 13px } img { max-width: 100% }"""


def page(notebook: dict[str, Any]) -> str:
    """Simple HTML; text cells as far as headings and paragraphs go."""
    parts = [f"<meta charset='utf-8'><style>{STYLE}</style>"]
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] != "code":
            for paragraph in source.split("\n\n"):
                level = len(paragraph) - len(paragraph.lstrip("#"))
                tag = f"h{level}" if level else "p"
                parts.append(f"<{tag}>{html.escape(paragraph.lstrip('# '))}</{tag}>")
            continue
        parts.append(f"<pre class='source'>{html.escape(source)}</pre>")
        for output in cell["outputs"]:
            data = output.get("data", {"text/plain": output.get("text", [])})
            if "image/png" in data:
                parts.append(f"<img src='data:image/png;base64,{data['image/png']}'>")
            elif "text/html" in data:
                parts.append("".join(data["text/html"]))
            else:
                parts.append(f"<pre>{html.escape(''.join(data['text/plain']))}</pre>")
    return "\n".join(parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("notebooks", nargs="+", type=Path)
    parser.add_argument("--check", action="store_true", help="store nothing; fail where the printed text has changed")
    parser.add_argument("--html", type=Path, help="folder of the pages")
    options = parser.parse_args()
    matplotlib.use("Agg")
    for path in options.notebooks:
        notebook = json.loads(path.read_text(encoding="utf-8"))
        if options.html:
            (options.html / f"{path.stem}.html").write_text(page(notebook), encoding="utf-8")
            continue
        before = printed(notebook)
        execute(notebook)
        if options.check and printed(notebook) != before:
            changed = [f"  stored {a!r}\n  now    {b!r}" for a, b in zip(before, printed(notebook), strict=True) if a != b]
            raise SystemExit(f"{path.name}: cells print something else:\n" + "\n".join(changed))
        if not options.check:
            path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        print(f"{path.name}: {len(before)} cells", file=sys.stderr)


if __name__ == "__main__":
    main()
