# SPDX-License-Identifier: MIT
"""The command line, as its users meet it: other processes, pipes, terminals."""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import re
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest
from cli_help import COMMAND, bad, good, run
from terminal_help import open_terminal

import pyio_chunked
from pyio_chunked import _cli, _cli_arguments, _cli_output

pytestmark = pytest.mark.once


@pytest.fixture
def archive(tmp_path) -> Path:
    path = tmp_path / "some.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as out:
        out.writestr("a.txt", b"first line\nsecond line\n" * 50)
        out.writestr("folder/b.csv", b"x,y\n1,2\n")
        out.writestr("folder/c.bin", bytes(range(256)), compress_type=zipfile.ZIP_STORED)
    return path


@pytest.fixture
def damaged(archive, tmp_path) -> Path:
    data = bytearray(archive.read_bytes())
    with zipfile.ZipFile(archive) as whole:
        at = whole.getinfo("folder/c.bin").header_offset + 30 + len("folder/c.bin") + 100
    data[at] ^= 0xFF
    path = tmp_path / "damaged.zip"
    path.write_bytes(data)
    return path


# ------------------------------------------------------------- the frame


@pytest.mark.parametrize("verb", _cli_arguments.VERBS)
def test_every_verb_explains_itself_and_ends_with_an_example(verb):
    text = good(verb, "--help").decode()
    last = text.rstrip().splitlines()[-1]
    assert text.rstrip().splitlines()[-2] == "example:"
    assert f"pyio-chunked {verb}" in last
    assert "Traceback" not in text


def test_help_and_version():
    text = good("--help").decode()
    for verb in _cli_arguments.VERBS:
        assert verb in text
    assert good("--version").decode() == f"pyio-chunked {pyio_chunked.__version__}\n"


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["nonsense"],
        ["copy", "one"],
        ["copy", "a", "b", "c"],
        ["cat", "archive.zip"],
        ["ls", "--frobnicate", "x"],
        ["ls", "x", "--profile", "lax"],
        ["extract", "x", "--workers", "0"],
        ["calibrate", "--budget", "-1"],
        ["copy", "--json", "-", "-"],
    ],
)
def test_wrong_usage_is_two(arguments):
    assert "usage: pyio-chunked" in bad(*arguments, code=2)


@pytest.mark.parametrize("limit", ["size=1", "entries", "entries=many", "ratio=-1", "entries=-1"])
def test_limits_that_make_no_sense_are_wrong_usage(archive, limit):
    assert "--limit" in bad("ls", archive, "--limit", limit, code=2)


def test_what_is_not_there_is_one_and_named(tmp_path):
    for verb in ("ls", "test", "info"):
        assert "no-such.zip" in bad(verb, tmp_path / "no-such.zip")
    assert "no-such.gz" in bad("gunzip", tmp_path / "no-such.gz", tmp_path / "out")
    assert not (tmp_path / "out").exists()
    assert "no-such" in bad("copy", tmp_path / "no-such", tmp_path / "out")
    assert bad("calibrate", tmp_path / "no-such").endswith("no-such'\n")
    assert os.listdir(tmp_path) == []


def test_messages_show_no_control_characters(tmp_path):
    words = bad("ls", tmp_path / "evil\x1b]0;title\x07.zip")
    assert "\x1b" not in words and "\\x1b" in words


def test_a_mistake_of_ours_is_not_hidden(monkeypatch):
    def broken(verb, arguments):
        raise TypeError("a bug")

    monkeypatch.setattr(_cli, "run_verb", broken)
    with pytest.raises(TypeError, match="a bug"):
        _cli.main(["ls", "x.zip"])


def test_plain_copy_means_what_argparse_makes_of_it():
    options = [
        *([word] for word in _cli.PLAIN_WORDS),
        *([option, value] for option in ("--reflink", "--sparse") for value in ("auto", "always", "never")),
    ]
    for ends in (["a", "b"], ["-", "b"], ["a", "-"], ["", "b"]):
        for first in [[], *options]:
            for second in [[], *options]:
                words = ["copy", *first, ends[0], *second, ends[1]]
                verb, plain = _cli.verb_and_arguments(words)
                assert (verb, type(plain)) == ("copy", _cli.PlainCopy)
                _, parsed = _cli_arguments.parse(words)
                assert {name: getattr(plain, name) for name in vars(parsed)} == vars(parsed), words


