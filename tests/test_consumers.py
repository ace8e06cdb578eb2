# SPDX-License-Identifier: MIT
"""The standard library and numpy as consumers of every object that we return."""

from __future__ import annotations

import array
import bz2
import codecs
import csv
import gzip
import hashlib
import io
import json
import lzma
import mmap
import pickle
import random
import shutil
import struct
import subprocess
import sys
import tarfile
import wave
import xml.etree.ElementTree
import zipfile
from contextlib import ExitStack

import numpy as np
import pytest
from consumers import DECODED, MAKERS, Counting

import pyio_chunked

ROWS = 30_000


def csv_data() -> bytes:
    source = random.Random(1)
    rows = [f'{i},{source.random():.6f},name {i % 97},"quoted, é {i % 13}"' for i in range(ROWS)]
    return ("i,x,name,note\r\n" + "\r\n".join(rows) + "\r\n").encode()


def json_data() -> bytes:
    return json.dumps([{"i": i, "x": i / 7, "name": f"é {i}"} for i in range(ROWS)]).encode()


def pickle_data() -> bytes:
    things = [list(range(ROWS)), bytearray(random.Random(7).randbytes(500_000)), {"a": "x" * 70_000}]
    return pickle.dumps(things, 5)


def npy_data() -> bytes:
    out = io.BytesIO()
    np.save(out, np.arange(200_000, dtype=">f8").reshape(400, 500).T)
    return out.getvalue()


def npz_data() -> bytes:
    out = io.BytesIO()
    np.savez_compressed(out, a=np.arange(100_000), b=np.ones((3, 4)))
    return out.getvalue()


def tar_data() -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for i in range(20):
            data = random.Random(i).randbytes(30_000 + i)
            info = tarfile.TarInfo(f"member {i}")
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return out.getvalue()


def zip_data() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as target:
        for i in range(20):
            target.writestr(f"{i}", random.Random(i).randbytes(30_000) * 2)
    return out.getvalue()


def wave_data() -> bytes:
    out = io.BytesIO()
    with wave.open(out, "wb") as target:
        target.setnchannels(2)
        target.setsampwidth(2)
        target.setframerate(44_100)
        target.writeframes(random.Random(3).randbytes(400_000))
    return out.getvalue()


def xml_data() -> bytes:
    return b"<all>" + b"".join(b"<one i='%d'>text</one>" % i for i in range(ROWS)) + b"</all>"


def text_lines(file):
    with io.TextIOWrapper(file, encoding="utf-8", newline="") as lines:
        return list(csv.reader(lines))


def with_codecs(file):
    return codecs.getreader("utf-8")(file).read()


def to_end_in_pieces(file):
    out = io.BytesIO()
    shutil.copyfileobj(file, out)
    return out.getvalue()


def with_tarfile(file):
    with tarfile.open(fileobj=file) as tar:
        return [(m.name, tar.extractfile(m).read()) for m in tar.getmembers()]


def with_tarfile_stream(file):
    with tarfile.open(fileobj=file, mode="r|") as tar:
        return [(m.name, tar.extractfile(m).read()) for m in tar]


def with_zipfile(file):
    with zipfile.ZipFile(file) as archive:
        return [(n, archive.read(n)) for n in reversed(archive.namelist())]


def with_our_zipfile(file):
    with pyio_chunked.ZipFile(file) as archive:
        return [(n, archive.read(n)) for n in reversed(archive.namelist())]


def with_wave(file):
    with wave.open(file, "rb") as source:
        return source.getparams(), source.readframes(1 << 20)


def with_xml(file):
    return [(e.tag, e.attrib, e.text) for e in xml.etree.ElementTree.parse(file).getroot()]


def with_array(file):
    values = array.array("H")
    values.fromfile(file, 100_000)
    return values


def with_npz(file):
    with np.load(file) as arrays:
        return {name: arrays[name].tolist() for name in arrays}


def structs(file):
    return [struct.unpack("<IH", file.read(6)) for _ in range(5000)]


def readinto_pieces(file):
    buffer, out = bytearray(10_007), b""
    while count := file.readinto(buffer):
        out += buffer[:count]
    return out


def back_and_forth(file):
    if not file.seekable():
        pytest.skip("the object can't seek")
    out = [file.read(100), file.seek(50), file.read(100), file.seek(0, 1), file.tell()]
    out += [file.seek(70_000), file.readline(), file.seek(10), file.read()]
    return out


