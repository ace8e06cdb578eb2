# SPDX-License-Identifier: MIT
"""read_many and testzip: order, workers, bounds, progress, signals, errors in their turn."""

from __future__ import annotations

import io
import os
import random
import signal
import subprocess
import sys
import threading
import time
import zipfile
import zlib

import pytest
from hostile_build import DEFLATED, STORED, M, archive
from zip_help import pack, text

import pyio_chunked
from pyio_chunked import ZipFile

WORKERS = [None, 1, 2, 4]


class Unseekable:
    """Makes zipfile write data descriptors."""

    def __init__(self, file):
        self.write = file.write
        self.flush = file.flush


@pytest.fixture(scope="module")
def members():
    sizes = [0, 1, 1000, 3000, 70_000, 300_000]
    return {f"m{i}": text(sizes[i % len(sizes)], i % 50) for i in range(600)} | {"huge": text(9_000_000)}


@pytest.fixture(scope="module")
def path(tmp_path_factory, members):
    return pack(tmp_path_factory.mktemp("many") / "a.zip", members)


@pytest.mark.parametrize("workers", WORKERS)
def test_all_in_the_directorys_order(path, members, workers):
    with ZipFile(path) as zf:
        names = []
        for name, data in zf.read_many(workers=workers):
            assert data == members[name]
            names.append(name)
        assert names == list(members)
        assert zf.testzip(workers=workers) is None


@pytest.mark.parametrize("workers", WORKERS)
def test_order_of_the_names_given(path, members, workers, rng):
    names = rng.choices(list(members)[:-1], k=500)
    with ZipFile(path) as zf:
        given = [zf.getinfo(name) if rng.random() < 0.3 else name for name in names]
        result = list(zf.read_many(iter(given), workers=workers))
        assert [one for one, _ in result] == given
        assert [data for _, data in result] == [members[name] for name in names]


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("descriptors", [False, True])
def test_neighbours_come_by_one_call(tmp_path, workers, descriptors):
    """A worker reads what it claimed at once, where it lies side by side; else each member by itself."""
    small = {f"m{i}": text(1000, i) for i in range(400)}
    path = tmp_path / "a.zip"
    if descriptors:  # 16 bytes behind each member's data
        with path.open("wb") as file, zipfile.ZipFile(Unseekable(file), "w", DEFLATED) as zf:
            for name, data in small.items():
                zf.writestr(name, data)
    else:
        pack(path, small)
    core = pyio_chunked._core
    names = list(small)
    with ZipFile(path) as zf:
        for given, least, most in ((names, 5, 60), (names[::-1], 400, 400)):
            core._fault_count()
            got = dict(zf.read_many(given, workers=workers))
            made = core._fault_calls().get("pread", 0)
            core._fault_clear()
            assert got == small
            assert least <= made <= most
        core._fault_count()
        assert zf.testzip(workers=workers) is None
        assert core._fault_calls().get("pread", 0) <= 60
        core._fault_clear()


@pytest.mark.parametrize("max_in_flight", [0, 1, 50_000, 1 << 20, 1 << 40])
def test_max_in_flight(path, members, max_in_flight):
    names = list(members)[:100] + ["huge"]
    with ZipFile(path) as zf:
        assert dict(zf.read_many(names, max_in_flight=max_in_flight)) == {
            name: members[name] for name in names
        }
        with pytest.raises(ValueError, match="max_in_flight"):
            zf.read_many(max_in_flight=-1)


def test_names_are_taken_as_they_are_needed(path, members):
    taken = 0

    def names():
        nonlocal taken
        for name in members:
            taken += 1
            yield name

    for workers in (1, 2):
        taken = 0
        with ZipFile(path) as zf:
            iterator = zf.read_many(names(), max_in_flight=100_000, workers=workers)
            next(iterator)
            # what is read ahead counts; the last name taken waits
            assert sum(map(len, list(members.values())[: taken - 1])) <= 100_000
            assert dict(iterator) == dict(list(members.items())[1:])


