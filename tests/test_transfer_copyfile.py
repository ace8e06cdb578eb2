# SPDX-License-Identifier: MIT
"""copyfile, copy and copyfileobj: shutil's rules and more."""

from __future__ import annotations

import errno
import io
import os
import shutil
import socket
import stat
import sys
import tempfile
import threading
from pathlib import Path

import pytest
from thread_help import in_child, wait_for
from transfer_help import CHUNK, FILE_METHODS, KERNEL, counted, fault, file_of, noise

import pyio_chunked
from pyio_chunked import Transfer, copy, copyfile, copyfileobj

DATA = noise(CHUNK + 99)


@pytest.fixture
def source(tmp_path):
    return file_of(tmp_path / "source", DATA)


@pytest.fixture
def target(tmp_path):
    return tmp_path / "target"


@pytest.mark.parametrize("size", [0, 1, 1000, 4096, 16384, CHUNK, CHUNK + 1])
@pytest.mark.parametrize("kind", [str, os.fsencode, Path])
def test_copies(tmp_path, size, kind):
    source = file_of(tmp_path / "source", noise(size))
    result = copyfile(kind(source), kind(tmp_path / "target"))
    assert (tmp_path / "target").read_bytes() == source.read_bytes()
    assert isinstance(result, Transfer)
    assert result.count == size


@pytest.mark.parametrize("old", [b"", b"short", noise(CHUNK * 2)])
@pytest.mark.parametrize("method", ["auto", *FILE_METHODS])
def test_over_an_old_file(source, target, old, method):
    target.write_bytes(old)
    target.chmod(0o640)
    inode = target.stat().st_ino
    copyfile(source, target, method=method)
    assert target.read_bytes() == DATA
    assert (target.stat().st_ino, stat.S_IMODE(target.stat().st_mode)) == (inode, 0o640)
    copyfile(file_of(source, b""), target, method=method)
    assert target.read_bytes() == b""


def test_new_files_follow_the_umask(source, target):
    before = os.umask(0o027)
    try:
        copyfile(source, target)
    finally:
        os.umask(before)
    assert stat.S_IMODE(target.stat().st_mode) == 0o640


def test_symlinks(source, tmp_path):
    link, dangling = tmp_path / "link", tmp_path / "dangling"
    link.symlink_to(source)
    dangling.symlink_to(tmp_path / "made")
    assert copyfile(link, tmp_path / "followed").count == len(DATA)
    assert not (tmp_path / "followed").is_symlink()
    assert copyfile(link, tmp_path / "kept", follow_symlinks=False) == Transfer(0, "symlink", 0, ())
    assert os.readlink(tmp_path / "kept") == str(source)
    assert copyfile(source, tmp_path / "plain", follow_symlinks=False).count == len(DATA)
    copyfile(source, dangling)  # through the link, as open does
    assert (tmp_path / "made").read_bytes() == DATA
    assert dangling.is_symlink()
    with pytest.raises(FileExistsError):
        copyfile(link, tmp_path / "plain", follow_symlinks=False)


@pytest.mark.parametrize("function", [copyfile, copy])
@pytest.mark.parametrize("atomic", [False, True])
def test_a_link_takes_the_options_too(source, tmp_path, function, atomic):
    link, target = tmp_path / "link", tmp_path / "target"
    link.symlink_to(source)
    seen = []
    function(
        link, target, follow_symlinks=False, atomic=atomic, sync=True, progress=lambda *a: seen.append(a)
    )
    assert seen == [(0, 0)]  # once at the end
    assert os.readlink(target) == str(source)
    target.unlink()

    def stop(done, total):
        raise KeyError("enough")

    if atomic:
        target.write_bytes(b"old")
    with pytest.raises(KeyError, match="enough") as caught:
        function(link, target, follow_symlinks=False, atomic=atomic, progress=stop)
    assert caught.value.transferred == 0
    assert not target.is_symlink()
    assert target.exists() == atomic
    assert len(list(tmp_path.iterdir())) == 2 + atomic
    for wrong, error in (
        ({"sparse": "some"}, ValueError),
        ({"progress": 5}, TypeError),
        ({"bogus": 1}, TypeError),
    ):
        with pytest.raises(error):
            function(link, tmp_path / "none", follow_symlinks=False, **wrong)
    assert not (tmp_path / "none").is_symlink()