CONSUMERS = {
    "csv": (csv_data, text_lines),
    "lines": (csv_data, list),
    "readlines": (csv_data, lambda file: file.readlines()),
    "codecs": (csv_data, with_codecs),
    "read": (csv_data, lambda file: file.read()),
    "seek": (csv_data, back_and_forth),
    "readinto": (pickle_data, readinto_pieces),
    "json": (json_data, json.load),
    "pickle": (pickle_data, pickle.load),
    "hashlib": (csv_data, lambda file: hashlib.file_digest(file, "sha256").hexdigest()),
    "shutil": (pickle_data, to_end_in_pieces),
    "tarfile": (tar_data, with_tarfile),
    "tarfile stream": (tar_data, with_tarfile_stream),
    "zipfile": (zip_data, with_zipfile),
    "our ZipFile": (zip_data, with_our_zipfile),
    "gzip": (lambda: gzip.compress(csv_data()), lambda file: gzip.GzipFile(fileobj=file).read()),
    "our GzipFile": (
        lambda: gzip.compress(csv_data()),
        lambda file: pyio_chunked.GzipFile(fileobj=file).read(),
    ),
    "bz2": (lambda: bz2.compress(csv_data()), lambda file: bz2.open(file).read()),
    "lzma": (lambda: lzma.compress(csv_data(), preset=0), lambda file: lzma.open(file).read()),
    "wave": (wave_data, with_wave),
    "xml": (xml_data, with_xml),
    "array": (wave_data, with_array),
    "struct": (pickle_data, structs),
    "npy": (npy_data, lambda file: np.load(file).tolist()),
    "npz": (npz_data, with_npz),
    "BufferedReader": (csv_data, lambda file: io.BufferedReader(file).readlines()),
}

# Consumers that make a call for each line or value, whatever the object is.
PER_ITEM = {"lines", "readlines", "struct", "seek", "pickle", "codecs"}
NEED_SEEK = {"tarfile", "zipfile", "our ZipFile", "npz", "wave"}

_data: dict[str, bytes] = {}


def data_for(consumer: str) -> bytes:
    if consumer not in _data:
        _data[consumer] = CONSUMERS[consumer][0]()
    return _data[consumer]


@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize("consumer", CONSUMERS)
def test_result_is_that_over_bytesio(consumer, maker, tmp_path):
    data, consume = data_for(consumer), CONSUMERS[consumer][1]
    expected = consume(io.BytesIO(data))
    with ExitStack() as stack:
        file = MAKERS[maker](data, tmp_path, stack)
        assert file.seekable(), "all of these can"
        assert consume(file) == expected


@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize("consumer", sorted(CONSUMERS.keys() - PER_ITEM))
def test_calls_are_bounded_by_the_size(consumer, maker, tmp_path):
    """No consumer is driven into more, smaller calls than over a buffered file."""
    data, consume = data_for(consumer), CONSUMERS[consumer][1]
    plain = Counting(io.BytesIO(data))
    consume(plain)
    with ExitStack() as stack:
        ours = Counting(MAKERS[maker](data, tmp_path, stack))
        consume(ours)
        assert ours.calls <= plain.calls + len(data) // 8192 + 10


@pytest.mark.parametrize("maker", DECODED)
def test_nobody_gets_the_descriptor_of_decoded_data(maker, tmp_path):
    """numpy.fromfile and the like read the descriptor: that would be the
    compressed bytes, and no error."""
    data = np.arange(1000).tobytes()
    with ExitStack() as stack:
        file = MAKERS[maker](data, tmp_path, stack)
        with pytest.raises(io.UnsupportedOperation):
            file.fileno()
        with pytest.raises(io.UnsupportedOperation):
            np.fromfile(file, np.int64)
        with pytest.raises(io.UnsupportedOperation):
            mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        with pytest.raises(io.UnsupportedOperation):
            subprocess.run(["cat"], stdin=file)
        with pytest.raises(io.UnsupportedOperation):
            np.memmap(file, mode="r")
        file.seek(0)
        assert file.read() == data


def test_file_gives_its_descriptor(tmp_path):
    values = np.arange(100_000)
    values.tofile(tmp_path / "v")
    with pyio_chunked.open(tmp_path / "v") as file:
        assert file.read(800) == values[:100].tobytes()
        assert (np.fromfile(file, np.int64) == values[100:]).all(), "from the position on"
    with pyio_chunked.open(tmp_path / "v") as file:
        file.read(8 * 99_999)
        seen = subprocess.run(["cat"], stdin=file, capture_output=True, check=True).stdout
        assert seen == values[-1:].tobytes()


