# SPDX-License-Identifier: MIT
"""Where io objects work, a File works: text layers, parsers, archives, arrays.
Where a consumer has a short way for files, a count shows that it is taken."""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import json
import os
import pickle
import shutil
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest

import pyio_chunked
from pyio_chunked import _core


def large(name: str) -> Any:
    """A consumer that ./dev test installs for its first build only."""
    if os.environ.get("PYIO_TEST_BUILD", "all") != "all":
        pytest.skip("large consumers run in the first build only")
    return pytest.importorskip(name, reason=f"{name} is not installed")


class Counted(pyio_chunked.File):
    """Counts calls by name."""

    def __new__(cls, *arguments: Any, **options: Any) -> Any:
        file = super().__new__(cls, *arguments, **options)
        file.calls = {}
        return file

    def __getattribute__(self, name: str) -> Any:
        get = super().__getattribute__
        if name in ("read", "read1", "readinto", "readline", "peek", "write", "read_buffer", "seek", "tell"):
            get("calls")[name] = get("calls").get(name, 0) + 1
        return get(name)


ROWS = [[str(i), f"name {i}", "é" * (i % 30)] for i in range(5_000)]


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "table.csv"
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(ROWS)
    return path


def test_text_wrapper_reads_by_read1(table):
    with Counted(table) as file:
        text = io.TextIOWrapper(file, "utf-8", newline="")
        assert list(csv.reader(text)) == ROWS
        assert file.calls["read1"] >= 2
        text.detach()


@pytest.mark.parametrize("newline", [None, "", "\n", "\r\n"])
def test_text_modes_are_those_of_the_builtin(newline, tmp_path):
    path = tmp_path / "text"
    options: dict[str, Any] = {"encoding": "utf-8", "newline": newline}
    for opener in (open, pyio_chunked.open):
        with opener(path, "wt", **options) as file:
            assert file.mode == "wt" and file.name == str(path)
            file.write("one\ntwo\r\né\r")
        with opener(path, "at", **options) as file:
            file.write("more\n")
        with opener(path, "rt", **options) as file, open(path, "rt", **options) as peer:  # noqa: UP015
            assert (file.mode, file.encoding, file.errors) == (peer.mode, peer.encoding, peer.errors)
            assert list(file) == list(peer)
            assert file.newlines == peer.newlines
        with opener(path, "r+t", **options) as file:
            first = file.readline()
            file.seek(0)
            file.write(first.upper())
    with pytest.raises(FileNotFoundError):
        pyio_chunked.open(tmp_path / "missing", "rt")
    with pytest.raises(LookupError):
        pyio_chunked.open(path, "rt", encoding="no such")
    with pytest.raises(ValueError):
        pyio_chunked.open(path, "rt", newline="x")
    with pytest.raises(FileExistsError):
        pyio_chunked.open(path, "xt")


def test_text_of_a_descriptor():
    ours, theirs = os.pipe()
    with pyio_chunked.open(theirs, "wt", encoding="utf-8") as file:
        file.write("é\n")
    with pyio_chunked.open(ours, "rt", encoding="utf-8") as file:
        assert file.read() == "é\n"


def test_text_reading_uses_our_chunk(table):
    with pyio_chunked.open(table, "rt", chunk_size=12_345, encoding="utf-8") as file:
        assert isinstance(file.buffer, io.BufferedReader)
        assert len(file.buffer.peek()) == 12_345


def test_pickle(tmp_path):
    path = tmp_path / "pickle"
    numbers = list(range(20_000))
    with pyio_chunked.open(path, "wb") as file:
        pickle.dump(numbers, file, protocol=5)
        pickle.dump(bytearray(1 << 20), file, protocol=5)
    with Counted(path) as file:
        assert pickle.load(file) == numbers
        assert pickle.load(file) == bytearray(1 << 20)
        assert file.calls["peek"] and file.calls["readinto"]


def test_pickle_out_of_band_buffers(tmp_path):
    path, buffers = tmp_path / "pickle", []
    block = bytearray(b"x" * 100_000)
    head = pickle.dumps(pickle.PickleBuffer(block), protocol=5, buffer_callback=buffers.append)
    with pyio_chunked.open(path, "wb") as file:
        for buffer in buffers:
            assert file.write(buffer) == 100_000
    assert pickle.loads(head, buffers=[pyio_chunked.read_bytes(path)]) == block


def test_hashlib_file_digest(table):
    with Counted(table) as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        assert file.calls.keys() == {"readinto"}
    assert digest == hashlib.sha256(table.read_bytes()).hexdigest()


def test_tarfile(tmp_path, table):
    archive = tmp_path / "archive.tar.gz"
    with pyio_chunked.open(archive, "wb") as file, tarfile.open(fileobj=file, mode="w:gz") as tar:
        tar.add(table, "table")
    with pyio_chunked.open(archive) as file, tarfile.open(fileobj=file) as tar:
        member = tar.extractfile("table")
        assert member is not None and member.read() == table.read_bytes()
    with pyio_chunked.open(archive) as file, tarfile.open(fileobj=file, mode="r|gz") as tar:
        assert [entry.name for entry in tar] == ["table"]