@pytest.fixture(scope="module")
def many_small(tmp_path_factory):
    small = {f"m{i}": text(1000, i) for i in range(3000)}
    return pack(tmp_path_factory.mktemp("small") / "a.zip", small), small


def test_the_next_batch_is_read_while_one_is_handed_out(many_small):
    path, small = many_small
    core = pyio_chunked._core
    with ZipFile(path) as zf:

        def preads(names, taken):
            core._fault_count()
            iterator = zf.read_many(names, workers=2)
            pairs = [next(iterator) for _ in range(taken)]
            return core._fault_calls()["pread"], iterator, pairs

        try:
            of_one, _, _ = preads(list(small)[:512], 512)
            calls, iterator, pairs = preads(list(small), 1)
            deadline = time.monotonic() + 20
            while calls <= of_one and time.monotonic() < deadline:
                time.sleep(0.001)
                calls = core._fault_calls()["pread"]
            assert calls > of_one
        finally:
            core._fault_clear()
        assert dict([*pairs, *iterator]) == small


def test_an_iterator_that_is_dropped_leaves_nothing_running(long_archive, many_small):
    for path in (long_archive, many_small[0]):
        for taken in (0, 1, 5, 30):
            with ZipFile(path) as zf:
                iterator = zf.read_many(workers=2)
                for _ in range(taken):
                    next(iterator)
                del iterator
                window = pyio_chunked.pool.stats().in_use
                zf.close()
                assert window == 0 and pyio_chunked.pool.stats().in_use == 0


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_of_fork_goes_on(long_archive, many_small):
    path, small = many_small
    for taken in (1, 100, 600, 2999):
        with ZipFile(path) as zf, ZipFile(long_archive) as long:
            iterator, large = (
                zf.read_many(workers=2),
                long.read_many(["one", "many1", "one", "many2"], workers=2),
            )
            pairs = [next(iterator) for _ in range(taken)]
            sizes = [len(next(large)[1])]
            child = os.fork()
            pairs += list(iterator)
            sizes += [len(data) for _, data in large]
            right = dict(pairs) == small and sizes == [80 << 20, 2 << 20, 80 << 20, 2 << 20]
            if child == 0:
                os._exit(0 if right else 1)
            assert right
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_errors_come_in_their_turn():
    body = text(3000)
    data = archive([M("a", body), M("b", body), M("bad", body, crc=zlib.crc32(body) ^ 1), M("c", body)])
    for source in (io.BytesIO(data), None):
        zf = ZipFile(source or io.BytesIO(data))
        iterator = zf.read_many()
        assert [next(iterator)[0], next(iterator)[0]] == ["a", "b"]
        with pytest.raises(zipfile.BadZipFile, match="Bad CRC-32 for file 'bad'"):
            next(iterator)
        assert list(iterator) == []
        iterator = zf.read_many(["a", "missing", "b"])
        assert next(iterator)[0] == "a"
        with pytest.raises(KeyError, match="missing"):
            next(iterator)
        assert list(iterator) == []
        assert zf.testzip() == "bad"


@pytest.mark.parametrize("at", [250, 1200])
def test_errors_come_in_their_turn_by_descriptor(tmp_path, at):
    body = text(3000)
    members = [M(f"m{i}", body) for i in range(at + 150)]
    members[at] = M("bad", body, crc=1)
    members[at + 50] = M("worse", body, size=2999)
    path = tmp_path / "a.zip"
    path.write_bytes(archive(members))
    with ZipFile(path) as zf:
        for workers in WORKERS:
            seen = []
            with pytest.raises(zipfile.BadZipFile, match="'bad'"):
                for name, data in zf.read_many(workers=workers):
                    assert data == body
                    seen.append(name)
            assert seen == [f"m{i}" for i in range(at)]
            assert zf.testzip(workers=workers) == "bad"
        names = [m.name for m in members if m.name != "bad"]
        with pytest.raises(zipfile.BadZipFile, match="'worse'"):
            dict(zf.read_many(names))


