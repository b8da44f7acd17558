"""The documentation site: `sphinx-build -W docs build/docs`, with the package and its extra `docs`."""

from __future__ import annotations

import builtins
import importlib.util
import re
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.domains.python import ObjectEntry, PythonDomain
from sphinx.environment import BuildEnvironment

import slangpy

project = "slangpy"
author = "the slangpy developers"
release = version = slangpy.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode"]
html_theme = "furo"
html_title = f"slangpy {release}"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_theme_options = {
    "sidebar_hide_name": False,
    "light_css_variables": {"color-brand-primary": "#0b63ce", "color-brand-content": "#0b63ce"},
    "dark_css_variables": {"color-brand-primary": "#7ab5ff", "color-brand-content": "#7ab5ff"},
}
html_copy_source = False
pygments_style = "friendly"
pygments_dark_style = "github-dark"
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence", "attrs_block"]
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
toc_object_entries_show_parents = "hide"
autodoc_preserve_defaults = True  # flags have no repr that autodoc knows
autodoc_class_signature = "separated"
autodoc_mock_imports = [name for name in ("jax", "torch") if importlib.util.find_spec(name) is None]
autodoc_default_options = {"members": True, "undoc-members": True, "exclude-members": "__new__"}
highlight_language = "python"
default_role = "code"  # docstrings use single backticks for code
copyright = author
# Text blocks show output; links to sources of the repository are no pages of the site.
suppress_warnings = ["myst.xref_missing", "misc.highlighting_failure"]


class Names(PythonDomain):
    """Links from signatures go to what they mean: not from `bool` to a member of an enumeration with that name."""

    def find_obj(
        self, env: BuildEnvironment, modname: str, classname: str, name: str, type: str | None, searchmode: int = 0
    ) -> list[tuple[str, ObjectEntry]]:
        if name in vars(builtins):
            return []
        found = super().find_obj(env, modname, classname, name, type, searchmode)
        return found if len(found) == 1 else []


def keep_underscores(app: Sphinx, what: str, name: str, found: object, options: object, lines: list[str]) -> None:
    """Names of parameters such as `from_` are no links."""
    lines[:] = [re.sub(r"(?<![\w`])([a-z]\w*)_(?=[\s.,)])", r"\1\\_", line) for line in lines]


def titles_of(toc: nodes.Element) -> nodes.Element:
    """A page's table of contents without what `titles_only` leaves out."""
    kept = toc.copy()
    for entry in toc.children:
        own = entry.copy()
        for child in entry.children[:1]:
            own.append(child.deepcopy())
        pages = list(entry.findall(addnodes.toctree)) if len(entry) > 1 else []
        if pages:
            below = entry[1].copy()
            below.extend(page.deepcopy() for page in pages)
            own.append(below)
        kept.append(own)
    return kept


def navigate_by_titles(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: object) -> None:
    """The navigation has titles of pages. Sphinx copies the names of all functions for each page before it leaves them out,
    which took two thirds of a build; here they are left out once."""
    toctree = context.get("toctree")
    if toctree is None:
        return

    def by_titles(**options: Any) -> Any:
        if not options.get("titles_only"):
            return toctree(**options)
        env = app.builder.env
        whole = env.tocs
        if not titles:
            titles.update((name, titles_of(toc)) for name, toc in whole.items())
        env.tocs = titles
        try:
            return toctree(**options)
        finally:
            env.tocs = whole

    context["toctree"] = by_titles


titles: dict[str, Any] = {}
"""Filled when the first page is written."""


def setup(app: Sphinx) -> None:
    app.connect("autodoc-process-docstring", keep_underscores)
    app.connect("html-page-context", navigate_by_titles, priority=100)  # the theme asks at 500
    app.add_domain(Names, override=True)