def test_same_file(source, tmp_path):
    os.link(source, tmp_path / "hard")
    (tmp_path / "soft").symlink_to(source)
    for other in (source, str(source), tmp_path / "hard", tmp_path / "soft", tmp_path / "." / "source"):
        for options in ({}, {"atomic": True}, {"sync": True}, {"follow_symlinks": False}):
            with pytest.raises(shutil.SameFileError) as ours:
                copyfile(source, other, **options)
            with pytest.raises(shutil.SameFileError) as theirs:
                shutil.copyfile(source, other)
            assert str(ours.value) == str(theirs.value)
    assert source.read_bytes() == DATA


def test_directories(source, tmp_path):
    for options in ({}, {"atomic": True}):
        with pytest.raises(IsADirectoryError) as caught:
            copyfile(tmp_path, tmp_path / "target", **options)
        assert caught.value.filename == str(tmp_path)
        assert not (tmp_path / "target").exists()
        with pytest.raises(IsADirectoryError) as caught:
            copyfile(source, tmp_path, **options)
        assert caught.value.filename == str(tmp_path)
    with pytest.raises(FileNotFoundError, match="Directory does not exist"):
        copyfile(source, str(tmp_path / "new") + "/")
    with pytest.raises(FileNotFoundError) as caught:
        copyfile(source, tmp_path / "none" / "target")
    assert caught.value.filename == str(tmp_path / "none" / "target")
    with pytest.raises(FileNotFoundError) as caught:
        copyfile(tmp_path / "none", tmp_path / "target")
    assert caught.value.filename == str(tmp_path / "none")
    assert not (tmp_path / "target").exists()


@pytest.mark.parametrize("reader", [False, True])
def test_fifos_are_refused_without_blocking(source, target, tmp_path, reader):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    fd = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK) if reader else -1
    for options in ({}, {"atomic": True}):
        with pytest.raises(shutil.SpecialFileError) as ours:
            copyfile(fifo, target, **options)
        with pytest.raises(shutil.SpecialFileError) as theirs:
            shutil.copyfile(fifo, target)
        assert str(ours.value) == str(theirs.value)
        with pytest.raises(shutil.SpecialFileError):
            copyfile(source, fifo, **options)
    assert not target.exists()
    assert stat.S_ISFIFO(fifo.stat().st_mode)
    if reader:
        os.close(fd)


def test_sockets_and_devices(source, target, tmp_path):
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(tmp_path / "socket"))
    with pytest.raises(OSError) as caught:
        copyfile(tmp_path / "socket", target)
    assert caught.value.errno == errno.ENXIO
    server.close()
    assert copyfile(source, "/dev/null").count == len(DATA)
    assert copyfile(source, "/dev/null", atomic=True).count == len(DATA)
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    assert copyfile("/dev/null", target).count == 0
    with pytest.raises(ValueError, match="ends"):
        copyfile("/dev/zero", target)
    with pytest.raises(OSError) as caught:
        copyfile(source, "/dev/full")
    assert caught.value.errno == errno.ENOSPC
    assert stat.S_ISCHR(os.stat("/dev/full").st_mode)


@pytest.mark.skipif(os.geteuid() != 0, reason="changes its user: needs root")
def test_rules_come_before_permissions():
    # Not in tmp_path: pytest, each time it starts, closes that to other users.
    with tempfile.TemporaryDirectory() as folder:
        open_to_all = Path(folder)
        open_to_all.chmod(0o755)
        source = file_of(open_to_all / "source", DATA)
        source.chmod(0o444)
        os.mkfifo(open_to_all / "fifo", 0o400)

        def as_nobody() -> None:
            os.setgid(65534)
            os.setuid(65534)
            rules_before_permissions(open_to_all)

        wait_for(in_child(as_nobody))


def rules_before_permissions(folder: Path) -> None:
    with pytest.raises(shutil.SameFileError):
        copyfile(folder / "source", folder / "source")
    with pytest.raises(shutil.SpecialFileError):
        copyfile(folder / "source", folder / "fifo")
    with pytest.raises(PermissionError) as caught:
        copyfile(folder / "source", folder / "target")
    assert caught.value.filename == str(folder / "target")


