# SPDX-License-Identifier: MIT
"""copytree: shutil's rules, many threads, one error at the end."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import stat
import sys
import threading
from pathlib import Path

import pytest
from transfer_help import fault, noise

import pyio_chunked
from pyio_chunked import copytree


@pytest.fixture
def tree(tmp_path):
    root = tmp_path / "tree"
    for i in range(3):
        folder = root / f"d{i}" / "deep"
        folder.mkdir(parents=True)
        for k in range(40):
            (folder / f"f{k}").write_bytes(noise(100 * k, k))
    (root / "big").write_bytes(noise(1 << 20) * 9)
    (root / "empty").mkdir()
    (root / "run.sh").write_text("#!/bin/sh\n")
    (root / "run.sh").chmod(0o751)
    os.utime(root / "d0", (1_000_000, 2_000_000))
    return root


def listing(root: Path) -> dict[str, tuple]:
    out = {}
    for path in sorted([root, *root.rglob("*")]):
        st = path.lstat()
        name = str(path.relative_to(root))
        if path.is_symlink():
            out[name] = ("link", os.readlink(path))
        elif path.is_dir():
            out[name] = ("dir", stat.S_IMODE(st.st_mode), st.st_mtime_ns)
        else:
            out[name] = ("file", stat.S_IMODE(st.st_mode), st.st_mtime_ns, path.read_bytes())
    return out


@pytest.mark.parametrize("workers", [None, 1, 2, 8])
@pytest.mark.parametrize("kind", [str, os.fsencode, Path])
def test_copies_what_shutil_copies(tree, tmp_path, workers, kind):
    before = threading.enumerate()
    result = copytree(kind(tree), kind(tmp_path / "ours"), workers=workers)
    assert result == kind(tmp_path / "ours")
    shutil.copytree(tree, tmp_path / "theirs")
    assert listing(tmp_path / "ours") == listing(tmp_path / "theirs") == listing(tree)
    assert threading.enumerate() == before


def test_options_reach_each_file(tree, tmp_path):
    copytree(tree, tmp_path / "a", sparse="always", reflink="never", method="auto", sync=True)
    copytree(tree, tmp_path / "b", method="chunked", atomic=True)
    assert listing(tmp_path / "a") == listing(tmp_path / "b") == listing(tree)
    for wrong in ({"sparse": "x"}, {"method": "x"}, {"reflink": "x"}, {"workers": 0}, {"workers": -1}):
        with pytest.raises(ValueError):
            copytree(tree, tmp_path / "c", **wrong)
    with pytest.raises(TypeError):
        copytree(tree, tmp_path / "c", progress=5)


@pytest.mark.parametrize("symlinks", [False, True])
@pytest.mark.parametrize("dangling", [False, True])
def test_symlinks(tree, tmp_path, symlinks, dangling):
    (tree / "to_file").symlink_to("run.sh")
    (tree / "to_folder").symlink_to("d1")
    if dangling:
        (tree / "to_nothing").symlink_to("nothing")
    outcomes = []
    for function, name in ((copytree, "ours"), (shutil.copytree, "theirs")):
        try:
            function(tree, tmp_path / name, symlinks)
            outcomes.append(None)
        except shutil.Error as error:
            outcomes.append([(Path(a).name, Path(b).name) for a, b, _ in error.args[0]])
    assert outcomes[0] == outcomes[1]
    assert (outcomes[0] is None) == (symlinks or not dangling)
    assert listing(tmp_path / "ours") == listing(tmp_path / "theirs")


def test_ignore_dangling(tree, tmp_path):
    (tree / "to_nothing").symlink_to("nothing")
    copytree(tree, tmp_path / "ours", ignore_dangling_symlinks=True)
    assert not os.path.lexists(tmp_path / "ours" / "to_nothing")


def test_ignore(tree, tmp_path):
    asked = []

    def ignore(folder, names):
        asked.append((folder, sorted(names)))
        return {"d1", "f3", "run.sh"}

    copytree(tree, tmp_path / "ours", ignore=ignore)
    ours, asked_by_us = listing(tmp_path / "ours"), sorted(asked)
    asked.clear()
    shutil.copytree(tree, tmp_path / "theirs", ignore=ignore)
    assert ours == listing(tmp_path / "theirs")
    assert asked_by_us == sorted(asked)
    assert "d1" not in ours
    copytree(tree, tmp_path / "more", ignore=shutil.ignore_patterns("f*", "big"))
    assert "big" not in listing(tmp_path / "more")


def test_dirs_exist_ok(tree, tmp_path):
    copytree(tree, tmp_path / "ours")
    with pytest.raises(FileExistsError):
        copytree(tree, tmp_path / "ours")
    (tmp_path / "ours" / "d0" / "extra").write_text("stays")
    (tmp_path / "ours" / "run.sh").write_text("changed and longer than before")
    copytree(tree, tmp_path / "ours", dirs_exist_ok=True)
    assert (tmp_path / "ours" / "d0" / "extra").read_text() == "stays"
    assert (tmp_path / "ours" / "run.sh").read_bytes() == (tree / "run.sh").read_bytes()


def test_copy_function(tree, tmp_path):
    called = []

    def function(src, dst):
        called.append(Path(src).name)
        if src.endswith("f7"):
            raise OSError(errno.EIO, "made up")
        return pyio_chunked.copy(src, dst)

    with pytest.raises(shutil.Error) as caught:
        copytree(str(tree), str(tmp_path / "ours"), copy_function=function)
    assert len(caught.value.args[0]) == 3
    assert len(called) == 122


def test_errors_are_collected(tree, tmp_path):
    os.mkfifo(tree / "fifo")
    (tree / "d2" / "taken").write_text("x")
    (tmp_path / "ours" / "d2" / "taken").mkdir(parents=True)
    with pytest.raises(shutil.Error) as ours:
        copytree(tree, tmp_path / "ours", dirs_exist_ok=True, workers=2)
    (tmp_path / "theirs" / "d2" / "taken").mkdir(parents=True)
    with pytest.raises(shutil.Error) as theirs:
        shutil.copytree(tree, tmp_path / "theirs", dirs_exist_ok=True)

    def told(error):
        return sorted((Path(a).name, why.replace("ours", "theirs")) for a, _, why in error.value.args[0])

    assert told(ours) == told(theirs)
    assert listing(tmp_path / "ours").keys() == listing(tmp_path / "theirs").keys()


def test_missing_source_and_file_source(tree, tmp_path):
    with pytest.raises(FileNotFoundError):
        copytree(tmp_path / "none", tmp_path / "ours")
    with pytest.raises(NotADirectoryError):
        copytree(tree / "run.sh", tmp_path / "ours")
    assert not (tmp_path / "ours").exists()


@pytest.mark.parametrize("workers", [1, 4])
def test_full_disk_halfway(tree, tmp_path, workers):
    """Some fail, the others are whole; a file that got nothing is gone."""
    with fault("openat", error=errno.ENOSPC, first=50, times=10), pytest.raises(shutil.Error) as caught:
        copytree(tree, tmp_path / "ours", workers=workers)
    failed = {Path(a).relative_to(tree) for a, _, _ in caught.value.args[0]}
    assert 5 <= len(failed) <= 10
    ours, all_of_it = listing(tmp_path / "ours"), listing(tree)
    for name, what in all_of_it.items():
        if what[0] == "file" and Path(name) not in failed:
            assert ours[name] == what
        elif what[0] == "file":
            assert name not in ours


def test_progress(tree, tmp_path):
    total = sum(len(what[3]) for what in listing(tree).values() if what[0] == "file")
    seen = []
    copytree(tree, tmp_path / "ours", progress=lambda done, of: seen.append((done, of)))
    assert seen[-1] == (total, total)
    assert seen == sorted(seen)

    def stop(done, of):
        raise KeyError(done)

    with pytest.raises(KeyError):
        copytree(tree, tmp_path / "stopped", progress=stop)
    copytree(tree, tmp_path / "bar", progress=True)


@pytest.mark.parametrize("workers", [1, 2])
def test_signal_stops_all_threads(tmp_path, workers):
    root = tmp_path / "tree"
    root.mkdir()
    for i in range(12):
        (root / f"big{i}").write_bytes(noise(1 << 20) * 4)

    class Stop(Exception):
        pass

    def handler(*_):
        raise Stop

    before = signal.signal(signal.SIGALRM, handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.03)
        with pytest.raises(Stop):
            for _ in range(1000):
                copytree(root, tmp_path / "ours", dirs_exist_ok=True, workers=workers)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    sizes = [path.stat().st_size for path in root.iterdir()]
    assert sizes == [4 << 20] * 12


def test_more_files_than_a_batch(tmp_path):
    root = tmp_path / "tree"
    root.mkdir()
    for i in range(4100):
        (root / f"{i:05}").write_bytes(b"%d" % i)
    copytree(root, tmp_path / "ours", workers=2)
    assert len(os.listdir(tmp_path / "ours")) == 4100
    assert (tmp_path / "ours" / "04099").read_bytes() == b"4099"


def test_audit_events(tree, tmp_path):
    events = []
    active = True

    def hook(name, args):
        if active and name in ("shutil.copytree", "shutil.copyfile", "shutil.copystat", "open"):
            events.append((name, str(args[0])))

    sys.addaudithook(hook)
    try:
        copytree(tree, tmp_path / "ours")
    finally:
        active = False
    names = [name for name, _ in events]
    assert names.count("shutil.copytree") == 8
    assert names.count("shutil.copyfile") == 122
    assert names.count("shutil.copystat") == 122 + 8  # the folders too
    assert {str(tree / "big"), str(tmp_path / "ours" / "big")} <= {
        path for name, path in events if name == "open"
    }


def test_progress_that_raises_at_the_end_says_how_much(tree, tmp_path):
    total = 0

    def stop(done, whole):
        nonlocal total
        total = whole
        if done == whole:
            raise KeyError

    with pytest.raises(KeyError) as caught:
        copytree(tree, tmp_path / "ours", progress=stop)
    assert caught.value.transferred == total > 0


def test_threads_are_capped_by_the_environment(tree, tmp_path):
    import subprocess

    code = """
