# SPDX-License-Identifier: MIT
"""Where an archive may come from: paths, files, objects without a descriptor."""

from __future__ import annotations

import io
import os
import random
import sys
import tempfile
import zipfile
from typing import Any

import pytest
from hostile_build import STORED, M, archive
from zip_help import Duck, assert_same, pack, text

import pyio_chunked
from pyio_chunked import Limits, ZipFile

# ------------------------------------------------------------------ sources


@pytest.fixture
def members() -> dict[str, bytes]:
    return {f"m{i}": text(i * 137, i) for i in range(60)} | {
        "big": text(700_000),
        "noise": random.Random(3).randbytes(200_000),
    }


def test_source_is_bytes_io(tmp_path, members):
    data = pack(tmp_path / "a.zip", members).read_bytes()
    with assert_same(io.BytesIO(data), data) as zf:
        assert dict(zf.read_many(workers=2)) == members
        assert zf.testzip(workers=2) is None
        assert "file=<_io.BytesIO" in repr(zf)


def test_bytes_are_a_path(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as out:
        out.writestr("a", b"a")
    with ZipFile(os.fsencode(tmp_path / "a.zip")) as zf:
        assert zf.namelist() == ["a"]
    with pytest.raises(ValueError, match=r"io\.BytesIO\(data\)"):
        ZipFile((tmp_path / "a.zip").read_bytes())


@pytest.mark.parametrize(
    ("limits", "error", "words"),
    [
        ({"entries": 1}, TypeError, "limits must be a Limits or None, not dict"),
        ((), TypeError, "not tuple"),
        (Limits(entries=-1), ValueError, "entries must be at least 0, not -1"),
        (Limits(total_size="1G"), TypeError, "total_size must be a number or None, not '1G'"),
        (Limits(entry_size=1.5), TypeError, "entry_size"),
        (Limits(ratio=float("nan")), ValueError, "ratio"),
    ],
)
def test_limits_that_are_none_name_the_field(tmp_path, limits, error, words):
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as out:
        out.writestr("a", b"a")
    with pytest.raises(error, match=words):
        ZipFile(path, limits=limits)
    with ZipFile(path) as zf, pytest.raises(error, match=words):
        zf.extractall(tmp_path / "out", limits=limits)
    assert not (tmp_path / "out").exists()


def test_source_reads_short(tmp_path, members):
    data = pack(tmp_path / "a.zip", members).read_bytes()
    assert_same(Duck(data, 999), data)


def test_source_is_asked_seldom(tmp_path):
    members = {f"m{i}": text(900, i) for i in range(200)}
    data = pack(tmp_path / "a.zip", members).read_bytes()
    duck = Duck(data)
    with ZipFile(duck) as zf:
        opening = duck.calls
        assert dict(zf.read_many()) == members
    assert opening <= 3
    assert duck.calls - opening <= 2 * (len(data) // 65536 + 1)


def test_source_with_a_descriptor_that_leads_elsewhere(tmp_path, members):
    import gzip

    data = pack(tmp_path / "a.zip", members).read_bytes()
    (tmp_path / "a.zip.gz").write_bytes(gzip.compress(data, 1))
    with gzip.open(tmp_path / "a.zip.gz") as file:
        assert_same(file, data)


@pytest.mark.parametrize("buffering", [0, -1])
def test_source_is_a_file(tmp_path, members, buffering):
    path = pack(tmp_path / "a.zip", members)
    with open(path, "rb", buffering) as file:
        zf = assert_same(file, path.read_bytes())
        assert zf.fp is file
        assert zf.filename == str(path)
        zf.close()
        assert not file.closed


def test_source_has_bytes_that_are_not_written_yet(tmp_path):
    with open(tmp_path / "a.zip", "w+b", buffering=1 << 20) as file:
        file.write(archive([M("a", b"still in the buffer")]))
        assert os.stat(tmp_path / "a.zip").st_size == 0
        assert ZipFile(file).read("a") == b"still in the buffer"


def test_source_is_closed_by_its_owner(tmp_path):
    path = pack(tmp_path / "a.zip", {"a": b"right"})
    with open(path, "rb") as file:
        zf = ZipFile(file)
    with open(tmp_path / "other", "wb+") as other:  # may get the same number
        other.write(b"wrong" * 1000)
        other.flush()
        assert zf.read("a") == b"right"
    zf.close()


def test_source_is_temporary(tmp_path):
    data = archive([M("a", text(3000))])
    with tempfile.TemporaryFile(dir=tmp_path) as file:
        file.write(data)
        assert ZipFile(file).read("a") == text(3000)
    with tempfile.SpooledTemporaryFile(max_size=1 << 20) as file:
        file.write(data)
        assert ZipFile(file).read("a") == text(3000)
    with tempfile.NamedTemporaryFile(dir=tmp_path) as file:
        file.write(data)
        file.flush()
        assert ZipFile(file.name).read("a") == text(3000)
        assert ZipFile(file).read("a") == text(3000)


def test_source_raises(tmp_path):
    class Broken(Duck):
        def read(self, n: int = -1) -> bytes:
            if self.calls >= 2:
                raise ConnectionError("gone")
            return super().read(n)

    data = pack(tmp_path / "a.zip", {"a": random.Random(1).randbytes(300_000)}).read_bytes()
    zf = ZipFile(Broken(data))
    with pytest.raises(ConnectionError, match="gone"):
        for _ in range(4):
            zf.read("a")


def test_source_calls_back(tmp_path):
    """A source that uses the archive it belongs to: refused, not a deadlock."""

    class Nosy(Duck):
        zf: Any = None

        def read(self, n: int = -1) -> bytes:
            if self.zf is not None:
                zf, self.zf = self.zf, None
                with pytest.raises(RuntimeError, match="reentrant"):
                    zf.read("a")
            return super().read(n)

    data = pack(tmp_path / "a.zip", {"a": random.Random(1).randbytes(300_000)}).read_bytes()
    source = Nosy(data)
    zf = ZipFile(source)
    source.zf = zf
    assert len(zf.read("a")) == 300_000


def test_a_file_that_shrinks_after_it_was_opened(tmp_path):
    path = pack(
        tmp_path / "a.zip",
        {"a": random.Random(1).randbytes(100_000), "b": random.Random(2).randbytes(900_000)},
        STORED,
    )
    with ZipFile(path) as zf:
        os.truncate(path, 50_000)
        for name in "ab":
            with pytest.raises((EOFError, zipfile.BadZipFile)):
                zf.read(name)
        with pytest.raises(EOFError) as failure:
            zf.read("a")
        assert isinstance(failure.value, zipfile.BadZipFile)


def test_paths_of_every_kind(tmp_path):
    path = pack(tmp_path / "a.zip", {"a": b"x"})
    for given in (str(path), os.fsencode(path), path):
        with ZipFile(given) as zf:
            assert zf.read("a") == b"x"
            assert zf.filename == os.fspath(given)
    fd = os.open(path, os.O_RDONLY)
    with ZipFile(fd) as zf:
        assert zf.read("a") == b"x"
    os.close(fd)


def test_opening_is_audited_and_close_on_exec(tmp_path):
    path = pack(tmp_path / "a.zip", {"a": b"x"})
    events = []
    on = True

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if on and event == "open":
            events.append(arguments[:2])

    sys.addaudithook(hook)
    with ZipFile(path) as zf:
        on = False
        assert events == [(str(path), "rb")]
        assert os.get_inheritable(zf.fp.fileno()) is False
        with open(path, "rb") as file, ZipFile(file) as other:
            assert os.get_inheritable(other._fileno()) is False


def test_no_descriptor_is_left(tmp_path):
    path = pack(tmp_path / "a.zip", {"a": b"x"})
    (tmp_path / "bad").write_bytes(b"no archive")
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        zf = ZipFile(path)
        member = zf.open("a")
        zf.close()
        assert member.read() == b"x"
        member.close()
        with pytest.raises(zipfile.BadZipFile):
            ZipFile(tmp_path / "bad")
        iterator = ZipFile(path).read_many()
        next(iterator)
        del iterator
    assert len(os.listdir("/proc/self/fd")) == before


def test_subclasses(tmp_path):
    class Mine(ZipFile):
        def read(self, name, pwd=None, *, verify=True):
            return super().read(name, pwd, verify=verify)[::-1]

    with Mine(pack(tmp_path / "a.zip", {"a": b"abc"})) as zf:
        assert zf.read("a") == b"cba"
        zf.anything = 5  # type: ignore[attr-defined]


def test_import_does_not_load_zipfile(tmp_path):
    import subprocess

    code = "import sys, pyio_chunked; sys.exit('zipfile' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_small_members_in_order_come_several_at_a_call(tmp_path, rng):
    members = {f"m{i}": text(rng.randrange(1500), i) for i in range(300)}
    path = pack(tmp_path / "a.zip", members)
    core = pyio_chunked._core

    def calls(names: list[str], how: str) -> int | None:
        with ZipFile(path) as zf:
            core._fault_count()
            for name in names:
                if how == "read":
                    data = zf.read(name)
                else:
                    with zf.open(name) as member:
                        data = member.read()
                assert data == members[name]
            made = core._fault_calls()
            core._fault_clear()
            if (
                made.get("pread", 0) > 10
            ):  # a file system, or a build, that can't say what is in the page cache
                assert made["pread"] <= 2 * len(names) + 10
                return None
            return made.get("pread_nowait", 0) + made.get("pread", 0)

    in_order = list(members)
    for names, how, least, most in (
        (in_order, "read", 1, 10),
        (in_order, "open", 1, 10),
        (in_order[::-1], "read", 300, 310),  # who jumps reads nothing else
        (in_order[::-1], "open", 300, 610),
    ):
        made = calls(names, how)
        assert made is None or least <= made <= most


def test_windows_over_neighbours_stay_under_the_pools_limit(tmp_path):
    path = pack(tmp_path / "a.zip", {f"m{i}": text(900, i) for i in range(20)})
    pool = pyio_chunked.pool
    limit = pool.stats().limit
    pool.set_limit(1 << 20)
    try:
        archives = [ZipFile(path) for _ in range(150)] + [
            ZipFile(io.BytesIO(path.read_bytes())) for _ in range(50)
        ]
        for zf in archives:
            for i in range(20):
                assert zf.read(f"m{i}") == text(900, i)
        assert pool.stats().in_use <= 1.01 * (1 << 20)  # with the buffers' own heads
        for zf in archives:
            zf.close()
        assert pool.stats().in_use == 0
    finally:
        pool.set_limit(limit)


def test_idle_archives_leave_room_for_open_members(tmp_path):
    path = pack(tmp_path / "a.zip", {"a": text(900), "b": text(900, 1), "long": text(9_000_000)})
    core = pyio_chunked._core

    def calls() -> int:
        core._fault_count()
        with ZipFile(path) as zf, zf.open("long") as member:
            assert sum(map(len, member)) == 9_000_000
        made = core._fault_calls()
        core._fault_clear()
        return made.get("pread", 0) + made.get("pread_nowait", 0)

    alone = calls()
    idle = [ZipFile(path) for _ in range(200)]
    for zf in idle:
        assert zf.read("a") + zf.read("b") == text(900) + text(900, 1)
    assert calls() <= alone + 5
    for zf in idle:
        zf.close()


@pytest.mark.parametrize("what", ["data", "header"])
def test_a_file_that_was_mended_is_read_again(tmp_path, what):
    path = tmp_path / "a.zip"
    good = archive([M(f"m{i}", text(12_000, i), method=STORED) for i in range(9)])
    bad = bytearray(good)
    bad[good.index(text(12_000, 2)) + (500 if what == "data" else -3)] ^= 255
    path.write_bytes(bad)
    with ZipFile(path) as zf:
        assert zf.read("m0") + zf.read("m1") == text(12_000, 0) + text(12_000, 1)
        with pytest.raises(zipfile.BadZipFile):
            zf.read("m2")
        with path.open("r+b") as file:
            file.write(good)
        assert zf.read("m2") == text(12_000, 2)
        with zf.open("m2") as member:
            assert member.read() == text(12_000, 2)
