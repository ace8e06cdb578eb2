# SPDX-License-Identifier: MIT
"""npz.load beside numpy.load."""

from __future__ import annotations

import io
import os
import pickle
import struct
import threading
import zipfile

import numpy as np
import pytest

from pyio_chunked import npz

ARRAYS = {
    "int": np.arange(100_000),
    "big endian": np.arange(1000, dtype=">i4"),
    "fortran": np.asfortranarray(np.arange(600.0).reshape(20, 30)),
    "three axes": np.arange(24, dtype=np.float32).reshape(2, 3, 4),
    "scalar": np.array(3.5),
    "empty": np.empty((0, 7), np.int16),
    "bool": np.array([True, False]),
    "complex": np.array([1 + 2j]),
    "text": np.array(["a", "grüße"]),
    "bytes": np.array([b"abc", b"d"]),
    "nothing": np.zeros(3, "S0"),
    "record": np.array([(1, 2.5), (3, 4.5)], [("a", "<i4"), ("b", "<f8")]),
    "unicode field": np.array([(1,)], [("größe", "<i4")]),
    "time": np.array(["2026-05-01"], "datetime64[D]"),
    "long header": np.zeros(2, [(f"field number {i}", "u1") for i in range(250)]),
}


def same(ours, theirs) -> None:
    assert type(ours) is type(theirs)
    assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
    assert ours.tobytes() == theirs.tobytes()
    assert ours.flags.f_contiguous == theirs.flags.f_contiguous
    assert ours.flags.writeable and ours.flags.aligned


# numpy warns that such a header needs a newer numpy.
@pytest.mark.filterwarnings("ignore:Stored array in format")
@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_every_array_as_numpy_loads_it(save, tmp_path):
    path = tmp_path / "all.npz"
    save(path, **ARRAYS)
    with npz.load(path) as ours, np.load(path) as theirs:
        assert isinstance(ours, np.lib.npyio.NpzFile)
        assert list(ours) == list(theirs) == ours.files
        assert len(ours) == len(theirs)
        for name in theirs:
            same(ours[name], theirs[name])
        same(ours.f.int, theirs.f.int)
        same(ours["int.npy"], theirs["int.npy"])
        assert dir(ours.f) == sorted(ours) and not hasattr(ours.f, "other")
        assert "int" in ours and "int.npy" in ours and "other" not in ours
        assert dict(ours.items()).keys() == dict(theirs.items()).keys()
        with pytest.raises(KeyError, match="other is not a file in the archive"):
            ours["other"]
    with pytest.raises(ValueError, match="closed"):
        ours["int"]


@pytest.mark.filterwarnings("ignore:Stored array in format")
@pytest.mark.parametrize("name", ARRAYS)
@pytest.mark.parametrize("mmap", [False, True])
def test_npy_as_numpy_loads_it(name, mmap, tmp_path):
    np.save(tmp_path / "a.npy", ARRAYS[name])
    ours, theirs = npz.load(tmp_path / "a.npy", mmap=mmap), np.load(tmp_path / "a.npy")
    assert (ours.dtype, ours.shape, ours.tobytes()) == (theirs.dtype, theirs.shape, theirs.tobytes())
    assert ours.flags.f_contiguous == theirs.flags.f_contiguous
    if not mmap:
        same(ours, theirs)


