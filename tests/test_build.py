# SPDX-License-Identifier: MIT
"""What was built is what was asked for, and says so."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

import pyio_chunked

LIBRARIES = {name for name, version in pyio_chunked.build_info()["libraries"].items() if version is not None}
BUILD = os.environ.get("PYIO_TEST_BUILD", "")


@pytest.mark.parametrize("engine", ["isal", "libdeflate", "zlib", "nonsense"])
def test_engine_that_is_not_built_in_is_an_import_error(engine):
    done = subprocess.run(
        [sys.executable, "-c", "import pyio_chunked; print(pyio_chunked.build_info()['engines'])"],
        capture_output=True,
        text=True,
        env={**os.environ, "PYIO_CHUNKED_ENGINE": engine},
    )
    if engine in LIBRARIES:
        assert done.returncode == 0, done.stderr
        assert engine in done.stdout
    else:
        last = done.stderr.splitlines()[-1]
        assert done.returncode == 1
        assert last.startswith("ImportError") and engine in last


def test_build_has_the_libraries_it_promises():
    assert "zlib" in LIBRARIES
    if BUILD == "zlib":
        assert {"zlib"} == LIBRARIES
    else:
        required = set(filter(None, os.environ.get("PYIO_CHUNKED_REQUIRE", "").split(",")))
        assert required <= LIBRARIES


def test_portable_build_says_so():
    portable = pyio_chunked.build_info()["portable"]
    assert portable is (BUILD == "portable" or not sys.platform.startswith("linux"))


def test_version_is_the_package_metadata_version():
    from pathlib import Path

    text = Path(__file__).resolve().parent.parent.joinpath("pyproject.toml").read_text()
    assert f'version = "{pyio_chunked.__version__}"' in text


@pytest.mark.parametrize(
    ("platform", "sentence"),
    [
        ("win32", "pyio_chunked needs a POSIX system: it can't be built on Windows."),
        (
            "darwin",
            "pyio_chunked was never built on macOS: PYIO_CHUNKED_PORTABLE=1 tries its POSIX-only build.",
        ),
    ],
)
def test_other_systems_are_refused_in_one_sentence(platform, sentence, monkeypatch):
    """setup.py says why; no compiler is started."""
    monkeypatch.delenv("PYIO_CHUNKED_PORTABLE", raising=False)
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    code = "import sys, setuptools.command.build_ext; sys.platform = sys.argv[1]; sys.argv = ['setup.py', '--version']; exec(open('setup.py').read())"
    done = subprocess.run([sys.executable, "-c", code, platform], capture_output=True, text=True, cwd=root)
    assert done.returncode == 1
    assert done.stderr.splitlines() == [sentence]


@pytest.mark.parametrize(
    ("environment", "words"),
    [
        ({"PYIO_CHUNKED_REQUIRE": "isal", "PYIO_CHUNKED_NO_ISAL": "1"}, "contradict"),
        ({"PYIO_CHUNKED_REQUIRE": "lzma"}, "it may name"),
        ({"CPPFLAGS": "-nostdinc"}, "zlib1g-dev"),
        (
            {"CPPFLAGS": "-Dlibdeflate_alloc_decompressor=", "PYIO_CHUNKED_REQUIRE": "libdeflate"},
            "install libdeflate-dev",
        ),
    ],
)
def test_build_without_what_it_needs_fails_in_one_sentence(environment, words, tmp_path):
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    done = subprocess.run(
        [sys.executable, "setup.py", "-q", "build_ext", "--build-lib", tmp_path, "--build-temp", tmp_path],
        capture_output=True,
        text=True,
        cwd=root,
        env={**os.environ, "PYIO_CHUNKED_REQUIRE": "", **environment, "PYTHONSAFEPATH": ""},
    )
    assert done.returncode == 1, done.stdout + done.stderr
    lines = [line for line in done.stderr.splitlines() if "pyio_chunked" in line.lower()]
    assert len(lines) == 1 and words in lines[0]