def test_zipfile(tmp_path, table):
    archive = tmp_path / "archive.zip"
    with pyio_chunked.open(archive, "w+b") as file:
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as new:
            for i in range(10):
                new.write(table, str(i))
        with zipfile.ZipFile(file, "a") as more:
            more.writestr("note", b"note")
        with zipfile.ZipFile(file) as old:
            assert old.testzip() is None
            assert old.read("note") == b"note" and old.read("5") == table.read_bytes()


def test_gzip_and_json(tmp_path):
    path = tmp_path / "data.gz"
    with pyio_chunked.open(path, "wb") as file, gzip.open(file, "wt") as text:
        json.dump(ROWS, text)
    with pyio_chunked.open(path) as file, gzip.open(file, "rt") as text:
        assert json.load(text) == ROWS


def test_shutil(tmp_path, table):
    with pyio_chunked.open(table) as source, pyio_chunked.open(tmp_path / "copy", "wb") as target:
        shutil.copyfileobj(source, target)
    assert (tmp_path / "copy").read_bytes() == table.read_bytes()


def test_socket_sendfile(tmp_path, table):
    import socket
    import threading

    ours, theirs = socket.socketpair()
    received = bytearray()

    def receive() -> None:
        while piece := theirs.recv(65_536):
            received.extend(piece)

    with theirs:
        thread = threading.Thread(target=receive)
        thread.start()
        with ours, pyio_chunked.open(table) as file:
            assert ours.sendfile(file) == table.stat().st_size
        thread.join()
    assert received == table.read_bytes()


class TestNumpy:
    def test_load_and_save(self, tmp_path):
        numpy = pytest.importorskip("numpy")
        path, numbers = tmp_path / "numbers.npy", numpy.arange(300_000.0).reshape(300, -1)
        with pyio_chunked.open(path, "wb") as file:
            numpy.save(file, numbers)
        with Counted(path) as file:
            assert (numpy.load(file) == numbers).all()
            assert file.calls["read"] <= 20  # pieces of 256 KiB

    def test_fromfile_starts_at_the_position(self, tmp_path):
        numpy = pytest.importorskip("numpy")
        path = tmp_path / "numbers"
        path.write_bytes(bytes(range(100)))
        with pyio_chunked.open(path) as file:
            assert file.read(10) == bytes(range(10))  # the rest is read ahead by now
            assert numpy.fromfile(file, "u1").tolist() == list(range(10, 100))
        with pyio_chunked.open(path, "r+b") as file:
            file.seek(50)
            numpy.arange(3, dtype="u1").tofile(file)
            file.seek(50)
            assert file.read(3) == b"\0\1\2"

    def test_read_into_an_array(self, tmp_path):
        numpy = pytest.importorskip("numpy")
        path, target = tmp_path / "numbers", numpy.empty((10, 10), "<u4")
        path.write_bytes(bytes(400))
        assert pyio_chunked.read_into(path, target) == 400
        assert not target.any()


class TestPandas:
    @pytest.mark.parametrize("engine", ["c", "python"])
    def test_read_csv(self, engine, table):
        pandas = large("pandas")
        with Counted(table) as file:
            frame = pandas.read_csv(file, header=None, engine=engine, keep_default_na=False)
            assert frame[1].tolist() == [row[1] for row in ROWS]
            if engine == "c":
                assert file.calls.get("read", 0) <= 10  # pieces of 256 KiB

    def test_to_csv(self, tmp_path):
        pandas = large("pandas")
        with pyio_chunked.open(tmp_path / "out.csv", "wb") as file:
            pandas.DataFrame({"a": [1, 2]}).to_csv(file, index=False)
        assert (tmp_path / "out.csv").read_bytes() == b"a\n1\n2\n"


class TestPyarrow:
    def test_read_buffer_is_what_it_calls(self, tmp_path):
        pyarrow = large("pyarrow")
        path = tmp_path / "data"
        path.write_bytes(bytes(range(256)) * 4_000)
        with Counted(path) as file:
            wrapped = pyarrow.PythonFile(file, mode="r")
            assert wrapped.read_buffer(1_000).to_pybytes() == (bytes(range(256)) * 4)[:1_000]
            assert file.calls["read_buffer"] in (1, 2)  # looked for, and called
            assert file.calls.get("read", 0) == 0

    def test_ipc_round_trip(self, tmp_path):
        pyarrow = large("pyarrow")
        table = pyarrow.table({"n": list(range(10_000))})
        path = tmp_path / "data.arrow"
        with pyio_chunked.open(path, "wb") as file, pyarrow.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)
        with pyio_chunked.open(path) as file:
            assert pyarrow.ipc.open_file(file).read_all() == table


def test_nothing_is_read_twice(tmp_path: Path) -> None:
    """A text of many chunks costs one system call a chunk."""
    path = tmp_path / "text"
    path.write_bytes(b"line of text\n" * 100_000)
    with pyio_chunked.open(path) as file:
        _core._fault_count()
        assert sum(1 for _ in file) == 100_000
        calls = _core._fault_calls()
    reads = calls.get("pread", 0) + calls.get("pread_nowait", 0)
    assert reads <= 2 * (1_300_000 // 262_144 + 2)