def test_names_that_raise(path):
    def names(n):
        for _ in range(n):
            yield "m1"
        raise LookupError("mine")

    with ZipFile(path) as zf:
        for n in (0, 1, 700):
            for workers in WORKERS:
                iterator = zf.read_many(names(n), workers=workers)
                assert [next(iterator)[0] for _ in range(n)] == ["m1"] * n
                with pytest.raises(LookupError, match="mine"):
                    next(iterator)
                assert list(iterator) == []
    with ZipFile(path) as zf:
        with pytest.raises(TypeError):
            zf.read_many(5)


def test_an_exhausted_iterator_lets_the_archive_go(path):
    before = len(os.listdir("/proc/self/fd"))
    zf = ZipFile(path)
    iterators = [zf.read_many(["m1"]), zf.read_many(["m1", "missing"]), zf.read_many([])]
    for iterator, error in zip(iterators, (StopIteration, KeyError, StopIteration), strict=True):
        for expected in (error, StopIteration, StopIteration):
            with pytest.raises(expected):
                while True:
                    next(iterator)
    zf.close()
    assert len(os.listdir("/proc/self/fd")) == before


def test_errors_name_the_member_of_a_zipinfo(tmp_path):
    path = tmp_path / "a.zip"
    path.write_bytes(archive([M("a", text(3000)), M("b", text(3000), crc=1)]))
    with ZipFile(path) as zf:
        for names in (None, ["a", "b"], zf.infolist()):
            with pytest.raises(zipfile.BadZipFile, match=r"Bad CRC-32 for file 'b'"):
                list(zf.read_many(names))


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("where", ["progress", "handler"])
def test_a_child_of_fork_in_the_middle_of_a_batch(long_archive, where, workers):
    children = []

    def fork(*ignored):
        if not children:
            children.append(os.fork())
            if not children[0]:  # a child that hangs ends all the same
                signal.setitimer(signal.ITIMER_REAL, 0)
                signal.signal(signal.SIGALRM, signal.SIG_DFL)
                signal.alarm(60)

    names = ["one", "many1"] * 3
    before = signal.signal(signal.SIGALRM, fork)
    try:
        with ZipFile(long_archive) as zf:
            if where == "handler":
                signal.setitimer(signal.ITIMER_REAL, 0.01)
            got = zf.read_many(
                names, workers=workers, max_in_flight=1 << 30, progress=fork if where == "progress" else None
            )
            right = [(name, len(data)) for name, data in got] == [("one", 80 << 20), ("many1", 2 << 20)] * 3
            if children == [0]:
                os._exit(0 if right else 1)
            assert right and children
            assert os.waitstatus_to_exitcode(os.waitpid(children[0], 0)[1]) == 0
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_a_daemon_thread_does_not_take_its_job_from_workers(long_archive):
    """The interpreter ends it, and its stack with it, while workers are inside."""
    code = f"""if True:
        import threading, time, pyio_chunked
        zf = pyio_chunked.ZipFile({str(long_archive)!r})
        def run():
            while True:
                zf.testzip(workers=8)
        threading.Thread(target=run, daemon=True).start()
        time.sleep(0.03)
    """
    for _ in range(8):
        assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # in callbacks of gc