@pytest.mark.parametrize(
    "words", ["a", "a b c", "a b --syn", "a b --reflink", "a b --reflink=never", "a b --sparse b", "-- a b"]
)
def test_what_is_not_plain_is_left_to_argparse(words):
    assert _cli.plain_copy(words.split()) is None


# ------------------------------------------------------------ cat, ls, test


def test_cat(archive):
    with zipfile.ZipFile(archive) as expected:
        assert good("cat", archive, "folder/b.csv", "a.txt") == (
            expected.read("folder/b.csv") + expected.read("a.txt")
        )
    assert "no-such-member" in bad("cat", archive, "no-such-member")


def test_ls(archive):
    text = good("ls", archive).decode()
    assert "folder/b.csv" in text and "3 members" in text
    rows = json.loads(good("ls", "--json", archive))
    with zipfile.ZipFile(archive) as expected:
        for row, member in zip(rows, expected.infolist(), strict=True):
            assert (row["name"], row["size"], row["compressed_size"], row["crc"]) == (
                member.filename, member.file_size, member.compress_size, member.CRC)  # fmt: skip
    assert len(good("ls", "--json", archive).splitlines()) == len(rows) + 2, "one row on a line"


def test_selection_by_glob(archive):
    rows = json.loads(good("ls", "--json", archive, "--only", "folder/*", "*.nothing"))
    assert [row["name"] for row in rows] == ["folder/b.csv", "folder/c.bin"]
    again = good("ls", "--json", archive, "--only", "folder/*", "--only", "*.nothing")
    assert json.loads(again) == rows
    assert b"1 member," in good("ls", "--only", "a.txt", "--", archive)
    assert "-x" in bad("ls", "--", "-x")
    assert "no member matches" in bad("ls", archive, "--only", "*.nothing")
    for verb in ("ls", "test"):  # a plain name is missed, where a pattern may match nothing
        assert "no member matches 'b.txt'" in bad(verb, archive, "--only", "a.txt", "b.txt")


@pytest.mark.parametrize(
    ("words", "source", "target", "force"),
    [("-f -- -s -d", "-s", "-d", True), ("s -f -- -d", "s", "-d", True), ("-- -- -f", "--", "-f", False)],
)
def test_what_stands_behind_two_dashes_is_no_option(words, source, target, force):
    _, parsed = _cli_arguments.parse(["gunzip", *words.split()])
    assert (parsed.source, parsed.target, parsed.force) == (source, target, force)


def test_too_much_behind_two_dashes_is_named(archive):
    assert "unrecognized arguments: -x\n" in bad("ls", "--", archive, "-x", code=2)


def test_test_names_the_bad_member(archive, damaged):
    assert b"ok 3 members" in good("test", archive)
    done = run("test", damaged)
    assert done.returncode == 1
    assert b"BAD folder/c.bin" in done.stdout
    rows = json.loads(run("test", "--json", damaged).stdout)
    assert {row["name"]: row["ok"] for row in rows} == {
        "a.txt": True, "folder/b.csv": True, "folder/c.bin": False}  # fmt: skip
    assert {"name", "size", "compressed_size", "crc", "error"} <= set(rows[0])
    assert good("test", damaged, "--only", "a.txt")


def test_limits_reach_the_reader(archive, tmp_path):
    assert "entries" in bad("ls", archive, "--limit", "entries=2")
    good("ls", archive, "--limit", "entries=2K")
    assert "total_size" in bad("extract", archive, tmp_path / "out", "--limit", "total_size=1K")


def test_profile_reaches_the_reader(archive):
    with open(archive, "ab") as out:
        out.write(b"trailing")
    good("ls", archive)
    bad("ls", archive, "--profile", "strict")