# ------------------------------------------------------------- failing halfway


def test_error_names_both_files(source, target):
    for call in ("clone", "copy_file_range", "sendfile", "pwrite"):
        pyio_chunked._core._fault_add(call, error=errno.EDQUOT, times=99)
    with pytest.raises(OSError) as caught:
        copyfile(source, target)
    error = caught.value
    assert (error.filename, error.filename2) == (str(source), str(target))
    assert (error.transferred, error.source_offset, error.target_offset) == (0, 0, 0)
    assert not target.exists()


def test_old_target_that_got_nothing_is_removed(source, target, tmp_path):
    """It was emptied already; but a link's target stays, as it isn't ours to remove."""
    target.write_bytes(b"old")
    with fault("pwrite", error=errno.ENOSPC), pytest.raises(OSError):
        copyfile(source, target, method="chunked")
    assert not target.exists()
    target.write_bytes(b"old")
    (tmp_path / "link").symlink_to(target)
    with fault("pwrite", error=errno.ENOSPC), pytest.raises(OSError):
        copyfile(source, tmp_path / "link", method="chunked")
    assert target.read_bytes() == b""
    assert (tmp_path / "link").is_symlink()


def test_full_file_system(tmp_path):
    """RLIMIT_FSIZE: what fitted stays, nothing is retried by another way."""
    import resource

    source = file_of(tmp_path / "source", noise(100_000))

    def work() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, 40_000))
        for method in ("auto", *FILE_METHODS):
            target = tmp_path / f"target-{method}"
            try:
                copyfile(source, target, method=method)
            except OSError as error:
                assert error.errno == errno.EFBIG, error
                assert error.transferred == 40_000, (method, error.transferred)
                assert target.stat().st_size == 40_000
            else:
                raise AssertionError(method)

    wait_for(in_child(work))


