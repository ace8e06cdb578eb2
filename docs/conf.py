# SPDX-License-Identifier: MIT
"""Sphinx's settings; ./dev docs builds with warnings as errors."""

import pyio_chunked

project = "pyio_chunked"
author = "the pyio_chunked authors"
copyright = author
release = version = pyio_chunked.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc"]
myst_enable_extensions = ["colon_fence", "deflist"]
# [text](page.md#some-heading)
myst_heading_anchors = 3
html_theme = "furo"
html_title = f"pyio_chunked {release}"
html_static_path = ["_static"]
exclude_patterns = ["_build"]
suppress_warnings = ["myst.header"]

# Docstrings are plain text, with their shapes and units in columns.
autodoc_member_order = "bysource"
autodoc_typehints = "none"


def keep_lines(app, what, name, obj, options, lines):
    """As a literal block: they are written for help(), not for reST."""
    if lines:
        lines[:] = ["::", "", *["   " + line for line in lines], ""]


def setup(app):
    app.connect("autodoc-process-docstring", keep_lines)
