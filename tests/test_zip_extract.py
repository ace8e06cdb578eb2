# SPDX-License-Identifier: MIT
"""Extraction: what is written, where, and what stays when something fails."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import shutil
import signal
import stat
import subprocess
import sys
import threading
import time
import zipfile
from pathlib import Path

import pytest
from hostile_build import STORED, M, archive
from zip_help import refused_password

import pyio_chunked
from pyio_chunked import SAFE_LIMITS, LimitError, Limits, ZipFile, _core


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "in"


def make(path: Path, members: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", method) as zf:
        for name, data in members.items():
            zf.writestr(name, data)
    return path


def write(path: Path, *members: M, **more) -> Path:
    path.write_bytes(archive(members, **more))
    return path


def tree(folder: Path) -> dict[str, bytes | None]:
    return {
        str(p.relative_to(folder)): p.read_bytes() if p.is_file() else None
        for p in sorted(folder.rglob("*"))
        if not p.is_dir() or not any(p.iterdir())
    }


SIZES = [0, 1, 8191, 8192, 8193, 65535, 65536, 65537, (1 << 18) - 1, 1 << 18, (1 << 18) + 1, 5 << 20]


@pytest.mark.parametrize("workers", [1, 2, 4, None])
@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_what_zipfile_extracts(tmp_path, target, method, workers, rng):
    members = {
        f"d{i % 7}/e/f{i}": rng.randbytes(n // 2) * 2 + b"x" * (n % 2) for i, n in enumerate(SIZES * 2)
    }
    path = make(tmp_path / "a.zip", members, method)
    with ZipFile(path) as zf:
        zf.extractall(target, workers=workers)
    with zipfile.ZipFile(path) as zf:
        zf.extractall(tmp_path / "reference")
    assert tree(target) == tree(tmp_path / "reference") == members


def test_from_a_file_object(tmp_path, target):
    members = {"a": b"1" * 70000, "b/c": b"", "d/": b""}
    path = make(tmp_path / "a.zip", members)
    with ZipFile(io.BytesIO(path.read_bytes())) as zf:
        zf.extractall(target)
    assert tree(target) == {"a": b"1" * 70000, "b/c": b"", "d": None}


def test_many_members_that_python_extracts(tmp_path, target):
    members = {f"{i % 7}/{i}": b"%d" % i for i in range(2500)}
    with ZipFile(io.BytesIO(make(tmp_path / "a.zip", members).read_bytes())) as zf:
        zf.extractall(target)
    assert {name: body for name, body in tree(target).items() if body is not None} == members


def test_extract_says_where(tmp_path, target):
    path = make(tmp_path / "a.zip", {"x/./y//z": b"1", "d/": b"", "u\u0308": b"2"})
    with ZipFile(path) as zf, zipfile.ZipFile(path) as reference:
        for name in zf.namelist():
            got = zf.extract(name, target)
            assert got == reference.extract(name, tmp_path / "r").replace(f"{tmp_path}/r", str(target))
            assert os.path.exists(got)
        info = zf.getinfo("x/./y//z")
        info.filename = "renamed"
        assert zf.extract(info, target) == str(target / "renamed")
    assert (target / "renamed").read_bytes() == b"1"


def test_into_the_current_folder(tmp_path, monkeypatch):
    path = make(tmp_path / "a.zip", {"f": b"1"})
    (tmp_path / "here").mkdir()
    with monkeypatch.context() as m:
        m.chdir(tmp_path / "here")
        with ZipFile(path) as zf:
            zf.extractall()
            assert zf.extract("f") == str(tmp_path / "here" / "f")
            (tmp_path / "here" / "f").unlink()
            assert zf.extract("f", "") == "f"
            zf.extractall("")
    assert tree(tmp_path / "here") == {"f": b"1"}


def test_only_what_is_asked_for(tmp_path, target):
    path = make(tmp_path / "a.zip", {f"f{i}": b"%d" % i for i in range(9)})
    with ZipFile(path) as zf:
        zf.extractall(target, ["f3", zf.getinfo("f5")])
        assert tree(target) == {"f3": b"3", "f5": b"5"}
        with pytest.raises(KeyError):
            zf.extractall(target, ["f7", "nothing"])
        zf.extractall(tmp_path / "none", [])
    assert not (tmp_path / "none").exists()


def test_an_empty_archive_makes_nothing(tmp_path, target):
    with ZipFile(make(tmp_path / "a.zip", {})) as zf:
        zf.extractall(target)
    assert not target.exists()


@pytest.mark.parametrize("name", ["../evil", "a/../../evil", "/evil", "C:evil", "a\\..\\evil", "//host/evil"])
@pytest.mark.parametrize("as_object", [False, True])
def test_names_that_lead_out(tmp_path, target, name, as_object):
    path = write(tmp_path / "a.zip", M("good", b"1"), M(name, b"2"))
    with ZipFile(io.BytesIO(path.read_bytes()) if as_object else path) as zf:
        with pytest.raises(zipfile.BadZipFile, match="is refused"):
            zf.extractall(target)
        with pytest.raises(zipfile.BadZipFile, match=f"is refused.*at byte {zf.getinfo(name).header_offset}"):
            zf.extract(name, target)
        info = zf.getinfo("good")
        info.filename = name
        with pytest.raises(zipfile.BadZipFile, match="is refused"):
            zf.extract(info, target)
    assert set(os.listdir(tmp_path)) == {"a.zip", "in"}
    assert tree(target) == {"good": b"1"}


def test_no_byte_through_a_link_that_lies_there(tmp_path, target):
    outside = tmp_path / "out"
    outside.mkdir()
    (outside / "kept").write_bytes(b"kept")
    target.mkdir()
    (target / "d").symlink_to(outside)
    (target / "f").symlink_to(outside / "kept")
    path = make(tmp_path / "a.zip", {"f": b"new", "d/x": b"1"})
    with ZipFile(path) as zf, pytest.raises(OSError, match="symbolic link") as caught:
        zf.extractall(target)
    assert caught.value.filename == str(target / "d/x")
    assert tree(outside) == {"kept": b"kept"}
    assert (target / "f").read_bytes() == b"new" and not (target / "f").is_symlink()


def test_links_are_files_unless_asked_for(tmp_path, target):
    link = {"method": STORED, "mode": 0o120777}
    path = write(tmp_path / "a.zip", M("d/l", b"../f", **link), M("f", b"1"))
    with ZipFile(path) as zf:
        zf.extractall(target)
        assert tree(target) == {"d/l": b"../f", "f": b"1"}
        zf.extractall(target, symlinks=True)
        assert os.readlink(target / "d/l") == "../f" and (target / "d/l").read_bytes() == b"1"
        zf.extractall(target, symlinks=True)  # again, over the link
        assert os.readlink(target / "d/l") == "../f"


@pytest.mark.parametrize("text", [b"/etc/passwd", b"..", b"../../f", b"a/../../f", b"", b"x\0y", b"y" * 5000])
def test_links_that_lead_outside(tmp_path, target, text):
    path = write(tmp_path / "a.zip", M("d/l", text, STORED, mode=0o120777))
    expected = "is refused" if text != b"../../f" else "leads outside"
    with ZipFile(path) as zf, pytest.raises((zipfile.BadZipFile, OSError), match=expected):
        if text == b"..":  # inside: the target itself
            zf.extractall(target, symlinks=True)
            raise zipfile.BadZipFile("is refused")
        zf.extractall(target, symlinks=True)
    assert not (target / "d/l").is_symlink() or text == b".."


def test_nothing_of_an_archive_passes_through_its_own_link(tmp_path, target):
    path = write(tmp_path / "a.zip", M("l", b".", STORED, mode=0o120777), M("l/x", b"1"))
    with ZipFile(path) as zf, pytest.raises(OSError):
        zf.extractall(target, symlinks=True)
    assert tree(target) == {"l/x": b"1"}


def test_modes_and_times(tmp_path, target):
    path = write(
        tmp_path / "a.zip",
        M("d/", b"", STORED, mode=0o042750),
        M("d/s", b"1", mode=0o106755),
        M("p", b"1", mode=0o010600, extra=b"UT\5\0\1" + (1234567890).to_bytes(4, "little")),
    )
    with ZipFile(path) as zf:
        zf.extractall(target)
        umask = os.umask(0)
        os.umask(umask)
        for name in ("d/s", "p"):
            assert stat.S_IMODE((target / name).stat().st_mode) == 0o666 & ~umask
            assert stat.S_ISREG((target / name).stat().st_mode)
            assert (target / name).stat().st_mtime > time.time() - 600
        zf.extractall(tmp_path / "kept", preserve=True)
    kept = tmp_path / "kept"
    local = time.mktime((2020, 5, 17, 12, 34, 56, 0, 0, -1))
    assert [
        (stat.S_IMODE(s.st_mode), s.st_mtime) for s in ((kept / n).stat() for n in ("d", "d/s", "p"))
    ] == [
        (0o750, local),
        (0o755, local),
        (0o600, 1234567890),
    ]


@pytest.mark.parametrize("size", [100, 1 << 20])
@pytest.mark.parametrize("workers", [1, 4])
def test_a_bad_member_leaves_no_half_file(tmp_path, target, size, workers):
    members = [M(f"f{i}", os.urandom(size // 100) * 100) for i in range(10)]
    members[6].crc = 1
    path = write(tmp_path / "a.zip", *members)
    with ZipFile(path) as zf, pytest.raises(zipfile.BadZipFile, match="'f6'"):
        zf.extractall(target, workers=workers)
    found = tree(target)
    assert "f6" not in found and not [n for n in found if n.startswith(".")]
    assert set(found) >= {f"f{i}" for i in range(6)}
    assert all(found[m.name] == m.data for m in members if m.name in found)


def test_a_file_that_is_there_is_replaced_whole_or_not_at_all(tmp_path, target):
    target.mkdir()
    (target / "f").write_bytes(b"old")
    os.chmod(target / "f", 0o640)
    bad = M("f", b"1" * 1000, crc=1)
    with ZipFile(write(tmp_path / "a.zip", bad)) as zf, pytest.raises(zipfile.BadZipFile):
        zf.extractall(target)
    assert tree(target) == {"f": b"old"}
    with ZipFile(write(tmp_path / "b.zip", M("f", b"new"))) as zf:
        zf.extractall(target)
    assert tree(target) == {"f": b"new"}
    assert stat.S_IMODE((target / "f").stat().st_mode) == 0o640
    (target / "g").mkdir()
    with ZipFile(write(tmp_path / "c.zip", M("g", b"1"))) as zf, pytest.raises(IsADirectoryError):
        zf.extractall(target)


def test_of_one_name_the_last_is_left(tmp_path, target):
    path = write(tmp_path / "a.zip", *(M("n", b"%d" % i) for i in range(50)))
    with ZipFile(path) as zf:
        zf.extractall(target)
        assert tree(target) == {"n": b"49"}
        infos = zf.infolist()
        zf.extractall(target, infos[:30], workers=4)
        assert tree(target) == {"n": b"29"}


@pytest.mark.parametrize(
    ("limits", "name"),
    [
        (Limits(entries=2), "entries"),
        (Limits(directory_size=100), "directory_size"),
        (Limits(name_length=3), "name_length"),
        (Limits(entry_size=999), "entry_size"),
        (Limits(total_size=2999), "total_size"),
        (Limits(ratio=2.5), "ratio"),
    ],
)
def test_limits_before_the_first_file(tmp_path, target, limits, name):
    path = make(tmp_path / "a.zip", {f"n{i:04}": b"x" * 1000 for i in range(3)})
    with ZipFile(path) as zf:
        zf.extractall(target, limits=Limits(3, 1000, 5, 1000, 3000, 1000.0))
        with pytest.raises(LimitError) as caught:
            zf.extractall(tmp_path / "none", limits=limits)
    assert caught.value.limit == name and caught.value.value > caught.value.allowed
    assert isinstance(caught.value, zipfile.BadZipFile) and isinstance(caught.value, ValueError)
    assert not list((tmp_path / "none").iterdir())


def test_limits_of_the_archive(tmp_path, target):
    path = make(tmp_path / "a.zip", {"a": b"x" * 1000, "b": b"y" * 10})
    for limits in (Limits(entries=1), Limits(directory_size=50), Limits(name_length=0)):
        with pytest.raises(LimitError):
            ZipFile(path, limits=limits)
    for limits in (Limits(entry_size=999), Limits(ratio=50)):
        with ZipFile(path, limits=limits) as zf:
            assert zf.read("b") == b"y" * 10
            for call in (
                lambda: zf.read("a"),
                lambda: zf.open("a"),
                lambda: zf.extractall(target, limits=None),
            ):
                with pytest.raises(LimitError):
                    call()


def test_a_ratio_just_above_its_limit_is_told_as_above(tmp_path):
    path = make(tmp_path / "a.zip", {"hex": os.urandom(1000).hex().encode()})  # about 1.75
    with ZipFile(path, limits=Limits(ratio=1)) as zf, pytest.raises(LimitError) as caught:
        zf.read("hex")
    assert (caught.value.value, caught.value.allowed) == (2, 1)
    assert "'hex'" in str(caught.value)


def test_the_default_limits_are_safe_ones(tmp_path, target):
    assert SAFE_LIMITS == (1_000_000, 256 << 20, 4096, None, None, None)
    path = write(tmp_path / "a.zip", M("n" * 5000, b"1"))
    with ZipFile(path) as zf:
        with pytest.raises(LimitError):
            zf.extractall(target)
        with pytest.raises(OSError, match="too long"):
            zf.extractall(target, limits=None)


@pytest.mark.skipif(shutil.which("zip") is None, reason="no Info-ZIP here")
def test_passwords(tmp_path, target):
    (tmp_path / "f").write_bytes(b"secret words " * 5000)
    subprocess.run(["zip", "-q", "-P", "right", "a.zip", "f"], cwd=tmp_path, check=True)
    wrong = refused_password(tmp_path / "a.zip", "f")
    with ZipFile(tmp_path / "a.zip") as zf:
        with pytest.raises(RuntimeError, match="password"):
            zf.extractall(target)
        with pytest.raises(RuntimeError, match="Bad password"):
            zf.extractall(target, pwd=wrong)
        with pytest.raises(TypeError):
            zf.extractall(target, pwd="right")
        assert tree(target) == {}
        zf.extractall(target, pwd=b"right")
        assert tree(target) == {"f": b"secret words " * 5000}
        zf.setpassword(b"right")
        assert zf.read("f") == b"secret words " * 5000
        zf.extract("f", target)


def test_progress_counts_bytes(tmp_path, target):
    path = make(tmp_path / "a.zip", {f"f{i}": b"x" * 10000 for i in range(100)})
    calls = []
    with ZipFile(path) as zf:
        zf.extractall(target, progress=lambda done, total: calls.append((done, total)))
    assert calls[-1] == (1_000_000, 1_000_000)
    assert calls == sorted(calls)


def test_progress_that_raises_stops_the_work(tmp_path, target):
    path = make(tmp_path / "a.zip", {f"f{i}": b"\0" * (30 << 20) for i in range(4)})

    def stop(done, total):
        if done < total:
            raise KeyError("stop")

    with ZipFile(path) as zf, pytest.raises(KeyError, match="stop") as caught:
        zf.extractall(target, progress=stop)
    assert caught.value.transferred > 0
    assert all(len(data) == 30 << 20 for data in tree(target).values())


def test_audit_events(tmp_path, target):
    path = make(tmp_path / "a.zip", {"d/": b"", "d/f": b"1", "ü": b"2"})
    seen = []
    active = True

    def hook(event, args):
        if active and event in ("open", "os.mkdir"):
            seen.append((event, os.fspath(args[0]) if not isinstance(args[0], int) else args[0]))

    sys.addaudithook(hook)
    try:
        with ZipFile(path) as zf:
            zf.extractall(target)
    finally:
        active = False
    assert ("open", str(path)) in seen
    for event in (("os.mkdir", f"{target}/d"), ("open", f"{target}/d/f"), ("open", f"{target}/ü")):
        assert event in seen


def test_no_python_threads_move_bytes(tmp_path, target):
    path = make(tmp_path / "a.zip", {f"f{i}": b"x" * 3000 for i in range(600)})
    before, counts = threading.active_count(), set()
    with ZipFile(path) as zf:
        zf.extractall(target, workers=4, progress=lambda *_: counts.add(threading.active_count()))
    assert counts == {before}


def test_raced_by_a_thread_that_swaps_folders_for_links(tmp_path, target):
    outside = tmp_path / "out"
    outside.mkdir()
    path = make(tmp_path / "a.zip", {f"d{i % 3}/e/f{i}": b"x" for i in range(300)})
    ended = threading.Event()

    def swap():
        while not ended.is_set():
            for i in range(3):
                try:
                    os.rename(target / f"d{i}", tmp_path / f"away{i}")
                    os.symlink(outside, target / f"d{i}")
                    time.sleep(0)
                    os.unlink(target / f"d{i}")
                    os.rename(tmp_path / f"away{i}", target / f"d{i}")
                except OSError:
                    pass

    target.mkdir()
    thread = threading.Thread(target=swap)
    thread.start()
    try:
        with ZipFile(path) as zf:
            for _ in range(60):
                with contextlib.suppress(OSError):
                    zf.extractall(target)
    finally:
        ended.set()
        thread.join()
    assert list(outside.iterdir()) == []


def test_is_zipfile(tmp_path):
    path = make(tmp_path / "a.zip", {"f": b"1"})
    assert pyio_chunked.is_zipfile(path) and pyio_chunked.is_zipfile(str(path))
    with open(path, "rb") as f:
        assert pyio_chunked.is_zipfile(f)
    assert pyio_chunked.is_zipfile(io.BytesIO(path.read_bytes()))
    assert not pyio_chunked.is_zipfile(io.BytesIO(b"no"))
    assert not pyio_chunked.is_zipfile(tmp_path / "missing")
    assert not pyio_chunked.is_zipfile(__file__)


def test_path(tmp_path):
    path = make(tmp_path / "a.zip", {"a.txt": b"a", "d/b.txt": b"b", "d/e/c.txt": b"c"})
    ours, reference = pyio_chunked.Path(str(path)), zipfile.Path(str(path))
    assert isinstance(ours, zipfile.Path)

    def walk(p):
        return {
            (q.at, q.is_dir(), q.is_file(), q.name, None if q.is_dir() else q.read_bytes())
            for q in p.iterdir()
        }

    assert walk(ours) == walk(reference)
    assert walk(ours / "d") == walk(reference / "d")
    assert (ours / "d" / "e" / "c.txt").read_text(encoding="utf-8") == "c"
    assert (ours / "d").parent.at == "" and (ours / "nothing").exists() is False
    assert isinstance(ours / "d", pyio_chunked.Path)
    reference.root.close()
    ours.root.close()


CALLS = {
    "openat": errno.EIO,
    "write": errno.ENOSPC,
    "close": errno.EIO,
    "pread": errno.EIO,
    "mkdirat": errno.EACCES,
    "fchmod": errno.EPERM,
    "futimens": errno.EPERM,
    "renameat": errno.EIO,
    "fstatat": errno.EIO,
    "getrandom": errno.ENOSYS,
    "malloc": errno.ENOMEM,
    "calloc": errno.ENOMEM,
    "realloc": errno.ENOMEM,
    "thread_start": errno.EAGAIN,
}


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("call", CALLS)
def test_each_call_fails_once(tmp_path, call, workers):
    """An error that says what it was about, or success: never half a file, a descriptor or pooled memory left."""
    members = {
        "d/e/f": b"1" * 500,
        "big": os.urandom(1 << 19),
        "over": b"new" * 100,
        "g/": b"",
        "g/h": b"2" * 90000,
    }
    path = make(tmp_path / "a.zip", members)
    descriptors = len(os.listdir("/proc/self/fd"))
    failed = 0
    for k in range(1, 30):
        target = tmp_path / f"in{k}"
        target.mkdir()
        (target / "over").write_bytes(b"old")
        with ZipFile(path) as zf:
            zf.read("over")
            pyio_chunked.pool.trim()
            _core._fault_add(call, error=CALLS[call], first=k)
            try:
                zf.extractall(target, workers=workers, preserve=True)
            except OSError as error:
                failed += 1
                assert error.errno in (CALLS[call], errno.ELOOP)
                assert error.filename
                assert error.transferred >= 0
            except MemoryError:
                failed += 1
            else:
                made = tree(target)
                assert made.pop("g", None) is None
                assert made == {name: data for name, data in members.items() if name != "g/"}
            reached = _core._fault_calls().get(call, 0) >= k
            _core._fault_clear()
        for name, data in tree(target).items():
            assert data is None or data == members[name] or (name, data) == ("over", b"old"), name
        if not reached:
            break
    assert failed > 0 or call in ("thread_start", "calloc", "realloc")
    assert len(os.listdir("/proc/self/fd")) == descriptors
    assert pyio_chunked.pool.stats().in_use == 0


@pytest.mark.parametrize("size", [1, 7, 4096])
def test_short_writes_and_reads(tmp_path, target, size):
    members = {"a": os.urandom(30000), "b": os.urandom(9000)}
    path = make(tmp_path / "a.zip", members)
    with ZipFile(path) as zf:
        _core._fault_add("write", max_nbytes=size, times=10**6)
        _core._fault_add("pread", max_nbytes=max(size, 200), times=10**6)
        zf.extractall(target, workers=2)
    _core._fault_clear()
    assert tree(target) == members


def test_a_signal_stops_the_work(tmp_path, target):
    path = make(tmp_path / "a.zip", {f"f{i}": b"\0" * (200 << 20) for i in range(3)})

    def stop(*_):
        raise TimeoutError("signal")

    before = signal.signal(signal.SIGALRM, stop)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with ZipFile(path) as zf, pytest.raises(TimeoutError, match="signal") as caught:
            while True:  # until the signal finds it at work
                zf.extractall(target, workers=2)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert caught.value.transferred >= 0
    assert all(len(data) == 200 << 20 for data in tree(target).values())


def test_few_descriptors(tmp_path):
    path = make(tmp_path / "a.zip", {f"d{i}/e/f/g": b"1" for i in range(200)})
    code = (
        "import resource, sys\nfrom pyio_chunked import ZipFile\n"
        "zf = ZipFile(sys.argv[1])\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (16, 16))\n"
        "zf.extractall(sys.argv[2], workers=1)"
    )
    subprocess.run([sys.executable, "-c", code, path, tmp_path / "in"], check=True)
    assert len(tree(tmp_path / "in")) == 200


def test_in_a_child_of_fork(tmp_path, target):
    path = make(tmp_path / "a.zip", {f"f{i}": b"x" * 5000 for i in range(500)})
    with ZipFile(path) as zf:
        zf.extractall(tmp_path / "before", workers=3)
        child = os.fork()
        if child == 0:
            status = 1
            try:
                zf.extractall(target, workers=3)
                status = 0
            finally:
                os._exit(status)
        zf.extractall(tmp_path / "after", workers=3)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert tree(target) == tree(tmp_path / "after") == tree(tmp_path / "before")


def test_many_threads_extract_one_archive(tmp_path):
    path = make(tmp_path / "a.zip", {f"d{i % 5}/f{i}": b"%d" % i * 999 for i in range(200)})
    with ZipFile(path) as zf:
        threads = [threading.Thread(target=zf.extractall, args=(tmp_path / f"in{i}",)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len({repr(tree(tmp_path / f"in{i}")) for i in range(4)}) == 1


def test_descriptors_are_close_on_exec(tmp_path, target):
    path = make(tmp_path / "a.zip", {f"f{i}": b"x" * 10 for i in range(50)})
    seen = []

    def look(*_):
        for fd in os.listdir("/proc/self/fd"):
            with contextlib.suppress(OSError):
                seen.append((fd, os.get_inheritable(int(fd)), os.readlink(f"/proc/self/fd/{fd}")))

    with ZipFile(path) as zf:
        zf.extractall(target, progress=look)
    ours = [row for row in seen if str(tmp_path) in row[2]]
    assert ours and not any(row[1] for row in ours)
