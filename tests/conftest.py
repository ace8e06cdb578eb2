# SPDX-License-Identifier: MIT
"""What holds for every test: seeds, nothing left behind, no unnamed skip."""

from __future__ import annotations

import fnmatch
import os
import random
import re
import signal
import sys
from pathlib import Path

import pytest

import pyio_chunked

ROOT = Path(__file__).resolve().parent.parent
SKIPS = Path(__file__).with_name("skips.txt")

# Children started by tests import the same build, whatever their folder, and,
# behind it, the functions of test modules that were sent to them.
PACKAGE_PARENT = str(Path(pyio_chunked.__file__).resolve().parent.parent)
sys.path.append(str(ROOT))
os.environ["PYTHONPATH"] = os.pathsep.join([PACKAGE_PARENT, str(ROOT)])
os.environ["PYTHONSAFEPATH"] = "1"
os.environ["PYTHONDONTWRITEBYTECODE"] = "1"

# A run in the background of a script ignores Ctrl-C, and so would its children.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Which build this is; ./dev says so, python -m pytest alone means "all".
BUILD = os.environ.get("PYIO_TEST_BUILD", "all")
assert "PYIO_TEST_BUILD" not in os.environ or Path(PACKAGE_PARENT) != ROOT, (
    "another build than ./dev's is tested"
)

try:
    import hypothesis
except ImportError:  # a smoke run does without
    pass
else:
    hypothesis.settings.register_profile(
        "default",
        deadline=None,  # a busy machine is no failure
        print_blob=True,
        database=None,  # nothing is left in the current folder
        suppress_health_check=[hypothesis.HealthCheck.too_slow],
        max_examples=int(os.environ.get("PYIO_TEST_EXAMPLES", "50")),
    )
    hypothesis.settings.load_profile("default")


# ------------------------------------------------------------------- seeds


def pytest_configure(config: pytest.Config) -> None:
    # Workers of pytest-xdist inherit it.
    os.environ.setdefault("PYIO_TEST_SEED", str(random.SystemRandom().randrange(1 << 32)))
    config.stash[skipped_key] = {}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if BUILD == "sanitize" and item.get_closest_marker("own_memory"):
            item.add_marker(pytest.mark.skip(reason="a sanitizer needs memory of its own"))
        if BUILD != "all" and item.get_closest_marker("once"):
            item.add_marker(pytest.mark.skip(reason="the first build is enough"))


def pytest_make_parametrize_id(config: pytest.Config, val: object, argname: str) -> str | None:
    # Spelled out, a megabyte takes seconds, and minutes under a sanitizer; and
    # a gzip header has the time in it, so that two workers collect two names.
    long = isinstance(val, (bytes, str)) and len(val) > (20 if isinstance(val, bytes) else 99)
    return f"{argname}{len(val)}" if long else None


def pytest_report_header() -> list[str]:
    return [
        f"build: {BUILD} from {os.path.relpath(PACKAGE_PARENT, ROOT)}",
        f"seed: PYIO_TEST_SEED={os.environ['PYIO_TEST_SEED']}",
    ]


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> str:
    """A seed of this run and this test; printed when the test fails."""
    value = f"{os.environ['PYIO_TEST_SEED']}:{request.node.nodeid}"
    print(f"seed: PYIO_TEST_SEED={os.environ['PYIO_TEST_SEED']}")
    return value


@pytest.fixture
def rng(seed: str) -> random.Random:
    return random.Random(seed)


# ------------------------------------------------------ nothing left behind


def names_here() -> set[str]:
    # Tools' own folders, and what a build beside the test run may be writing.
    tools = ("build", "dist", "__pycache__", "pyio_chunked-", "pyio_chunked.")
    return {name for name in os.listdir(".") if not name.startswith((".", *tools))}


@pytest.fixture(autouse=True)
def nothing_is_left_here():
    folder, before = os.getcwd(), names_here()
    yield
    assert os.getcwd() == folder, "the test changed the current folder"
    assert names_here() - before == set(), "the test left something in the current folder"


@pytest.fixture(autouse=True)
def no_fault_is_left():
    yield
    clear = getattr(sys.modules["pyio_chunked"]._core, "_fault_clear", None)
    if clear is not None:
        clear()


# -------------------------------------------------------------------- skips

skipped_key = pytest.StashKey[dict[str, str]]()
_skipped: dict[str, str] = {}


def allowed_skips() -> list[tuple[str, re.Pattern[str], set[str]]]:
    rules = []
    for number, line in enumerate(SKIPS.read_text().splitlines(), 1):
        if line.strip() and not line.startswith("#"):
            parts = [part.strip() for part in line.split(" | ")]
            assert len(parts) == 3, f"{SKIPS.name}:{number}: not 'test | reason | where'"
            rules.append((parts[0], re.compile(parts[1]), set(parts[2].split())))
    return rules


def is_allowed(nodeid: str, reason: str, rules: list[tuple[str, re.Pattern[str], set[str]]]) -> bool:
    here = {"anywhere", f"build:{BUILD}"}
    if not (os.environ.get("CI") and os.geteuid() == 0):
        here.add("outside-ci")
    return any(
        fnmatch.fnmatchcase(nodeid, pattern) and text.search(reason) and where & here
        for pattern, text, where in rules
    )


def note_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    if report.skipped and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        _skipped[report.nodeid] = reason.removeprefix("Skipped: ")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    note_skip(report)


def pytest_collectreport(report: pytest.CollectReport) -> None:
    note_skip(report)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    if not hasattr(session.config, "workerinput") and exitstatus == pytest.ExitCode.OK:
        rules = allowed_skips()
        if not all(is_allowed(nodeid, reason, rules) for nodeid, reason in _skipped.items()):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if not _skipped:
        return
    rules = allowed_skips()
    terminalreporter.section("skipped")
    for nodeid, reason in sorted(_skipped.items()):
        if is_allowed(nodeid, reason, rules):
            terminalreporter.line(f"allowed   {nodeid}: {reason}")
        else:
            terminalreporter.line(f"FORBIDDEN {nodeid}: {reason}", red=True)
