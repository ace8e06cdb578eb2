# SPDX-License-Identifier: MIT
"""pyio-chunked extract beside unzip -q, on what the demo takes: Python's own modules.

    python -m pytest benchmarks/test_cli_extract.py -s

In turn, medians; every extraction goes into a fresh folder, and nothing is removed before the end: ext4
looks at each inode that was deleted in the last minutes before it takes one (recently_deleted), which costs
whoever creates files after an `rm -r` ten times what they cost else, both programs alike. For the same reason ext4 is
measured on an image of its own where root can mount one, and otherwise where the tests' folder lies.

Below each figure stands the floor: a C program with two threads that makes the same files and folders out of
memory, without reading, inflating and checking anything.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import sysconfig
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

ROUNDS = int(os.environ.get("PYIO_BENCH_ROUNDS", "7"))
COMMAND = [sys.executable, "-m", "pyio_chunked"]
# Children import with bytecode, as an installed package does.
ENVIRONMENT = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}

FLOOR = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static struct { size_t size; char path[512]; } files[10000];
static size_t count;
static atomic_size_t next;
static char *data;
static int target;

static void *work(void *unused)
{
    for (size_t i; (i = atomic_fetch_add(&next, 16)) < count;)
        for (size_t k = i; k < i + 16 && k < count; k++) {
            int fd = openat(target, files[k].path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
            if (fd < 0 || write(fd, data, files[k].size) != (ssize_t)files[k].size || close(fd) < 0)
                exit(1);
        }
    return unused;
}

int main(int argc, char **argv)
{
    FILE *list = fopen(argv[2], "r");
    struct timespec a, b;
    pthread_t other;

    (void)argc;
    data = malloc(64 << 20);
    memset(data, 'x', 64 << 20);
    while (count < 10000 && fscanf(list, "%zu %511[^\n]", &files[count].size, files[count].path) == 2)
        count++;
    clock_gettime(CLOCK_MONOTONIC, &a);
    mkdir(argv[1], 0777);
    target = open(argv[1], O_RDONLY | O_DIRECTORY);
    for (size_t i = 0; i < count; i++)
        for (char *slash = files[i].path; (slash = strchr(slash, '/')) != NULL; slash++) {
            *slash = 0;
            mkdirat(target, files[i].path, 0777);
            *slash = '/';
        }
    pthread_create(&other, NULL, work, NULL);
    work(NULL);
    pthread_join(other, NULL);
    clock_gettime(CLOCK_MONOTONIC, &b);
    printf("%.9f\n", (double)(b.tv_sec - a.tv_sec) + (double)(b.tv_nsec - a.tv_nsec) / 1e9);
    return 0;
}
"""


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("modules") / "modules.zip"
    library = Path(sysconfig.get_path("stdlib"))
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as out:
        for module in sorted(library.rglob("*.py")):
            if "site-packages" not in module.parts:
                out.write(module, module.relative_to(library), compresslevel=6)
    return path


@pytest.fixture(scope="module")
def floor_program(archive: Path) -> list[str]:
    if shutil.which("cc") is None:
        pytest.skip("no C compiler for the floor")
    source, program, members = (archive.with_name(name) for name in ("floor.c", "floor", "members"))
    source.write_text(FLOOR)
    subprocess.run(["cc", "-O2", "-o", program, source, "-pthread"], check=True)
    with zipfile.ZipFile(archive) as zf:
        members.write_text("".join(f"{m.file_size} {m.filename}\n" for m in zf.infolist()))
    return [str(program), str(members)]


def seconds(*command: object) -> float:
    start = time.perf_counter()
    subprocess.run([str(word) for word in command], check=True, env=ENVIRONMENT)
    return time.perf_counter() - start


def measure(archive: Path, floor_program: list[str], folder: Path, where: str) -> None:
    unzip = shutil.which("unzip")
    if unzip is None:
        pytest.skip("unzip is not there")
    program, members = floor_program
    rows = []
    for number in range(ROUNDS):
        ours = seconds(*COMMAND, "extract", archive, folder / f"ours{number}")
        peer = seconds(unzip, "-q", archive, "-d", folder / f"unzip{number}")
        words = subprocess.run(
            [program, folder / f"floor{number}", members], capture_output=True, text=True, check=True
        ).stdout
        rows.append((ours, peer, float(words)))
    ours, peer, floor = (statistics.median(row[i] for row in rows) for i in range(3))
    ratio = statistics.median(row[1] / row[0] for row in rows)
    with zipfile.ZipFile(archive) as zf:
        count, size = len(zf.namelist()), sum(m.file_size for m in zf.infolist())
    print(
        f"\npyio-chunked extract, {count} modules, {size / 1e6:.0f} MB, {where}: {ours * 1e3:.0f} ms,"
        f" unzip {peer * 1e3:.0f} ms, {ratio:.2f}x (bar 2)\n"
        f"  floor: {floor * 1e3:.0f} ms to make the files alone"
    )


def test_on_tmpfs(archive: Path, floor_program: list[str]) -> None:
    if not os.path.isdir("/dev/shm"):
        pytest.skip("no tmpfs at /dev/shm")
    folder = Path("/dev/shm") / f"pyio-bench-{os.getpid()}"
    folder.mkdir()
    try:
        measure(archive, floor_program, folder, "tmpfs")
    finally:
        shutil.rmtree(folder)


@pytest.fixture
def fresh_ext4(tmp_path: Path) -> Iterator[Path]:
    image, folder = tmp_path / "ext4.img", tmp_path / "ext4"
    with open(image, "wb") as file:
        file.truncate(4 << 30)
    folder.mkdir()
    try:
        subprocess.run(["mkfs.ext4", "-q", "-F", image], check=True, capture_output=True)
        subprocess.run(["mount", "-o", "loop", image, folder], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        image.unlink()
        pytest.skip("no ext4 image can be mounted here")
    yield folder
    subprocess.run(["umount", folder], check=True)
    image.unlink()


def test_on_a_fresh_ext4(archive: Path, floor_program: list[str], fresh_ext4: Path) -> None:
    measure(archive, floor_program, fresh_ext4, "fresh ext4")


def test_where_tests_lie(archive: Path, floor_program: list[str], tmp_path: Path) -> None:
    words = subprocess.run(["stat", "-f", "-c", "%T", tmp_path], capture_output=True, text=True).stdout
    measure(archive, floor_program, tmp_path, f"{words.strip()} as it is found")