def test_interrupts_lose_no_member(many_small):
    path, small = many_small
    armed, interrupts = False, 0

    def handler(signum, frame):
        nonlocal armed
        if armed:
            armed = False
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, handler)
    try:
        with ZipFile(path) as zf:
            for names in (None, list(small), zf.infolist()):
                pairs, pause = [], 0.0005
                iterator = zf.read_many(names, workers=2)
                while True:
                    signal.setitimer(signal.ITIMER_REAL, pause, pause)
                    try:
                        armed = True
                        pairs.extend(iterator)
                        armed = False
                        break
                    except KeyboardInterrupt:
                        interrupts += 1
                        pause *= 1.1
                assert [data for _, data in pairs] == list(small.values())
        assert interrupts
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("workers", [1, 2])
def test_progress_after_interruptions_counts_what_came(long_archive, workers):
    for seed in range(6):
        rng, calls = random.Random(seed), []

        def progress(done, total):
            calls.append(done)
            if rng.random() < 0.3:
                raise Stop

        with ZipFile(long_archive) as zf:
            iterator, total = zf.read_many(["one", "many1", "many2"], workers=workers, progress=progress), 0
            while True:
                try:
                    total += len(next(iterator)[1])
                except Stop:
                    continue
                except StopIteration:
                    break
        assert total == 84 << 20
        # a member that is begun again goes back, none counts twice
        assert max(calls) == calls[-1] == total


def test_an_interrupt_among_the_names_comes_at_once(path):
    def names(n):
        for _ in range(n):
            yield "m1"
        raise KeyboardInterrupt

    with ZipFile(path) as zf:
        for n in (0, 3, 600):  # in the first batch, or in the one that is read ahead
            for workers in (1, 2):
                iterator = zf.read_many(names(n), workers=workers)
                pairs = []
                with pytest.raises(KeyboardInterrupt):
                    while True:
                        pairs.append(next(iterator))
                assert len(pairs) == (512 if n == 600 and workers == 1 else 0)
                pairs += iterator
                assert [name for name, _ in pairs] == ["m1"] * n


def test_progress(path, members):
    total = sum(map(len, members.values()))
    with ZipFile(path) as zf:
        for run in (lambda p: dict(zf.read_many(progress=p)), lambda p: zf.testzip(progress=p)):
            calls = []
            run(lambda done, total, calls=calls: calls.append((done, total)))
            assert calls[-1] == (total, total)
            assert calls == sorted(calls)
        calls = []
        dict(zf.read_many(["m5"], progress=lambda done, total: calls.append((done, total))))
        assert calls[-1] == (len(members["m5"]), None)
        assert {total for _, total in calls} == {None}


class Stop(Exception):
    pass


def test_progress_that_raises(path):
    def stop(done, total):
        raise Stop

    with ZipFile(path) as zf:
        with pytest.raises(Stop):
            dict(zf.read_many(progress=stop))
        with pytest.raises(Stop):
            zf.testzip(progress=stop)
        assert zf.read("m2") == text(1000, 2)