def test_archive_on_standard_input(archive, tmp_path):
    data = archive.read_bytes()
    assert json.loads(good("ls", "--json", "-", data=data)) == json.loads(good("ls", "--json", archive))
    assert good("cat", "-", "folder/b.csv", data=data) == b"x,y\n1,2\n"
    good("extract", "-", tmp_path / "out", data=data)
    assert (tmp_path / "out" / "folder" / "b.csv").read_bytes() == b"x,y\n1,2\n"
    assert json.loads(good("info", "--json", "-", data=data))["members"] == 3


def test_demo_of_an_archive(archive):
    """The whole of it runs by ./dev demo; here on an archive of one's own."""
    text = good("demo", archive).decode()
    assert "3 members" in text


# --------------------------------------------------------------- extract


def test_extract(archive, tmp_path):
    good("extract", archive, tmp_path / "out")
    with zipfile.ZipFile(archive) as expected:
        for name in expected.namelist():
            assert (tmp_path / "out" / name).read_bytes() == expected.read(name)


def test_extract_asks_for_force(archive, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "a.txt").write_bytes(b"mine")
    assert "--force" in bad("extract", archive, tmp_path / "out")
    assert os.listdir(tmp_path / "out") == ["a.txt"], "nothing is written before the question"
    assert (tmp_path / "out" / "a.txt").read_bytes() == b"mine"
    good("extract", "--force", archive, tmp_path / "out")
    assert (tmp_path / "out" / "a.txt").read_bytes() != b"mine"


def test_extract_asks_for_force_in_folders_too(archive, tmp_path):
    path = tmp_path / "deep.zip"
    with zipfile.ZipFile(path, "w") as out:
        for name in ("x/", "x/y/", "x/y/1", "x/y/2", "z/3"):
            out.writestr(name, "" if name.endswith("/") else "new")
    (tmp_path / "out" / "x" / "y").mkdir(parents=True)
    (tmp_path / "out" / "x" / "y" / "2").symlink_to("nowhere")
    words = bad("extract", path, tmp_path / "out")
    assert "--force" in words and os.path.join("x", "y", "2") in words
    assert not (tmp_path / "out" / "z").exists() and not (tmp_path / "out" / "x" / "y" / "1").exists()
    good("extract", path, tmp_path / "out", "--only", "z/*")
    good("extract", "--force", path, tmp_path / "out")
    assert (tmp_path / "out" / "x" / "y" / "2").read_bytes() == b"new"


def test_options_may_stand_between_arguments(archive, tmp_path):
    good("extract", archive, "--profile", "strict", "--limit", "entries=5", tmp_path / "out")
    assert (tmp_path / "out" / "a.txt").exists()
    good("copy", "--sync", archive, "--sparse", "never", tmp_path / "copy")


@pytest.mark.parametrize("verb", ["ls", "test", "extract"])
def test_only_stands_behind_the_archive(archive, verb):
    words = bad(verb, "--only", "*.csv", archive, code=2)
    assert "before --only" in words
    usage = words[: words.index("error:")]
    assert usage.index("ARCHIVE") < usage.index("--only")


@pytest.mark.parametrize("verb", _cli_arguments.USAGE)
def test_usage_names_every_option(verb):
    parser = _cli_arguments.verb_parser(verb)
    usage, rest = parser.format_usage(), parser.format_help().partition("options:")[2]
    for option in re.findall(r"(?m)^  (?:-., )?(--[a-z-]+)", rest):
        assert option == "--help" or option in usage or (option == "--force" and "[-f]" in usage), option


def test_a_folder_behind_only_is_not_taken_for_a_pattern(archive, tmp_path):
    words = bad("extract", archive, "--only", "*.csv", "out", cwd=tmp_path)
    assert "no member matches 'out'; DIR stands before --only" in words
    assert "DIR stands" not in bad("extract", archive, "out", "--only", "b.csv", cwd=tmp_path)
    assert os.listdir(tmp_path) == ["some.zip"]
    good("extract", archive, "--only", "*.csv", "--", "-out", cwd=tmp_path)
    assert (tmp_path / "-out" / "folder" / "b.csv").exists()


