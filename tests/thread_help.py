# SPDX-License-Identifier: MIT
"""What the tests of threads and of fork share."""

from __future__ import annotations

import os
import signal
import threading
import traceback
from collections.abc import Callable


def run_threads(count: int, work: Callable[[int], object]) -> None:
    """work(i) in `count` threads; the first exception is raised here."""
    failures: list[BaseException] = []

    def guarded(number: int) -> None:
        try:
            work(number)
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=guarded, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
        assert not thread.is_alive()
    if failures:
        raise failures[0]


def in_child(work: Callable[[], object]) -> int:
    """The process that runs work() and ends with 0 where it worked."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            signal.alarm(120)  # a child that hangs is no reason to hang
            work()
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    return child


def wait_for(*children: int) -> None:
    for child in children:
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