@pytest.fixture(scope="module")
def long_archive(tmp_path_factory):
    """About a second of inflating in one member, and as much in many."""
    path = tmp_path_factory.mktemp("long") / "long.zip"
    piece = text(1 << 20)
    with zipfile.ZipFile(path, "w", DEFLATED, compresslevel=1) as zf:
        with zf.open("one", "w") as member:
            for _ in range(80):
                member.write(piece)
        for i in range(40):
            zf.writestr(f"many{i}", piece * 2)
    return path


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("what", ["testzip", "read_many", "read", "stream"])
def test_a_signal_handler_runs_soon(long_archive, what, workers):
    """50 ms at page-cache speed; here only that it runs long before the end."""
    times = []

    def handler(signum, frame):
        times.append(time.perf_counter())
        raise Stop

    before = signal.signal(signal.SIGALRM, handler)
    try:
        with ZipFile(long_archive) as zf:
            signal.setitimer(signal.ITIMER_REAL, 0.03)
            start = time.perf_counter()
            with pytest.raises(Stop):
                while True:
                    if what == "testzip":
                        zf.testzip(workers=workers)
                    elif what == "read_many":
                        for _ in zf.read_many(["one"] * 5, workers=workers):
                            pass
                    elif what == "read":
                        zf.read("one")
                    else:
                        with zf.open("one") as member:
                            member.read()
            assert times[0] - start < 5
            assert zf.read("many5") == text(1 << 20) * 2
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_an_interrupted_batch_is_not_lost(long_archive):
    fired = []

    def handler(signum, frame):
        if not fired:
            fired.append(1)
            raise Stop

    before = signal.signal(signal.SIGALRM, handler)
    try:
        with ZipFile(long_archive) as zf:
            names = [f"many{i}" for i in range(40)]
            iterator = zf.read_many(names, workers=2)
            signal.setitimer(signal.ITIMER_REAL, 0.02, 0.02)
            pairs = []
            while True:
                try:
                    # In C from one pair to the next: a handler that runs
                    # between two lines here would lose what next() returned.
                    pairs.extend(iterator)
                    break
                except Stop:
                    continue
            assert {len(data) for _, data in pairs} == {2 << 20}
            assert [name for name, _ in pairs] == names
            assert fired
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_handlers_that_return_change_nothing(long_archive):
    count = []
    before = signal.signal(signal.SIGALRM, lambda signum, frame: count.append(1))
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.005, 0.005)
        with ZipFile(long_archive) as zf:
            assert zf.testzip(workers=2) is None
            data = zf.read("one")
            assert len(data) == 80 << 20
            assert data[: 1 << 20] == data[-(1 << 20) :] == text(1 << 20)
        assert count
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_threads_are_of_c(path):
    before = threading.enumerate()
    with ZipFile(path) as zf:
        for _ in zf.read_many(workers=2):
            assert threading.enumerate() == before


def test_testzip_as_zipfile_with_shadowed_members():
    """zipfile opens by name: of one name only the last member is looked at."""
    data = archive([M("a", b"first", crc=1), M("a", b"second")])
    assert zipfile.ZipFile(io.BytesIO(data)).testzip() is None
    assert ZipFile(io.BytesIO(data)).testzip() is None


def test_testzip_names_the_first_bad_one_in_order(tmp_path):
    big = text(2_000_000)
    members = [M("good", b"x"), M("slow", big, crc=1), M("fast", b"y", STORED, crc=1)]
    path = tmp_path / "a.zip"
    path.write_bytes(archive(members))
    for source in (path, io.BytesIO(path.read_bytes())):
        with ZipFile(source) as zf:
            for workers in WORKERS:
                assert zf.testzip(workers=workers) == "slow"


def test_testzip_of_what_only_python_can(tmp_path):
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as zf:
        for method in (zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA, zipfile.ZIP_DEFLATED):
            zf.writestr(str(method), text(5000), method)
    with ZipFile(path) as zf:
        assert zf.testzip() is None
        assert dict(zf.read_many()) == {str(m): text(5000) for m in (12, 14, 8)}


def test_closed_while_iterating(path, members):
    zf = ZipFile(path)
    iterator = zf.read_many(workers=2)
    next(iterator)
    zf.close()
    assert sum(1 for _ in iterator) == len(members) - 1


def test_iterator_shared_by_threads(path, members):
    with ZipFile(path) as zf:
        iterator = zf.read_many(workers=2)
        seen = []

        def work():
            for name, data in iterator:
                assert data == members[name]
                seen.append(name)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(seen) == sorted(members)


def test_workers_cap(tmp_path):
    import subprocess
    import sys

    path = pack(tmp_path / "a.zip", {f"m{i}": text(50_000, i) for i in range(50)})
    code = (
        "import sys, pyio_chunked\n"
        "with pyio_chunked.ZipFile(sys.argv[1]) as zf:\n"
        "    assert len(dict(zf.read_many(workers=8))) == 50 and zf.testzip(workers=8) is None\n"
        "assert pyio_chunked._core._workers_running() == 0\n"
    )
    environment = {**os.environ, "PYIO_CHUNKED_WORKERS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], env=environment, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_name():
    assert pyio_chunked.ZipFile.read_many.__doc__