def test_other_members_are_bytes(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as out:
        out.writestr("notes.txt", b"text")
        out.writestr("empty", b"")
    with npz.load(tmp_path / "a.npz") as ours, np.load(tmp_path / "a.npz") as theirs:
        assert ours["notes.txt"] == theirs["notes.txt"] == b"text"
        assert ours["empty"] == theirs["empty"] == b""


def test_mapped_arrays_are_read_only_and_the_same(tmp_path):
    np.savez(tmp_path / "a.npz", **{k: v for k, v in ARRAYS.items() if k != "unicode field"})
    with npz.load(tmp_path / "a.npz", mmap=True) as ours, np.load(tmp_path / "a.npz") as theirs:
        loaded = {name: ours[name] for name in ours}
        for name, array in loaded.items():
            assert (array.dtype, array.shape, array.tobytes()) == (
                theirs[name].dtype, theirs[name].shape, theirs[name].tobytes())  # fmt: skip
        assert isinstance(loaded["int"], np.memmap)
    with pytest.raises(ValueError, match="read-only"):
        loaded["int"][0] = 1


def test_compressed_members_can_not_be_mapped(tmp_path):
    np.savez_compressed(tmp_path / "a.npz", a=np.arange(10))
    with npz.load(tmp_path / "a.npz", mmap=True) as ours, pytest.raises(ValueError, match="mmap=False"):
        ours["a"]


@pytest.mark.parametrize("mmap", [False, True])
def test_arrays_of_objects_are_refused(tmp_path, mmap):
    evil = np.array([{"a": 1}], dtype=object)
    np.savez(tmp_path / "a.npz", evil=evil)
    np.save(tmp_path / "a.npy", evil)
    with npz.load(tmp_path / "a.npz", mmap=mmap) as ours, pytest.raises(ValueError, match="Object arrays"):
        ours["evil"]
    with pytest.raises(ValueError, match="Object arrays"):
        npz.load(tmp_path / "a.npy", mmap=mmap)


def test_other_files_are_refused(tmp_path):
    (tmp_path / "p").write_bytes(pickle.dumps([1]))
    (tmp_path / "empty").write_bytes(b"")
    for name in ("p", "empty"):
        with pytest.raises(ValueError, match="neither"):
            npz.load(tmp_path / name)
    with pytest.raises(FileNotFoundError):
        npz.load(tmp_path / "nothing")


def npy_bytes(array) -> bytes:
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_members_by_any_method(method, tmp_path):
    with zipfile.ZipFile(tmp_path / "a.npz", "w", method) as out:
        out.writestr("a.npy", npy_bytes(np.arange(1000)))
        out.writestr("b", b"text")
    with npz.load(tmp_path / "a.npz") as ours:
        assert (ours["a"] == np.arange(1000)).all()
        assert ours["b"] == b"text"


def test_damaged_data_is_no_array(tmp_path):
    np.savez(tmp_path / "a.npz", a=np.arange(1000))
    data = bytearray((tmp_path / "a.npz").read_bytes())
    data[2000] ^= 1
    (tmp_path / "a.npz").write_bytes(data)
    with npz.load(tmp_path / "a.npz") as ours, pytest.raises(zipfile.BadZipFile):
        ours["a"]


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_headers_that_lie_cost_no_memory(method, tmp_path):
    honest = npy_bytes(np.arange(10))
    lying = honest.replace(b"(10,), }          ", b"(99999999999,), } ")
    assert lying != honest and len(lying) == len(honest)
    with zipfile.ZipFile(tmp_path / "a.npz", "w", method) as out:
        out.writestr("a.npy", lying)
        out.writestr("cut.npy", honest[:60])
    (tmp_path / "a.npy").write_bytes(lying)
    for mmap in {False, method == zipfile.ZIP_STORED}:
        with npz.load(tmp_path / "a.npz", mmap=mmap) as ours:
            with pytest.raises(ValueError, match="promises"):
                ours["a"]
            with pytest.raises(ValueError):
                ours["cut"]
        with pytest.raises(ValueError, match="promises"):
            npz.load(tmp_path / "a.npy", mmap=mmap)


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_directories_that_lie_cost_no_memory(method, tmp_path):
    path = tmp_path / "a.npz"
    with zipfile.ZipFile(path, "w", method) as out:
        out.writestr("a.npy", npy_bytes(np.arange(100)))
    data = bytearray(path.read_bytes())
    entry = data.index(b"PK\1\2")
    struct.pack_into("<L", data, entry + 24, 0xF0000000)
    path.write_bytes(data)
    with npz.load(path) as ours, pytest.raises(zipfile.BadZipFile):
        ours["a"]


def test_threads_share_an_npz(tmp_path):
    np.savez_compressed(tmp_path / "a.npz", **{str(i): np.full(50_000, i) for i in range(16)})
    with npz.load(tmp_path / "a.npz") as ours:
        wrong = []

        def work():
            for i in range(16):
                if not (ours[str(i)] == i).all():
                    wrong.append(i)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert wrong == []


def test_short_npy_says_so(tmp_path):
    data = npy_bytes(np.arange(1000))
    (tmp_path / "a.npy").write_bytes(data[:-8])
    with pytest.raises(ValueError, match="promises"):
        npz.load(tmp_path / "a.npy")
    assert os.listdir(tmp_path) == ["a.npy"]