def test_progress(tmp_path, target):
    source = file_of(tmp_path / "source", noise(1 << 20) * 40)
    size = 40 << 20
    seen = []
    copyfile(source, target, progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (size, size)
    assert seen == sorted(seen)
    seen.clear()
    copyfile(file_of(source, b""), target, progress=lambda *args: seen.append(args))
    assert len(seen) == 1
    assert seen[0][0] == 0
    file_of(source, noise(1 << 20) * 40)

    def stop(done, total):
        seen.append(done)
        raise KeyError

    for options in ({"method": "chunked"}, {"reflink": "never"}):
        seen.clear()
        with pytest.raises(KeyError) as caught:
            copyfile(source, target, progress=stop, **options)
        assert caught.value.transferred == seen[0]
        if seen[0]:
            assert target.stat().st_size == seen[0]
        with pytest.raises(KeyError):
            copyfile(source, target.with_name("atomic"), progress=stop, atomic=True, **options)
        assert not target.with_name("atomic").exists()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["source", "target"]
    assert copyfile(source, target, progress=True).count == size


@pytest.mark.parametrize("size", [1, 4096, 1 << 20])
def test_progress_of_one_slice_knows_the_total(tmp_path, target, size):
    source = file_of(tmp_path / "source", noise(size))
    seen = []
    copyfile(source, target, progress=lambda *args: seen.append(args))
    assert seen == [(size, size)]


def test_progress_that_raises_at_the_end_keeps_the_old_file(tmp_path, target):
    source = file_of(tmp_path / "source", noise(4096))
    file_of(target, b"old")

    def stop(done, total):
        assert done == total
        raise KeyError

    with pytest.raises(KeyError) as caught:
        copyfile(source, target, atomic=True, progress=stop)
    assert caught.value.transferred == 4096
    assert target.read_bytes() == b"old"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["source", "target"]
    with pytest.raises(KeyError):
        copyfile(source, target, progress=stop)
    assert target.read_bytes() == source.read_bytes()


# ------------------------------------------------------------- atomic, sync


@pytest.mark.parametrize("sync", [False, True])
def test_atomic(source, target, tmp_path, sync):
    assert copyfile(source, target, atomic=True, sync=sync).count == len(DATA)
    assert target.read_bytes() == DATA
    target.write_bytes(b"old")
    target.chmod(0o604)
    inode = target.stat().st_ino
    link = tmp_path / "link"
    link.symlink_to("target")
    copyfile(source, link, atomic=True, sync=sync)
    assert link.is_symlink()
    assert target.read_bytes() == DATA
    assert target.stat().st_ino != inode
    assert stat.S_IMODE(target.stat().st_mode) == 0o604
    assert sorted(p.name for p in tmp_path.iterdir()) == ["link", "source", "target"]
    copyfile(os.fsencode(source), os.fsencode(target), atomic=True)
    copyfile(link, tmp_path / "link2", atomic=True, follow_symlinks=False)
    assert os.readlink(tmp_path / "link2") == "target"


@pytest.mark.parametrize(
    "call",
    [
        "openat",
        "fstat",
        "fstatat",
        "pread",
        "pwrite",
        "fchmod",
        "fsync",
        "close",
        "renameat",
        "readlinkat",
        "getrandom",
        "malloc",
    ],
)
def test_atomic_failure_leaves_the_old_file(source, target, tmp_path, call):
    target.write_bytes(b"old")
    for k in range(1, 5):
        pyio_chunked._core._fault_add(call, error=errno.EIO, first=k)
        try:
            copyfile(source, target, atomic=True, sync=True, method="chunked")
        except OSError as error:
            # Only the folder's fsync comes behind the rename.
            assert target.read_bytes() == b"old" or (call in ("fsync", "openat", "malloc") and k > 1)
            names = {str(error.filename), str(error.filename2)}
            assert not any(name.endswith(".tmp") for name in names)
            target.write_bytes(b"old")
        except MemoryError:
            target.write_bytes(b"old")
        else:
            target.write_bytes(b"old")
        finally:
            pyio_chunked._core._fault_clear()
        assert sorted(p.name for p in tmp_path.iterdir()) == ["source", "target"]


def test_sync_is_fsync_of_file_and_folder(source, target):
    for options in ({}, {"atomic": True}):
        with counted() as calls:
            copyfile(source, target, sync=True, **options)
        assert calls["fsync"] == 2
        for k in (1, 2):
            with fault("fsync", error=errno.EIO, first=k), pytest.raises(OSError) as caught:
                copyfile(source, target, sync=True, **options)
            assert caught.value.errno == errno.EIO
    with counted() as calls:
        copyfile(source, target)
    assert "fsync" not in calls


# ------------------------------------------------------------------- audit


def events_of(work) -> list[tuple]:
    events = []
    active = True

    def hook(name, args):
        if active and (name == "open" or name.startswith("shutil.")):
            args = tuple(args)
            events.append((name, *args))

    sys.addaudithook(hook)
    try:
        work()
    finally:
        active = False
    return events


def test_audit_events(source, target, tmp_path):
    read = ("open", str(source), "r", os.O_RDONLY | os.O_CLOEXEC)
    write = ("open", str(target), "w", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC)
    assert events_of(lambda: copyfile(source, target)) == [("shutil.copyfile", source, target), read, write]
    assert events_of(lambda: shutil.copyfile(source, target)) == [
        ("shutil.copyfile", source, target),
        read,
        write,
    ]
    events = events_of(lambda: copy(source, target))
    assert sorted(event[0] for event in events) == ["open", "open", "shutil.copyfile", "shutil.copystat"]


def test_an_audit_hook_may_forbid(source, target):
    code = """
import sys, pyio_chunked
def hook(name, args):
    if name == sys.argv[3] and (name != "open" or str(args[0]) == sys.argv[2]):
        raise PermissionError("forbidden")
sys.addaudithook(hook)
try:
    pyio_chunked.copyfile(sys.argv[1], sys.argv[2])
except PermissionError as error:
    print(error)
"""
    import subprocess

    for event in ("shutil.copyfile", "open"):
        done = subprocess.run(
            [sys.executable, "-c", code, source, target, event], capture_output=True, text=True, check=True
        )
        assert done.stdout == "forbidden\n"
        assert not target.exists()


# -------------------------------------------------------------------- copy


def test_copy_takes_mode_times_and_attributes(source, target):
    source.chmod(0o640)
    os.utime(source, ns=(1_234_567_890_123_456_789, 987_654_321_987_654_321))
    try:
        if not KERNEL:  # POSIX has no extended attributes
            raise OSError(errno.ENOTSUP, "not in this build")
        os.setxattr(source, "user.test", b"value")
        os.setxattr(source, "user.empty", b"")
    except OSError as error:
        assert error.errno == errno.ENOTSUP
    assert copy(source, target) == target
    one, two = source.stat(), target.stat()
    assert stat.S_IMODE(two.st_mode) == 0o640
    assert (two.st_atime_ns, two.st_mtime_ns) == (1_234_567_890_123_456_789, one.st_mtime_ns)
    assert target.read_bytes() == DATA
    assert {n: os.getxattr(target, n) for n in os.listxattr(target)} == {
        n: os.getxattr(source, n) for n in os.listxattr(source)
    }


def test_copy_into_a_folder_and_links(source, tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    assert copy(source, folder) == os.path.join(folder, "source")
    assert (folder / "source").read_bytes() == DATA
    assert copy(str(source), str(folder)) == shutil.copy2(str(source), str(folder))
    link = tmp_path / "link"
    link.symlink_to("source")
    assert copy(link, folder, follow_symlinks=False) == os.path.join(folder, "link")
    assert os.readlink(folder / "link") == "source"
    assert copy(source, tmp_path / "atomic", atomic=True, sync=True)
    assert (tmp_path / "atomic").stat().st_mtime_ns == source.stat().st_mtime_ns
    with pytest.raises(TypeError):
        copy(source, folder, wrong=1)
    with pytest.raises(TypeError):
        copyfile(source, folder / "x", metadata=True)


@pytest.mark.parametrize("error", [errno.EPERM, errno.ENOTSUP, errno.ENODATA])
def test_attributes_that_cannot_be_set_are_passed_over(source, target, error):
    with fault("flistxattr", error=error):
        copy(source, target)
    assert target.read_bytes() == DATA


# -------------------------------------------------------------- copyfileobj


def test_copyfileobj_files(source, target):
    with open(source, "rb") as one, open(target, "wb") as two:
        one.read(3)
        two.write(b"head ")
        assert copyfileobj(one, two) is None
        assert (one.tell(), two.tell()) == (len(DATA), len(DATA) + 2)
    assert target.read_bytes() == b"head " + DATA[3:]


@pytest.mark.parametrize("length", [0, 1, 1000, 1 << 20, -1])
def test_copyfileobj_objects(length):
    for make in (io.BytesIO, lambda data: io.BufferedReader(io.BytesIO(data))):
        ours, theirs = io.BytesIO(), io.BytesIO()
        copyfileobj(make(DATA[:5000]), ours, length)
        shutil.copyfileobj(make(DATA[:5000]), theirs, length)
        assert ours.getvalue() == theirs.getvalue() == DATA[:5000]


def test_copyfileobj_text(tmp_path):
    text = "zażółć\n" * 1000
    one, two = io.StringIO(text), io.StringIO()
    copyfileobj(one, two)
    assert two.getvalue() == text
    with open(tmp_path / "t", "w", encoding="utf-8") as file:
        copyfileobj(io.StringIO(text), file)
    with open(tmp_path / "t", encoding="utf-8") as file:
        out = io.StringIO()
        copyfileobj(file, out, 7)
    assert out.getvalue() == text
    with pytest.raises(TypeError):
        copyfileobj(io.StringIO(text), io.BytesIO())
    with pytest.raises(TypeError):
        copyfileobj(io.BytesIO(b"x"), io.StringIO())


def test_copyfileobj_gives_bytes_to_duck_types():
    """Drop-in: a write that keeps what it gets, or calls its methods."""

    kept: list[bytes] = []

    class Keeper:
        def write(self, data):
            kept.append(data.upper())

    copyfileobj(io.BytesIO(b"abc"), Keeper())
    assert kept == [b"ABC"]
    with pytest.raises(AttributeError):
        copyfileobj(object(), io.BytesIO())


# ------------------------------------------------------------------- threads


def test_many_threads_copy(tmp_path):
    sources = [file_of(tmp_path / f"s{i}", noise(50_000 + i, i)) for i in range(8)]
    errors = []

    def work(i: int) -> None:
        try:
            for k in range(30):
                copyfile(sources[i], tmp_path / f"t{i}", method=("auto", "chunked", "mapped")[k % 3])
                assert (tmp_path / f"t{i}").read_bytes() == sources[i].read_bytes()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