@pytest.mark.parametrize("maker", MAKERS)
def test_what_can_not_be_done_is_refused(maker, tmp_path):
    with ExitStack() as stack:
        file = MAKERS[maker](b"text\n" * 100, tmp_path, stack)
        with pytest.raises(io.UnsupportedOperation):
            file.write(b"x")
        with pytest.raises(csv.Error):  # bytes, as over any binary file
            next(csv.reader(file))
        assert not file.writable() and file.readable() and not file.isatty()
        file.close()
        for call in (file.read, file.readline, file.tell, lambda: next(iter(file))):
            with pytest.raises(ValueError, match="closed"):
                call()
        with pytest.raises(ValueError):
            io.TextIOWrapper(file).read()


@pytest.mark.parametrize("maker", MAKERS)
def test_objects_take_what_consumers_set_on_them(maker, tmp_path):
    """fsspec sets size and name on what an archive's open returned."""
    with ExitStack() as stack:
        file = MAKERS[maker](b"data", tmp_path, stack)
        file.size = 4
        assert (file.size, isinstance(file, io.BufferedIOBase)) == (4, True)


# ----------------------------------------------------------------- writing


def written_by(produce, folder):
    expected = io.BytesIO()
    produce(expected)
    with pyio_chunked.open(folder / "file", "wb") as out:
        produce(out)
    return expected.getvalue(), (folder / "file").read_bytes()


class OneWay(io.BytesIO):
    """As a DataWriter, of which a part may have left already."""

    def seekable(self):
        return False

    def seek(self, *arguments):
        raise io.UnsupportedOperation

    tell = seek


def csv_writer(out):
    text = io.TextIOWrapper(out, encoding="utf-8", newline="", write_through=True)
    csv.writer(text).writerows([[i, f"é {i}"] for i in range(20_000)])
    text.flush()
    text.detach()


def gzip_writer(out):
    with gzip.GzipFile(fileobj=out, mode="wb", mtime=0, filename="") as packed:
        packed.write(b"data" * 100_000)


def zip_writer(out):
    with zipfile.ZipFile(out, "w") as archive:
        info = zipfile.ZipInfo("member", (1980, 1, 1, 0, 0, 0))
        archive.writestr(info, b"data" * 100_000)


def tar_writer(out):
    with tarfile.open(fileobj=out, mode="w|") as tar:
        info = tarfile.TarInfo("member")
        info.size = 400_000
        tar.addfile(info, io.BytesIO(b"data" * 100_000))


PRODUCERS = {
    "csv": csv_writer,
    "json": lambda out: out.write(json.dumps(list(range(10_000))).encode()),
    "pickle": lambda out: pickle.dump([np.arange(100_000), "x" * 100_000], out, 5),
    "numpy.save": lambda out: np.save(out, np.arange(100_000)),
    "gzip": gzip_writer,
    "shutil": lambda out: shutil.copyfileobj(io.BytesIO(bytes(1 << 20)), out),
    "zipfile": zip_writer,
    "tarfile stream": tar_writer,
    "writelines": lambda out: out.writelines([b"a line\n"] * 50_000),
}


@pytest.mark.parametrize("producer", PRODUCERS)
def test_written_bytes_are_those_of_bytesio(producer, tmp_path):
    expected, found = written_by(PRODUCERS[producer], tmp_path)
    assert found == expected


@pytest.mark.parametrize("producer", PRODUCERS)
def test_data_writer_is_a_target_like_any_other(producer, tmp_path):
    expected = OneWay()
    PRODUCERS[producer](expected)
    with pyio_chunked.DataWriter(tmp_path / "data") as out:
        PRODUCERS[producer](out)
    assert (tmp_path / "data").read_bytes() == expected.getvalue()


def test_pickle_reopens_a_file_by_its_path(tmp_path):
    (tmp_path / "f").write_bytes(b"0123456789")
    with pyio_chunked.open(tmp_path / "f") as file:
        file.read(4)
        with pickle.loads(pickle.dumps(file)) as again:
            assert again.read() == b"456789"


@pytest.mark.parametrize("maker", sorted(set(MAKERS) - {"File", "File, small chunk"}))
def test_pickle_refuses_what_it_could_not_open_again(maker, tmp_path):
    with ExitStack() as stack:
        file = MAKERS[maker](b"data", tmp_path, stack)
        with pytest.raises(TypeError):
            pickle.dumps(file)


def test_a_child_gets_the_file_as_its_input(tmp_path):
    (tmp_path / "f").write_bytes(b"first\nsecond\n")
    with pyio_chunked.open(tmp_path / "f") as file:
        assert file.readline() == b"first\n"
        code = "import sys; sys.stdout.write(sys.stdin.read())"
        out = subprocess.run(
            [sys.executable, "-c", code], stdin=file, capture_output=True, text=True, check=True
        )
    assert out.stdout == "second\n"
