# SPDX-License-Identifier: MIT
"""help() reads well: every public name has words and a signature."""

from __future__ import annotations

import inspect
import io
import json
import pydoc
import subprocess
import sys

import pytest

import pyio_chunked
from pyio_chunked import dask as dask_adapter
from pyio_chunked import fsspec, java, npz

PUBLIC = {
    name: getattr(pyio_chunked, name)
    for name in dir(pyio_chunked)
    if not name.startswith("_") and callable(getattr(pyio_chunked, name))
}
ADAPTERS = {
    "npz.load": npz.load,
    "npz.NpzFile": npz.NpzFile,
    "fsspec.register": fsspec.register,
    "fsspec.CZipFileSystem": fsspec.CZipFileSystem,
    "dask.read_members": dask_adapter.read_members,
    "java.DataInput": java.DataInput,
    "java.DataOutput": java.DataOutput,
}


def members(value: object) -> dict[str, object]:
    """What the class itself adds."""
    return {name: getattr(value, name) for name in vars(value) if not name.startswith("_")}


def documented(label: str, value: object) -> list[str]:
    wrong = []
    words = inspect.getdoc(value) or ""
    if not words.strip():
        wrong.append(f"{label} has no words")
    if not (inspect.isclass(value) and issubclass(value, Exception)):
        try:
            inspect.signature(value)
        except ValueError as error:
            wrong.append(f"{label}: {error}")
    return wrong


@pytest.mark.parametrize("name", PUBLIC)
def test_name_is_documented(name):
    value = PUBLIC[name]
    wrong = documented(name, value)
    if inspect.isclass(value):
        for member, thing in members(value).items():
            if callable(thing):
                wrong += documented(f"{name}.{member}", thing)
            elif not inspect.getdoc(thing) and not hasattr(io.BufferedIOBase, member):
                wrong.append(f"{name}.{member} has no words")
    assert wrong == []


@pytest.mark.parametrize("name", ADAPTERS)
def test_adapter_is_documented(name):
    assert documented(name, ADAPTERS[name]) == []


@pytest.mark.parametrize("name", PUBLIC)
def test_help_can_be_shown(name):
    text = pydoc.plain(pydoc.render_doc(PUBLIC[name]))
    assert name in text
    assert "($module" not in text and "($self" not in text


def test_adapter_without_its_package_names_the_extra():
    code = (
        "import sys; sys.modules['dask'] = None\n"
        "from pyio_chunked.dask import read_members\n"
        "try: read_members([])\nexcept ImportError as error: print(error)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "pyio_chunked[dask]" in out


def test_a_star_import_brings_what_is_public():
    code = "from pyio_chunked import *; names = dir(); import pyio_chunked, json; print(json.dumps([names, dir(pyio_chunked)]))"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True
    )
    names, everything = map(set, json.loads(done.stdout))
    assert {n for n in names if not n.startswith("__")} == set(pyio_chunked.__all__)
    # Refinements of LimitError and BadZipFile are never named by those who catch them.
    unnamed = {"BadStream", "CutShort", "GzipLimitError"}
    public = {n for n in everything if not n.startswith("_")} - unnamed
    assert {n for n in public if not inspect.ismodule(getattr(pyio_chunked, n))} == set(pyio_chunked.__all__)
