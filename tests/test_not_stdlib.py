# SPDX-License-Identifier: MIT
"""Nothing here is the standard library behind our names, and the threads that
move bytes are not Python's: every public call runs with the library's own
workers replaced by functions that raise."""

from __future__ import annotations

import gzip
import io
import shutil
import threading
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import pyio_chunked

REPLACED = (
    (zipfile, "ZipFile"),
    (zipfile, "ZipExtFile"),
    (gzip, "GzipFile"),
    (gzip, "open"),
    (gzip, "decompress"),
    (zlib, "decompressobj"),
    (zlib, "decompress"),
    (shutil, "copyfile"),
    (shutil, "copyfileobj"),
    (shutil, "copy2"),
    (shutil, "copytree"),
)

# name -> calls that use it, on prepared input (see `prepared`); each returns
# nothing or asserts what came out.
CALLS: dict[str, list[Callable[[Any], object]]] = {}


def call(*names: str) -> Callable[[Callable[[Any], object]], Callable[[Any], object]]:
    def note(function: Callable[[Any], object]) -> Callable[[Any], object]:
        for name in names:
            CALLS.setdefault(name, []).append(function)
        return function

    return note


TEXT = b"".join(b"line %d of some text\n" % i for i in range(20000))


@pytest.fixture
def prepared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Input made by the standard library, before its functions are taken away."""
    given = SimpleNamespace(folder=tmp_path, text=TEXT, names=[f"folder/{i}" for i in range(40)])
    given.plain = tmp_path / "plain"
    given.plain.write_bytes(TEXT)
    given.gz = tmp_path / "text.gz"
    given.gz.write_bytes(gzip.compress(TEXT))
    given.deflated = zlib.compress(TEXT)
    given.zip = tmp_path / "archive.zip"
    with zipfile.ZipFile(given.zip, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in given.names:
            archive.writestr(name, TEXT)
        archive.writestr("stored", TEXT, zipfile.ZIP_STORED)
    given.tree = tmp_path / "tree"
    (given.tree / "below").mkdir(parents=True)
    (given.tree / "below" / "file").write_bytes(TEXT)
    given.new = tmp_path / "new"

    def taken_away(name: str) -> Any:
        class Raises:
            def __new__(cls, *arguments: Any, **options: Any) -> Any:
                raise AssertionError(f"{name} was called")

        return Raises

    for module, name in REPLACED:
        monkeypatch.setattr(module, name, taken_away(f"{module.__name__}.{name}"))
    return given


def test_the_replaced_functions_raise(prepared):
    for module, name in REPLACED:
        with pytest.raises(AssertionError, match="was called"):
            getattr(module, name)(prepared.zip)


# ------------------------------------------------------------------ the calls


@call("__version__")
def version(given):
    assert pyio_chunked.__version__.count(".") == 2


@call("read_bytes")
def read_bytes(given):
    assert pyio_chunked.read_bytes(given.plain) == TEXT


@call("read_into")
def read_into(given):
    buffer = bytearray(len(TEXT))
    assert pyio_chunked.read_into(given.plain, buffer) == len(TEXT)
    assert buffer == TEXT


@call("write_bytes")
def write_bytes(given):
    assert pyio_chunked.write_bytes(given.new, TEXT) == len(TEXT)
    assert given.new.read_bytes() == TEXT


@call("open", "File")
def open_file(given):
    with pyio_chunked.open(given.plain) as file:
        assert file.read(1000) + file.read() == TEXT
    with pyio_chunked.open(given.new, "wb") as file:
        file.write(TEXT)
    assert given.new.read_bytes() == TEXT


@call("transfer", "Transfer")
def transfer(given):
    assert pyio_chunked.transfer(given.plain, given.new).count == len(TEXT)
    assert pyio_chunked.transfer(io.BytesIO(TEXT), given.new, method="chunked").count == len(TEXT)


@call("copyfile")
def copyfile(given):
    assert pyio_chunked.copyfile(given.plain, given.new).count == len(TEXT)
    assert given.new.read_bytes() == TEXT


@call("copyfileobj")
def copyfileobj(given):
    target = io.BytesIO()
    pyio_chunked.copyfileobj(io.BytesIO(TEXT), target)
    assert target.getvalue() == TEXT


# ------------------------------------------------------------------ the test


def landed() -> list[tuple[str, Callable[[Any], object]]]:
    return [(name, function) for name in CALLS if name in dir(pyio_chunked) for function in CALLS[name]]


@pytest.mark.parametrize(
    "function", [pytest.param(function, id=f"{name}-{function.__name__}") for name, function in landed()]
)
def test_call_stands_alone(function, prepared):
    before = threading.enumerate()
    seen: list[threading.Thread] = []
    start = threading.Thread.start

    def noted(thread: threading.Thread) -> None:
        seen.append(thread)
        start(thread)

    threading.Thread.start = noted  # type: ignore[method-assign]
    try:
        function(prepared)
    finally:
        threading.Thread.start = start  # type: ignore[method-assign]
    assert seen == []
    assert threading.enumerate() == before