def test_extract_takes_no_stream_for_a_folder(archive, tmp_path):
    assert "is no folder" in bad("extract", archive, "-", code=2, cwd=tmp_path)
    good("extract", archive, "./-", cwd=tmp_path)
    assert (tmp_path / "-" / "a.txt").exists()


def test_extract_only(archive, tmp_path):
    good("extract", archive, tmp_path / "out", "--only", "*.csv")
    assert [p.name for p in (tmp_path / "out").rglob("*") if p.is_file()] == ["b.csv"]


def test_extract_never_leaves_the_folder(tmp_path):
    path = tmp_path / "evil.zip"
    with zipfile.ZipFile(path, "w") as out:
        out.writestr("../escaped", b"evil")
    bad("extract", path, tmp_path / "deep" / "out")
    bad("extract", path, tmp_path / "deep" / "out", "--profile", "compat")
    assert not list(tmp_path.rglob("escaped"))


def test_extract_damaged(damaged, tmp_path):
    assert "folder/c.bin" in bad("extract", damaged, tmp_path / "out")
    assert not (tmp_path / "out" / "folder" / "c.bin").exists()


# ---------------------------------------------------------- gunzip, info


def test_gunzip(tmp_path):
    data = os.urandom(1000) * 1000
    (tmp_path / "some.gz").write_bytes(gzip.compress(data[:500_000]) + gzip.compress(data[500_000:]))
    good("gunzip", tmp_path / "some.gz", tmp_path / "out")
    assert (tmp_path / "out").read_bytes() == data
    assert good("gunzip", tmp_path / "some.gz", "-") == data
    assert good("gunzip", "-", "-", data=(tmp_path / "some.gz").read_bytes()) == data
    assert "--force" in bad("gunzip", tmp_path / "some.gz", tmp_path / "out")


def test_gunzip_of_bad_data_leaves_the_old_file(tmp_path):
    (tmp_path / "cut.gz").write_bytes(gzip.compress(os.urandom(100_000))[:-5])
    (tmp_path / "out").write_bytes(b"old")
    bad("gunzip", "--force", tmp_path / "cut.gz", tmp_path / "out")
    bad("gunzip", tmp_path / "cut.gz", tmp_path / "new")
    assert (tmp_path / "out").read_bytes() == b"old"
    assert sorted(os.listdir(tmp_path)) == ["cut.gz", "out"]


def test_gunzip_names_what_is_wrong(tmp_path):
    (tmp_path / "plain").write_bytes(b"no gzip at all")
    assert "Not a gzipped file" in bad("gunzip", tmp_path / "plain", tmp_path / "out")
    (tmp_path / "some.gz").write_bytes(gzip.compress(b"data"))
    assert bad("gunzip", tmp_path / "some.gz", tmp_path / "none" / "out").endswith("none/out'\n")
    assert sorted(os.listdir(tmp_path)) == ["plain", "some.gz"]


def test_streams_have_names_in_messages(archive):
    assert bad("ls", "-", data=b"no zip").endswith("File is not a zip file [at byte 6]\n")
    with open("/dev/full", "wb") as full:
        done = subprocess.run([*COMMAND, "copy", archive, "-"], stdout=full, stderr=subprocess.PIPE)
    assert done.stderr.endswith(b"-> 'standard output'\n")


def test_gunzip_writes_through_a_link(tmp_path):
    (tmp_path / "some.gz").write_bytes(gzip.compress(b"new"))
    (tmp_path / "real").write_bytes(b"old")
    (tmp_path / "link").symlink_to("real")
    good("gunzip", "--force", tmp_path / "some.gz", tmp_path / "link")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "real").read_bytes() == b"new"