import sys, pyio_chunked
pyio_chunked.copytree(sys.argv[1], sys.argv[2], workers=8)
print(pyio_chunked._core._workers_running())
"""
    for cap, running in (("1", "0"), ("3", "2")):
        done = subprocess.run(
            [sys.executable, "-c", code, tree, tmp_path / f"ours{cap}"],
            env={**os.environ, "PYIO_CHUNKED_WORKERS": cap},
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.strip() == running


def contents(root: Path) -> dict[str, bytes]:
    return {str(p.relative_to(root)): p.read_bytes() for p in root.rglob("*") if p.is_file()}


@pytest.mark.parametrize("inside", ["new", "d0/new", "d0/deep/new"])
def test_into_itself_ends(tree, inside):
    """shutil does what is meant for a new folder right inside, else it never ends."""
    before = contents(tree)
    target = tree / inside
    copytree(tree, target)
    assert contents(target) == before
    assert {k: v for k, v in contents(tree).items() if not k.startswith(inside + "/")} == before
    # Over it again: still without itself.
    (tree / "more").write_bytes(b"more")
    copytree(tree, target, dirs_exist_ok=True)
    assert contents(target) == {**before, "more": b"more"}


def test_into_itself_through_a_link(tree, tmp_path):
    (tmp_path / "link").symlink_to(tree / "d1")
    copytree(tree, tmp_path / "link" / "new")
    assert not (tree / "d1" / "new" / "d1" / "new").exists()
    assert (tree / "d1" / "new" / "d1" / "deep" / "f3").exists()


def test_onto_itself_is_an_error_for_each_file(tree):
    """Not for each letter of the message, as shutil has it."""
    before = contents(tree)
    with pytest.raises(shutil.Error) as caught:
        copytree(tree, tree, dirs_exist_ok=True)
    assert sorted(src for src, dst, why in caught.value.args[0]) == sorted(
        str(tree / name) for name in before
    )
    assert all(src == dst and "are the same file" in why for src, dst, why in caught.value.args[0])
    assert contents(tree) == before
