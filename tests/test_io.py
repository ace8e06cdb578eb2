# SPDX-License-Identifier: MIT
"""read_bytes, read_into, write_bytes and File on ordinary input."""

from __future__ import annotations

import io
import os
import pickle

import pytest

import pyio_chunked

# Each length at each bound: empty, one, the chunk, the thresholds, a slice.
BOUNDS = sorted(
    {
        max(0, bound + step)
        for bound in (0, 8192, 16384, 65536, 262144, 8 << 20, 16 << 20)
        for step in (-1, 0, 1)
    }
)


def content(length: int) -> bytes:
    block = bytes(range(256)) * 255  # not a divisor of any bound
    return (block * (length // len(block) + 1))[:length]


@pytest.mark.parametrize("length", BOUNDS)
def test_every_length(length, tmp_path):
    path, data = tmp_path / "file", content(length)
    assert pyio_chunked.write_bytes(path, data) == length
    assert path.read_bytes() == data
    assert pyio_chunked.read_bytes(path) == data
    assert pyio_chunked.read_bytes(path, threads=1) == data
    buffer = bytearray(length + 1)
    assert pyio_chunked.read_into(path, buffer) == length
    assert buffer == data + b"\0"
    with pyio_chunked.open(path) as file:
        assert file.read() == data
        assert file.read() == b""
        assert file.seek(0) == 0
        assert b"".join(file) == data
        assert file.pread(-1, 1) == data[1:]
        file.seek(0)
        assert b"".join(file.chunks()) == data
    with pyio_chunked.open(path, "wb") as file:
        assert file.write(data) == length
        assert file.tell() == length
    assert path.read_bytes() == data


def test_pickled_reader_goes_on_where_it_was(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"0123456789")
    with pyio_chunked.open(path, chunk_size=4) as file:
        file.read(3)
        copy = pickle.loads(pickle.dumps(file))
    with copy:
        assert (copy.read(), copy.chunk_size) == (b"3456789", 4)
    with pyio_chunked.open(path) as file:
        pickled = pickle.dumps(file)
    os.utime(path, ns=(1, 1))
    with pytest.raises(OSError, match="changed"):
        pickle.loads(pickled)


@pytest.mark.parametrize("mode", ["wb", "r+b", "ab"])
def test_only_a_reader_is_pickled(mode, tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"x")
    with (
        pyio_chunked.open(path, mode) as file,
        pytest.raises(TypeError, match="opened by its path"),
    ):
        pickle.dumps(file)
    with open(path, "rb") as raw, pyio_chunked.open(os.dup(raw.fileno())) as file, pytest.raises(TypeError):
        pickle.dumps(file)


def test_many_buffers_in_one_call(tmp_path):
    path = tmp_path / "file"
    pieces = [b"a" * i for i in range(1000)]
    pyio_chunked._core._fault_count()
    assert pyio_chunked.write_bytes(path, pieces) == 499500
    assert pyio_chunked._core._fault_calls()["writev"] == 4
    pyio_chunked._core._fault_clear()
    assert path.read_bytes() == b"".join(pieces)


def test_atomic_keeps_the_mode_and_follows_a_link(tmp_path):
    path, link = tmp_path / "file", tmp_path / "link"
    path.write_bytes(b"old")
    path.chmod(0o640)
    link.symlink_to("file")
    assert pyio_chunked.write_bytes(link, b"new", atomic=True, sync=True) == 3
    assert link.is_symlink()
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"new", 0o640)
    assert sorted(os.listdir(tmp_path)) == ["file", "link"]


@pytest.mark.parametrize("bytes_path", [False, True])
def test_pickled_by_a_relative_path_after_chdir(bytes_path, tmp_path, monkeypatch):
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "file").write_bytes(b"0123456789")
    (tmp_path / "file").write_bytes(b"another")
    monkeypatch.chdir(tmp_path / "there")
    with pyio_chunked.open(b"file" if bytes_path else "file") as file:
        file.read(3)
        monkeypatch.chdir(tmp_path)
        pickled = pickle.dumps(file)
        assert file.read() == b"3456789"
    monkeypatch.chdir("/")
    with pickle.loads(pickled) as copy:
        assert copy.read() == b"3456789"
        assert isinstance(copy.name, bytes) == bytes_path


@pytest.mark.parametrize(
    ("mode", "options", "error"),
    [
        ("r+b", {}, io.UnsupportedOperation),
        ("w+b", {}, io.UnsupportedOperation),
        ("r+t", {}, io.UnsupportedOperation),
        ("rt", {"encoding": "nonsense"}, LookupError),
        ("wt", {"encoding": "nonsense"}, LookupError),
        ("zz", {}, ValueError),
        ("rb", {"encoding": "utf-8"}, ValueError),
        ("rb", {"errors": "strict"}, ValueError),
    ],
)
def test_a_descriptor_that_was_taken_is_closed(mode, options, error):
    """Where builtins.open fails with it in its hands, and only there."""
    closed = []
    for function in (open, pyio_chunked.open):
        r, w = os.pipe()
        fd = w if "w" in mode else r
        with pytest.raises(error):
            function(fd, mode, **options)
        try:
            os.fstat(fd)
            closed.append(False)
        except OSError:
            closed.append(True)
        for left in {r, w} - ({fd} if closed[-1] else set()):
            os.close(left)
    assert closed[0] == closed[1]


@pytest.mark.parametrize("empty", ["", b""])
@pytest.mark.parametrize("atomic", [False, True])
def test_no_name_is_no_file(empty, atomic, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "source").write_bytes(b"x")
    for call in (
        lambda: pyio_chunked.write_bytes(empty, b"x", atomic=atomic),
        lambda: pyio_chunked.write_bytes(empty, [b"x", b"y"], atomic=atomic),
        lambda: pyio_chunked.copyfile("source", empty, atomic=atomic),
    ):
        with pytest.raises(FileNotFoundError) as caught:
            call()
        assert caught.value.transferred == 0
        assert caught.value.filename == empty
    assert os.listdir() == ["source"]
