# SPDX-License-Identifier: MIT
"""All stream types side by side: what they refuse, beside the standard library's
counterparts, and how they end: dropped open, in cycles, taken back by a finalizer,
closed by a subclass that closes nothing."""

from __future__ import annotations

import contextlib
import copy
import gc
import gzip
import io
import os
import pickle
import warnings
import weakref
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import pyio_chunked
from pyio_chunked import java

DATA = b"".join(b"line %d\n" % i for i in range(100))
HUGE = 2**70


class Files:
    """The same content for each kind of stream; fresh paths to write to."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.count = 0
        self.plain = folder / "plain"
        self.plain.write_bytes(DATA)
        self.gzip = folder / "data.gz"
        self.gzip.write_bytes(gzip.compress(DATA))
        self.zip = folder / "data.zip"
        with zipfile.ZipFile(self.zip, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("member", DATA)

    def fresh(self) -> Path:
        self.count += 1
        return self.folder / f"new{self.count}"

    def member(self, module: Any) -> Any:
        with module.ZipFile(self.zip) as archive:
            return archive.open("member")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    return Files(tmp_path_factory.mktemp("streams"))


Make = Callable[[Files], Any]

# Ours, and what it is held against; of several, any may be agreed with.
PAIRS: dict[str, tuple[Make, list[Make]]] = {
    "File rb": (lambda f: pyio_chunked.open(f.plain, "rb"), [lambda f: open(f.plain, "rb")]),
    "File wb": (lambda f: pyio_chunked.open(f.fresh(), "wb"), [lambda f: open(f.fresh(), "wb")]),
    "File w+b": (lambda f: pyio_chunked.open(f.fresh(), "w+b"), [lambda f: open(f.fresh(), "w+b")]),
    "InflateReader": (
        lambda f: pyio_chunked.InflateReader(f.gzip, "gzip"),
        [lambda f: gzip.GzipFile(f.gzip)],
    ),
    "GzipFile": (lambda f: pyio_chunked.GzipFile(f.gzip), [lambda f: gzip.GzipFile(f.gzip)]),
    # As io says, also where ZipExtFile slips (readline(None), seek(0, "x")).
    "ZipMember": (
        lambda f: f.member(pyio_chunked),
        [lambda f: f.member(zipfile), lambda f: open(f.plain, "rb")],
    ),
    "DataReader": (lambda f: pyio_chunked.DataReader(f.plain), [lambda f: open(f.plain, "rb")]),
    "DataWriter": (lambda f: pyio_chunked.DataWriter(f.fresh()), [lambda f: open(f.fresh(), "wb")]),
}

SIZES: list[tuple[Any, ...]] = [
    (), (-1,), (-2,), (None,), (0,), (3,), ("x",), (1.5,), (2**63,), (HUGE,), (True,), (1, 2),
]  # fmt: skip
BUFFERS: list[Callable[[], tuple[Any, ...]]] = [
    lambda: (),
    lambda: (bytearray(5),),
    lambda: (bytearray(),),
    lambda: (b"read-only",),
    lambda: (memoryview(b"read-only"),),
    lambda: (memoryview(bytearray(8))[::2],),
    lambda: ("text",),
    lambda: (None,),
    lambda: (5,),
    lambda: ([],),
    lambda: (bytearray(1), 1),
]


def given(values: list[tuple[Any, ...]]) -> list[Callable[[], tuple[Any, ...]]]:
    return [lambda value=value: value for value in values]


CALLS: dict[str, list[Callable[[], tuple[Any, ...]]]] = {
    **dict.fromkeys(("read", "read1", "peek", "readline", "readlines"), given(SIZES)),
    **dict.fromkeys(("readinto", "readinto1"), BUFFERS),
    "write": [
        *given([(b"x",), (b"",), ("text",), (None,), (5,), ([],)]),
        lambda: (memoryview(bytearray(8))[::2],),
    ],
    "writelines": given([(), ([b"x"],), (["text"],), (5,), (None,), ([b"x", 5],)]),
    "seek": given(
        [
            (), (0,), (3,), (-1,), (0, 1), (0, 2), (-1, 2), (-5, 1), (0, 9), (0, -1), ("x",), (None,),
            (1.5,), (2**63,), (HUGE,), (-HUGE,), (0, "x"), (0, None), (0, HUGE), (0, 0, 0),
        ]
    ),
    "truncate": given([(), (None,), (3,), (0,), (-1,), ("x",), (1.5,), (2**63,), (HUGE,), (1, 2)]),
    **dict.fromkeys(
        ("tell", "flush", "close", "fileno", "isatty", "readable", "writable", "seekable", "detach"),
        given([(), (1,)]),
    ),
    **dict.fromkeys(("__enter__", "__iter__", "__next__"), given([()])),
    **dict.fromkeys(("_checkClosed", "_checkReadable", "_checkWritable", "_checkSeekable"), given([()])),
    "__exit__": given([(None, None, None)]),
    "closed": given([()]),
}  # fmt: skip

# Where ours differs on purpose, and why.
ON_PURPOSE: dict[tuple[str, str], str] = {
    ("InflateReader", "fileno"): "no descriptor has the decoded bytes",
    ("GzipFile", "fileno"): "no descriptor has the decoded bytes",
    ("InflateReader", "flush"): "gzip's takes a mode of zlib's, for writing",
    ("GzipFile", "flush"): "gzip's takes a mode of zlib's, for writing",
    ("DataWriter", "seek"): "a sequence of values: it can't go back",
    ("DataWriter", "truncate"): "a sequence of values: it can't go back",
    ("DataWriter", "seekable"): "a sequence of values: it can't go back",
    ("DataWriter", "_checkSeekable"): "a sequence of values: it can't go back",
    ("DataReader", "seek"): "a negative offset is a ValueError for each kind of source",
}
# What has nothing to refuse when the stream is closed or detached.
ALWAYS_FINE = {"close", "__exit__", "closed"}
WRITING = {"write", "writelines", "truncate"}
READING = {"read", "read1", "readinto", "readinto1", "peek", "readline", "readlines"}


def outcome(make: Make, files: Files, state: str, name: str, args: tuple[Any, ...]) -> Any:
    """None where it works, else the class of the exception."""
    stream = make(files)
    below = None  # what detach gives
    try:
        if state == "closed":
            stream.close()
        elif state == "detached":
            below = stream.detach()
        value = getattr(stream, name)
        result = value(*args) if callable(value) else value
        if name == "detach":
            below = result
        return None
    except Exception as error:
        return type(error)
    finally:
        if below is None:
            with contextlib.suppress(ValueError, OSError):
                stream.close()
        elif isinstance(below, int):
            os.close(below)
        else:
            below.close()


def agrees(ours: Any, theirs: Any) -> bool:
    return (ours is None) == (theirs is None) and (ours is None or issubclass(ours, theirs))


@pytest.mark.parametrize("state", ["open", "closed", "detached"])
@pytest.mark.parametrize("kind", PAIRS)
def test_refusals_are_the_standard_library_s(files: Files, kind: str, state: str) -> None:
    make, peers = PAIRS[kind]
    if state == "detached" and kind in ("InflateReader", "GzipFile", "ZipMember"):
        with make(files) as stream, pytest.raises(io.UnsupportedOperation):
            stream.detach()
        return
    unsupported = READING if kind == "File wb" else () if kind == "File w+b" else WRITING
    if kind == "DataWriter":
        unsupported = READING
    wrong = []
    for name, calls in CALLS.items():
        for call in calls:
            ours = outcome(make, files, state, name, call())
            theirs = [outcome(peer, files, state, name, call()) for peer in peers]
            # Two things wrong at once: either may be said.
            arguments = outcome(PAIRS["File w+b"][0], files, "open", name, call())
            agreed = any(agrees(ours, each) for each in theirs)
            if ours is not None and issubclass(ours, (ValueError, arguments or ValueError)):
                # Closed, the wrong direction, wrong arguments: of several, any may be said.
                direction = name in unsupported and issubclass(
                    ours, (io.UnsupportedOperation, arguments or ())
                )
                agreed = agreed or state != "open" or direction
            on_purpose = (
                ((kind, name) in ON_PURPOSE and (state == "open" or ours is not None))
                or (state != "open" and name in ALWAYS_FINE)
                # gzip and zipfile ask for a size, io doesn't.
                or (name in ("peek", "read1") and call() == () and ours is None)
            )
            fine = agreed or on_purpose
            if not fine:
                wrong.append((name, call(), ours, theirs))
    assert not wrong


# ---------------------------------------------------------------------- life's end

# Types that own what they opened, and their warning.
OWNERS: dict[str, tuple[type, Callable[[Files], tuple[Any, ...]], str]] = {
    "File": (pyio_chunked.File, lambda f: (f.plain,), "unclosed file"),
    "InflateReader": (pyio_chunked.InflateReader, lambda f: (f.gzip,), "unclosed file"),
    "GzipFile": (pyio_chunked.GzipFile, lambda f: (f.gzip,), "unclosed file"),
    "DataReader": (pyio_chunked.DataReader, lambda f: (f.plain,), "unclosed data reader"),
    "DataWriter": (pyio_chunked.DataWriter, lambda f: (f.fresh(),), "unclosed data writer"),
    "DataInput": (java.DataInput, lambda f: (f.plain,), "unclosed data reader"),
    "DataOutput": (java.DataOutput, lambda f: (f.fresh(),), "unclosed data writer"),
}  # fmt: skip
every_owner = pytest.mark.parametrize("kind", OWNERS)


def descriptors() -> set[str]:
    gc.collect()
    return set(os.listdir("/proc/self/fd"))


@pytest.fixture
def all_closed() -> Iterator[None]:
    before = descriptors()
    yield
    assert descriptors() <= before


@every_owner
def test_dropped_open(files: Files, kind: str, all_closed: None) -> None:
    cls, arguments, text = OWNERS[kind]
    stream = cls(*arguments(files))
    with pytest.warns(ResourceWarning, match=text):
        del stream


@every_owner
def test_in_a_cycle(files: Files, kind: str, all_closed: None) -> None:
    cls, arguments, text = OWNERS[kind]
    stream = cls(*arguments(files))
    stream.me = stream
    gone = weakref.ref(stream)
    del stream
    with pytest.warns(ResourceWarning, match=text):
        gc.collect()
    assert gone() is None


@every_owner
def test_a_finalizer_keeps_the_exception(files: Files, kind: str, all_closed: None) -> None:
    cls, arguments, _ = OWNERS[kind]

    def drop() -> None:
        cls(*arguments(files))
        raise KeyError("mine")

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        with pytest.raises(KeyError, match="mine"):
            drop()


@every_owner
def test_a_subclass_that_closes_nothing(files: Files, kind: str, all_closed: None) -> None:
    cls, arguments, _ = OWNERS[kind]
    closed = []

    class Careless(cls):  # type: ignore[misc, valid-type]
        def close(self) -> None:
            closed.append(1)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        with Careless(*arguments(files)):
            pass
        gc.collect()
    assert len(closed) == 2  # by the block, and by the finalizer


@every_owner
def test_taken_back_by_its_finalizer(files: Files, kind: str, all_closed: None) -> None:
    cls, arguments, _ = OWNERS[kind]
    kept: list[Any] = []

    class Keeper(cls):  # type: ignore[misc, valid-type]
        def close(self) -> None:
            if kept:
                super().close()
            else:
                kept.append(self)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        Keeper(*arguments(files))
        gc.collect()
    (stream,) = kept
    stream.more = 1
    with stream as entered:
        assert entered is stream
    with pytest.raises(ValueError, match="closed file"):
        stream.__enter__()


@every_owner
def test_a_failed_constructor_and_none(files: Files, kind: str, all_closed: None) -> None:
    cls, arguments, _ = OWNERS[kind]
    with pytest.raises(OSError):
        cls(files.folder / "missing" / "file")
    with pytest.raises(TypeError):
        cls(*arguments(files), nothing=1)
    if cls is not pyio_chunked.File:  # made by __new__
        empty = cls.__new__(cls)
        for call in (empty.__enter__, lambda: empty.closed):
            with pytest.raises(ValueError, match="uninitialized"):
                call()
        empty.close()
        empty.__init__(*arguments(files))  # type: ignore[misc]
        with empty:
            pass
        assert empty.closed


@every_owner
def test_a_constructor_inside_the_constructor(files: Files, kind: str, all_closed: None) -> None:
    """Asked for its path, its methods or its name, the source calls it again."""
    cls, arguments, _ = OWNERS[kind]
    if cls is pyio_chunked.File:  # made by __new__
        return
    (path,) = arguments(files)

    def again() -> None:
        with contextlib.suppress(RuntimeError, ValueError):
            stream.__init__(path)  # type: ignore[misc]

    class Place:
        def __fspath__(self) -> str:
            again()
            return str(path)

    class Object:
        def __init__(self, call: str) -> None:
            self.call = call

        def __getattr__(self, name: str) -> Any:
            if name == self.call:
                again()
            if name in ("__fspath__", "readinto", "fileno", "mode"):
                raise AttributeError(name)
            return "name" if name == "name" else lambda *arguments: 0

    sources = [
        Place(),
        *map(Object, ("name", "mode", "read", "readinto", "write", "seekable", "tell", "fileno")),
    ]
    for source in sources:
        stream = cls.__new__(cls)
        if cls is pyio_chunked.GzipFile and isinstance(source, Object):
            stream.__init__(fileobj=source)  # type: ignore[misc]
        else:
            stream.__init__(source)  # type: ignore[misc]
        stream.close()


@pytest.mark.parametrize("kind", PAIRS)
def test_not_copied_nor_pickled(files: Files, kind: str) -> None:
    with PAIRS[kind][0](files) as stream:
        if kind != "File rb":  # which goes by path and position
            for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
                with pytest.raises(TypeError, match="pickle"):
                    pickle.dumps(stream, protocol)
            with pytest.raises(TypeError):
                copy.copy(stream)


@pytest.mark.parametrize("kind", PAIRS)
def test_repr_and_attributes(files: Files, kind: str) -> None:
    with PAIRS[kind][0](files) as stream:
        assert type(stream).__name__ in repr(stream)
        stream.anything = stream
        assert isinstance(stream, io.BufferedIOBase) and stream.anything is stream
        if hasattr(type(stream), "name") and not kind.startswith("Data"):
            stream.name = stream  # a name that would never end
            assert "..." in repr(stream)
    assert stream.closed and type(stream).__name__ in repr(stream)
    del stream.anything