def test_info(archive, tmp_path):
    facts = json.loads(good("info", "--json"))
    assert facts.keys() >= pyio_chunked.build_info().keys()
    assert b"thresholds" in good("info")
    facts = json.loads(good("info", "--json", archive))
    assert (facts["kind"], facts["members"], facts["refused_by_strict"]) == ("zip", 3, [])
    (tmp_path / "some.gz").write_bytes(gzip.compress(b"12345", mtime=77))
    facts = json.loads(good("info", "--json", tmp_path / "some.gz"))
    assert (facts["kind"], facts["size"], facts["mtime"]) == ("gzip", 5, 77)
    (tmp_path / "plain").write_bytes(b"12345")
    facts = json.loads(good("info", "--json", tmp_path / "plain"))
    assert (facts["kind"], facts["size"]) == ("file", 5)
    assert facts["methods"][-1] == "chunked"
    assert sorted(os.listdir(tmp_path)) == ["plain", "some.gz", "some.zip"]
    for facts in map(json.loads, (good("info", "--json", p) for p in (archive, tmp_path / "some.gz"))):
        assert {"name", "size", "compressed_size", "crc"} <= facts.keys()


def test_calibrate_prints_what_a_shell_can_read(tmp_path):
    assert _cli_arguments.parse(["calibrate"])[1].directory == "."
    text = good("calibrate", "--budget", "0.2", tmp_path).decode()
    values = dict(line.removeprefix("export ").split("=") for line in text.splitlines())
    assert values.keys() == {"PYIO_CHUNKED_MAPPED", "PYIO_CHUNKED_PARALLEL", "PYIO_CHUNKED_HUGE_PAGES"}
    seen = subprocess.run(
        [
            "sh",
            "-c",
            f"{text}\nexec \"$0\" -c 'import pyio_chunked as p; print(*p.thresholds())'",
            sys.executable,
        ],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    assert seen == list(values.values())
    assert os.listdir(tmp_path) == []


# ---------------------------------------------------- pipes, signals, terminals


def test_a_closed_pipe_is_quiet(tmp_path):
    path = tmp_path / "many.zip"
    with zipfile.ZipFile(path, "w") as out:
        for i in range(5000):
            out.writestr(f"member number {i} with a long name", b"")
        out.writestr("large", bytes(4 << 20))
    for arguments in (["ls", path], ["ls", "--json", path], ["cat", path, "large"], ["copy", path, "-"]):
        process = subprocess.Popen(
            [*COMMAND, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        process.stdout.read(10)
        process.stdout.close()
        assert process.stderr.read() == b"", arguments
        process.stderr.close()
        assert process.wait(60) == 1


def slow_gzip(path: Path) -> None:
    """Minutes of work in little space: 1032 to 1, many times."""
    member = gzip.compress(bytes(64 << 20), 1)
    with open(path, "wb") as out:
        for _ in range(2000):
            out.write(member)


@pytest.mark.parametrize("verb", ["gunzip", "copy", "test"])
def test_interrupt_ends_the_work_with_130(verb, tmp_path):
    """Left alone, each of these works for minutes, or waits for ever."""
    keep = -1
    if verb == "gunzip":
        slow_gzip(tmp_path / "slow.gz")
        arguments = ["gunzip", "--progress", tmp_path / "slow.gz", os.devnull]
    elif verb == "copy":
        os.mkfifo(tmp_path / "fifo")
        keep = os.open(tmp_path / "fifo", os.O_RDWR)
        arguments = ["copy", tmp_path / "fifo", tmp_path / "out"]
    else:
        path = tmp_path / "slow.zip"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as out:
            out.writestr("m", bytes(64 << 20))
        path.write_bytes(many_times(path.read_bytes(), 1600))
        arguments = ["test", "--progress", path]
    process = subprocess.Popen(
        [*COMMAND, *map(str, arguments)],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, bufsize=0,
    )  # fmt: skip
    if verb == "copy":
        # A signal between the target's creation and the read that waits is seen after that read.
        asleep = 0
        while asleep < 5:
            assert process.poll() is None
            state = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0]
            asleep = asleep + 1 if state == "S" and (tmp_path / "out").exists() else 0
            time.sleep(0.02)
    else:
        # A bar with a rate: its first line is still tqdm's constructor.
        shown = b""
        while not re.search(rb"\d[kMG]B/s", shown):
            piece = process.stderr.read(100)
            assert piece, shown
            shown += piece
    process.send_signal(signal.SIGINT)
    code = process.wait(30)
    words = process.stderr.read()
    process.stderr.close()
    if keep >= 0:
        os.close(keep)
    assert code == 130
    assert b"Traceback" not in words and b"pyio-chunked:" not in words


def many_times(archive: bytes, count: int) -> bytes:
    """The archive's only member, count times under its own name each."""
    import io

    with zipfile.ZipFile(io.BytesIO(archive)) as one:
        (member,) = one.infolist()
        start, data = member.header_offset + 30 + len("m"), archive
        raw = data[start : start + member.compress_size]
    body, directory = bytearray(), bytearray()
    for i in range(count):
        name = b"%06d" % i
        fields = (20, 0, 8, 0, 33, member.CRC, member.compress_size, member.file_size, 6, 0)
        import struct

        offset = len(body)
        body += struct.pack("<4s5H3L2H", b"PK\3\4", *fields) + name + raw
        directory += struct.pack("<4sH", b"PK\1\2", 20) + struct.pack(
            "<5H3L5H2L", *fields[:-1], 0, 0, 0, 0, 0, offset) + name  # fmt: skip
    end = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, count, count, len(directory), len(body), 0)
    return bytes(body + directory + end)


def in_terminal(*arguments: str | Path, **environment: str) -> tuple[int, str]:
    """Exit code, and what a terminal would show."""
    code, pieces = None, []
    leader, follower = open_terminal()
    process = subprocess.Popen(
        [*COMMAND, *map(str, arguments)], stdin=follower, stdout=follower, stderr=follower,
        env={**os.environ, "TERM": "xterm", **environment},
    )  # fmt: skip
    os.close(follower)
    with contextlib.suppress(OSError):  # EIO: the other side is closed
        while piece := os.read(leader, 65536):
            pieces.append(piece)
    os.close(leader)
    code = process.wait(60)
    return code, b"".join(pieces).decode().replace("\r\n", "\n")


def test_terminal_gets_no_binary_without_force(archive):
    code, text = in_terminal("cat", archive, "a.txt")
    assert code == 0 and text.startswith("first line\n")
    code, text = in_terminal("cat", archive, "folder/c.bin")
    assert code == 1 and "-f" in text and "\x01" not in text
    code, text = in_terminal("cat", "-f", archive, "folder/b.csv")
    assert code == 0 and text == "x,y\n1,2\n"
    assert in_terminal("copy", archive, "-")[0] == 1


def test_terminal_gets_names_quoted(tmp_path):
    path = tmp_path / "evil.zip"
    with zipfile.ZipFile(path, "w") as out:
        out.writestr("evil\x1b]0;title\x07", b"")
    code, text = in_terminal("ls", path)
    assert code == 0 and "\x1b" not in text and "\\x1b]0;title\\x07" in text
    assert "evil\x1b]0;title\x07" in good("ls", path).decode(), "a program gets them as they are"


def test_color_only_on_a_terminal_that_wants_it(archive):
    assert "\x1b[32mok" in in_terminal("test", archive)[1]
    assert "\x1b[" not in in_terminal("test", archive, NO_COLOR="1")[1]
    assert "\x1b[" not in in_terminal("test", archive, TERM="dumb")[1]
    assert b"\x1b[" not in good("test", archive)


def test_progress_is_for_terminals_and_those_who_ask(archive, tmp_path):
    assert run("test", archive, "--progress").stderr.count(b"B") > 0
    assert run("test", archive, "--no-progress").stderr == b""
    assert "%|" not in in_terminal("test", archive)[1], "work this short shows no bar"


def test_words_go_to_standard_error(damaged, tmp_path):
    done = run("extract", damaged, tmp_path / "out")
    assert done.stdout == b"" and done.stderr.startswith(b"pyio-chunked: ")


@pytest.mark.parametrize(
    ("piece", "binary"),
    [
        (b"", False),
        (b"plain\ttext\r\n", False),
        ("grüße €".encode(), False),
        ("€".encode()[:2], False),
        (b"\x00", True),
        (b"\x1b[31m", True),
        (b"\x7fELF", True),
        (b"caf\xe9 au lait", True),
        (b"\xff", True),
    ],
)
def test_what_counts_as_binary(piece, binary):
    assert _cli_output.looks_binary(piece) is binary
