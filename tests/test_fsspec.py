# SPDX-License-Identifier: MIT
"""The adapter for fsspec, beside fsspec's own zip."""

from __future__ import annotations

import pickle
import subprocess
import sys
import threading
import tomllib
import zipfile
from pathlib import Path

import fsspec
import pytest
from fsspec.implementations.zip import ZipFileSystem

import pyio_chunked
from pyio_chunked.fsspec import CZipFileSystem, register

ROOT = Path(__file__).resolve().parent.parent

# -------------------------------------------------------------------- fsspec


@pytest.fixture(autouse=True)
def registered():
    before = fsspec.compression.compr["gzip"]
    register()
    yield
    fsspec.compression.compr["gzip"] = before


@pytest.fixture
def archive(tmp_path) -> Path:
    path = tmp_path / "some.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as out:
        out.writestr("top.txt", b"top\n" * 1000)
        out.writestr("a/", b"")
        out.writestr("a/one.csv", b"x\n1\n")
        out.writestr("a/b/two.csv", b"x\n2\n")
        out.writestr("a/b/large", bytes(range(256)) * 4096)
        out.writestr("implied/deep/three.csv", b"x\n3\n")
    return path


def both(path) -> tuple[CZipFileSystem, ZipFileSystem]:
    return CZipFileSystem(str(path)), ZipFileSystem(str(path))


def comparable(entry):
    """_compresslevel and the like are private, and differ between releases."""
    return {key: value for key, value in entry.items() if not key.startswith("_")}


@pytest.mark.parametrize("path", ["", "/", "a", "a/", "a/b", "implied", "implied/deep", "czip://a"])
def test_listing_is_that_of_fsspecs_zip(archive, path):
    ours, theirs = both(archive)
    plain = path.replace("czip", "zip")
    assert list(map(comparable, ours.ls(path, detail=True))) == list(
        map(comparable, theirs.ls(plain, detail=True))
    )
    assert ours.ls(path, detail=False) == theirs.ls(plain, detail=False)


def test_find_glob_walk_are_those_of_fsspecs_zip(archive):
    ours, theirs = both(archive)
    assert ours.find("") == theirs.find("")
    assert ours.find("a", withdirs=True) == theirs.find("a", withdirs=True)
    assert ours.find("a", maxdepth=1) == theirs.find("a", maxdepth=1)
    for pattern in ("*", "*.txt", "a/*.csv", "**/*.csv", "a/**"):
        assert ours.glob(pattern) == theirs.glob(pattern), pattern
    assert list(ours.walk("")) == list(theirs.walk(""))
    assert ours.du("") == theirs.du("")


def test_info_and_kinds(archive):
    ours, theirs = both(archive)
    for path in ("top.txt", "a", "a/one.csv", "implied", ""):
        assert comparable(ours.info(path)) == comparable(theirs.info(path))
        for question in ("exists", "isdir", "isfile"):
            assert getattr(ours, question)(path) == getattr(theirs, question)(path)
    assert ours.size("top.txt") == 4000
    with pytest.raises(FileNotFoundError):
        ours.info("nothing")


def test_reading(archive):
    ours, theirs = both(archive)
    for path in ours.find(""):
        assert ours.cat_file(path) == theirs.cat_file(path)
        with ours.open(path) as file:
            assert file.read() == theirs.cat_file(path)
            assert (file.name, file.size) == (path, theirs.size(path))
    assert ours.cat_file("a/b/large", 100, 5000) == theirs.cat_file("a/b/large", 100, 5000)
    assert ours.cat_file("a/b/large", -10) == theirs.cat_file("a/b/large")[-10:]
    assert ours.cat(["top.txt", "a/one.csv"]) == theirs.cat(["top.txt", "a/one.csv"])
    assert ours.head("a/b/large", 10) == bytes(range(10))
    with ours.open("a/one.csv", "rt") as file:
        assert file.readlines() == ["x\n", "1\n"]


def test_get_writes_the_tree(archive, tmp_path):
    ours, _ = both(archive)
    ours.get("a", str(tmp_path / "out"), recursive=True)
    assert (tmp_path / "out" / "b" / "two.csv").read_bytes() == b"x\n2\n"


def test_what_is_not_there_or_not_a_file(archive):
    ours, _ = both(archive)
    for call in (ours.open, ours.cat_file):
        with pytest.raises(FileNotFoundError):
            call("nothing")
        with pytest.raises(IsADirectoryError):
            call("implied")


