# SPDX-License-Identifier: MIT
"""Nothing here is the standard library behind our names, and the threads that
move bytes are not Python's: every public call runs with the library's own
workers replaced by functions that raise."""

from __future__ import annotations

import array
import gzip
import inspect
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


@call("copy")
def copy(given):
    assert pyio_chunked.copy(given.plain, given.new) == given.new
    assert given.new.read_bytes() == TEXT


@call("copytree")
def copytree(given):
    pyio_chunked.copytree(given.tree, given.new, workers=2)
    assert (given.new / "below" / "file").read_bytes() == TEXT


@call("probe")
def probe(given):
    given.new.touch()
    assert "chunked" in pyio_chunked.probe(given.plain, given.new)


@call("thresholds", "set_thresholds", "Thresholds")
def thresholds(given):
    before = pyio_chunked.thresholds()
    assert pyio_chunked.set_thresholds(mapped=before.mapped) == before


@call("calibrate")
def calibrate(given):
    before = pyio_chunked.thresholds()
    try:
        pyio_chunked.calibrate(given.folder, budget=0.05)
    finally:
        pyio_chunked.set_thresholds(**before._asdict())


@call("pool", "PoolStats")
def pool(given):
    limit = pyio_chunked.pool.stats().limit
    pyio_chunked.pool.trim()
    pyio_chunked.pool.set_limit(limit)


@call("inflate")
def inflate(given):
    assert pyio_chunked.inflate(given.deflated) == TEXT
    assert pyio_chunked.inflate(given.gz.read_bytes(), "gzip") == TEXT
    assert pyio_chunked.inflate(given.deflated[2:-4], "raw") == TEXT
    assert pyio_chunked.inflate(given.deflated, out=bytearray(len(TEXT))) == len(TEXT)


@call("Inflater")
def inflater(given):
    ours = pyio_chunked.Inflater()
    pieces = [ours.decompress(given.deflated[i : i + 1000]) for i in range(0, len(given.deflated), 1000)]
    assert b"".join(pieces) + ours.flush() == TEXT


@call("InflateReader")
def inflate_reader(given):
    with pyio_chunked.InflateReader(given.gz) as reader:
        assert reader.read(10) + reader.read() == TEXT
    assert pyio_chunked.InflateReader(io.BytesIO(given.deflated)).read() == TEXT


@call("GzipFile", "gzip_open", "open")
def gzip_file(given):
    with pyio_chunked.GzipFile(given.gz) as reader:
        assert reader.read() == TEXT
    with pyio_chunked.GzipFile(given.gz, threads=2) as reader:
        assert reader.read() == TEXT
    with pyio_chunked.gzip_open(given.gz, "rt") as reader:
        assert reader.read() == TEXT.decode()
    with pyio_chunked.open(given.gz, compression="infer") as reader:
        assert reader.read() == TEXT


@call("ZipFile", "is_zipfile", "Limits", "SAFE_LIMITS")
def zip_file(given):
    assert pyio_chunked.is_zipfile(given.zip)
    for source in (given.zip, io.BytesIO(given.zip.read_bytes())):
        with pyio_chunked.ZipFile(source) as archive:
            assert archive.namelist() == [*given.names, "stored"]
            assert [info.file_size for info in archive.infolist()] == [len(TEXT)] * 41
            assert archive.read("stored") == TEXT
            assert archive.readinto("folder/1", bytearray(len(TEXT))) == len(TEXT)
            with archive.open("folder/2") as member:
                assert member.read(100) + member.read() == TEXT
            for workers in (1, 2):
                assert dict(archive.read_many(workers=workers)) == dict.fromkeys(archive.namelist(), TEXT)
                assert archive.testzip(workers=workers) is None
            assert archive.check() == []
    with pyio_chunked.ZipFile(given.zip) as archive:
        assert archive.extract("stored", given.folder / "one").endswith("stored")
        for workers in (1, 2):
            archive.extractall(given.folder / f"all{workers}", workers=workers)
            assert (given.folder / f"all{workers}" / "folder" / "39").read_bytes() == TEXT


@call("EntryRef", "scan", "partition")
def scan(given):
    refs = pyio_chunked.scan(given.zip, "folder/*")
    (part,) = pyio_chunked.partition(refs)
    assert [ref.read() for ref in part] == [TEXT] * 40
    with part[0].open() as member:
        assert member.read() == TEXT


@call("Path")
def path(given):
    top = pyio_chunked.Path(given.zip)
    assert (top / "folder" / "7").read_bytes() == TEXT
    assert {below.name for below in top.iterdir()} == {"folder", "stored"}


@call("DataWriter", "DataReader")
def data(given):
    with open(given.new, "wb", buffering=0) as file, pyio_chunked.DataWriter(file) as writer:
        writer.write_int32(-5)
        writer.write_str("text")
        writer.write_array(array.array("d", [1.5, 2.5]))
    with open(given.new, "rb", buffering=0) as file:
        reader = pyio_chunked.DataReader(file)
        assert reader.read_int32() == -5
        assert reader.read_str() == "text"
        assert list(reader.read_array("float64", 2)) == [1.5, 2.5]


@call("build_info")
def build_info(given):
    assert pyio_chunked.build_info()["version"] == pyio_chunked.__version__


# ------------------------------------------------------------------ the test


def landed() -> list[Callable[[Any], object]]:
    here = set(dir(pyio_chunked))
    functions = dict.fromkeys(function for users in CALLS.values() for function in users)
    return [f for f in functions if all(name in here for name, users in CALLS.items() if f in users)]


@pytest.mark.parametrize("function", landed(), ids=lambda function: function.__name__)
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


def test_every_public_name_is_called_here():
    public = {
        name
        for name in dir(pyio_chunked)
        if not name.startswith("_") and not inspect.ismodule(getattr(pyio_chunked, name))
    }
    errors = {
        name
        for name in public
        if isinstance(getattr(pyio_chunked, name), type)
        and issubclass(getattr(pyio_chunked, name), Exception)
    }
    assert public - errors - CALLS.keys() == set()