def test_nothing_is_written(archive, tmp_path):
    ours, _ = both(archive)
    before = archive.read_bytes()
    for mode in ("wb", "ab", "r+b"):
        with pytest.raises(OSError, match="read only"):
            ours.open("new", mode)
    with pytest.raises(ValueError, match="read only"):
        CZipFileSystem(str(tmp_path / "new.zip"), mode="w")
    with pytest.raises(ValueError, match="needs an archive"):
        CZipFileSystem()
    for call in (lambda: ours.rm("top.txt"), lambda: ours.pipe_file("x", b"data")):
        with pytest.raises((NotImplementedError, OSError)):
            call()
    assert archive.read_bytes() == before


def test_chained_urls(archive):
    with fsspec.open(f"czip://a/one.csv::{archive}") as file:
        assert file.read() == b"x\n1\n"
    assert len(fsspec.open_files(f"czip://a/**/*.csv::{archive}")) == 2
    with fsspec.open(f"czip://top.txt::file://{archive}", "rt") as file:
        assert file.readline() == "top\n"


def test_archives_elsewhere(archive):
    memory = fsspec.filesystem("memory")
    memory.pipe_file("/some.zip", archive.read_bytes())
    try:
        with fsspec.open("czip://a/one.csv::memory://some.zip") as file:
            assert file.read() == b"x\n1\n"
        ours = CZipFileSystem("memory://some.zip")
        assert ours.cat_file("top.txt") == b"top\n" * 1000
    finally:
        memory.rm("/some.zip")
    with open(archive, "rb") as file:
        assert CZipFileSystem(file).cat_file("top.txt") == b"top\n" * 1000


def test_instances_can_be_pickled_and_shared(archive):
    ours = pickle.loads(pickle.dumps(CZipFileSystem(str(archive))))
    assert ours.cat_file("a/one.csv") == b"x\n1\n"
    expected, results = ours.cat_file("a/b/large"), []
    threads = [
        threading.Thread(target=lambda: results.extend(ours.cat_file("a/b/large") for _ in range(20)))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 160 and set(results) == {expected}


def test_profile_and_limits_are_passed_on(archive):
    with open(archive, "ab") as out:
        out.write(b"behind")
    CZipFileSystem(str(archive))
    with pytest.raises(zipfile.BadZipFile):
        CZipFileSystem(str(archive), profile="strict")
    with pytest.raises(pyio_chunked.LimitError):
        CZipFileSystem(str(archive), limits=pyio_chunked.Limits(entries=1))


def test_close_ends_it(archive):
    ours = CZipFileSystem(str(archive))
    file = ours.open("top.txt")
    ours.close()
    ours.close()
    assert file.read() == b"top\n" * 1000, "open members go on"
    file.close()
    with pytest.raises(ValueError):
        ours.cat_file("top.txt")


def test_gzip_by_our_reader(tmp_path):
    with fsspec.open(str(tmp_path / "f.gz"), "wb", compression="infer") as out:
        out.write(b"data" * 1000)
    opened = fsspec.open(str(tmp_path / "f.gz"), compression="infer")
    with opened as file:
        assert isinstance(file, pyio_chunked.GzipFile)
        assert file.read() == b"data" * 1000
    with fsspec.open(str(tmp_path / "f.gz"), "rt", compression="gzip") as file:
        assert file.read(4) == "data"


def test_entry_points_name_what_is_there():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    module, name = project["entry-points"]["fsspec.specs"]["czip"].replace(":", ".").rsplit(".", 1)
    assert (module, name) == (CZipFileSystem.__module__, CZipFileSystem.__name__)
    assert project["scripts"] == {"pyio-chunked": "pyio_chunked._cli:main"}


@pytest.mark.parametrize(("adapter", "module"), [("npz", "numpy"), ("fsspec", "fsspec")])
def test_a_missing_module_names_the_extra(adapter, module):
    code = f"import sys; sys.modules[{module!r}] = None; import pyio_chunked.{adapter}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stderr.splitlines()[-1] == (
        f"ImportError: pyio_chunked.{adapter} needs {module}: pip install 'pyio_chunked[{module}]'"
    )


@pytest.mark.parametrize("name", ["fsspec", "numpy", "dask"])
def test_adapters_are_not_imported_unasked(name):
    code = f"import sys, pyio_chunked; assert {name!r} not in sys.modules, sorted(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
