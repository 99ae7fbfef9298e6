"""What programs expect of a file system, tried in a project that protectfs serves."""

import contextlib
import ctypes
import errno
import mmap
import os
import shutil
import socket
import sqlite3
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

AT_FDCWD = -100
RENAME_NOREPLACE = 1
RENAME_EXCHANGE = 2

# Protected: the first is there, the second is not.
PRESENT = ".envrc"
ABSENT = ".mcp.json"


@contextlib.contextmanager
def refused(number: int) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno != number:
            raise
    else:
        raise AssertionError("it was not refused")


def renameat2(old: str, new: str, flags: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.renameat2(AT_FDCWD, old.encode(), AT_FDCWD, new.encode(), flags):
        raise OSError(ctypes.get_errno(), old)


def removed_file_is_still_a_file() -> None:
    file = os.open("removed", os.O_RDWR | os.O_CREAT)
    os.write(file, b"hello")
    os.unlink("removed")
    os.ftruncate(file, 3)
    os.fchmod(file, 0o600)
    status = os.fstat(file)
    assert (status.st_size, status.st_nlink, status.st_mode & 0o777) == (3, 0, 0o600)
    assert os.pread(file, 9, 0) == b"hel"
    assert os.listdir(".") == []
    os.close(file)


def names_of_a_file_show_the_same() -> None:
    Path("one").write_text("1")
    os.link("one", "two")
    with open("two") as two:
        Path("one").write_text("22")
        assert two.read() == "22"
    assert os.path.samefile("one", "two")
    assert os.stat("one").st_nlink == 2


def other_kinds_of_files_work() -> None:
    os.symlink("/etc/passwd", "link")
    os.utime("link", (1, 2), follow_symlinks=False)
    assert (os.readlink("link"), os.lstat("link").st_mtime) == ("/etc/passwd", 2)
    os.mkfifo("fifo")
    with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as client:
        server.bind("socket")
        server.listen()
        client.connect("socket")


def file_in_memory_is_the_file() -> None:
    with open("mapped", "w+b") as file:
        file.truncate(8192)
        with mmap.mmap(file.fileno(), 8192) as memory:
            memory[4096:4099] = b"abc"
        os.posix_fallocate(file.fileno(), 0, 10_000)
        assert os.lseek(file.fileno(), 0, os.SEEK_DATA) == 0
    assert Path("mapped").read_bytes()[4096:4099] == b"abc"
    assert os.stat("mapped").st_size == 10_000


def file_that_is_appended_to_can_be_mapped() -> None:
    file = os.open("log", os.O_RDWR | os.O_CREAT | os.O_APPEND)
    os.write(file, b"AAAAAAAA")
    with mmap.mmap(file, 8) as memory:
        memory[:4] = b"BBBB"
    os.write(file, b"CC")
    os.close(file)
    assert Path("log").read_bytes() == b"BBBBAAAACC"


def program_that_runs_can_be_removed() -> None:
    program = shutil.which("sleep")
    assert program
    os.mkdir("build")
    shutil.copy(program, "build/sleep")
    with subprocess.Popen(["build/sleep", "60"]) as process:
        shutil.rmtree("build")
        assert process.poll() is None
        process.kill()


def database_works() -> None:
    for mode in ("delete", "wal"):
        with contextlib.closing(sqlite3.connect(f"{mode}.db")) as database:
            database.execute(f"pragma journal_mode={mode}")
            database.execute("create table numbers (number)")
            database.executemany("insert into numbers values (?)", [(i,) for i in range(1000)])
            database.commit()
            assert database.execute("select count(*) from numbers").fetchone() == (1000,)


def directory_has_all_of_many_files() -> None:
    os.mkdir("many")
    for i in range(3000):
        Path(f"many/{i}").touch()
    assert sorted(int(name) for name in os.listdir("many")) == list(range(3000))
    assert all(entry.stat().st_size == 0 for entry in os.scandir("many"))


def threads_do_not_disturb_each_other() -> None:
    problems = []

    def replace(name: str) -> None:
        try:
            for i in range(300):
                Path(name).write_text("x" * i)
                os.rename(name, f"{name}.new")
                assert os.stat(f"{name}.new").st_size == i
        except (AssertionError, OSError) as problem:
            problems.append(problem)

    threads = [threading.Thread(target=replace, args=(f"thread-{i}",)) for i in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []


def protected_names_are_not_made() -> None:
    os.chdir("..")
    Path("plain").write_text("plain")
    for old, new, flags in (
        ("plain", PRESENT, 0),
        ("plain", PRESENT, RENAME_EXCHANGE),
        ("plain", ABSENT, 0),
        ("plain", ABSENT, RENAME_NOREPLACE),
        (PRESENT, "plain", 0),
        (PRESENT, "plain", RENAME_EXCHANGE),
        (PRESENT, "other", RENAME_NOREPLACE),
    ):
        with refused(errno.EROFS):
            renameat2(old, new, flags)
    os.mkdir(".claude")
    os.makedirs("whole")
    Path("whole/settings.json").touch()
    for old, new, flags in (
        ("whole", ".claude", 0),
        ("whole", ".claude", RENAME_EXCHANGE),
        (".claude", "whole", RENAME_EXCHANGE),
        (".claude", "away", 0),
    ):
        with refused(errno.EBUSY):
            renameat2(old, new, flags)
    with refused(errno.EROFS):
        os.mknod(ABSENT)
    with refused(errno.EROFS), socket.socket(socket.AF_UNIX) as server:
        server.bind(ABSENT)
    directory = os.open(".", os.O_RDONLY)
    with refused(errno.EROFS):
        os.open(ABSENT, os.O_CREAT | os.O_WRONLY, dir_fd=directory)
    with refused(errno.EOPNOTSUPP):
        os.open(".", os.O_TMPFILE | os.O_RDWR)
    os.close(directory)
    shutil.rmtree("whole")
    os.rmdir(".claude")
    os.unlink("plain")


def main() -> None:
    os.mkdir("tried")
    os.chdir("tried")
    removed_file_is_still_a_file()
    names_of_a_file_show_the_same()
    other_kinds_of_files_work()
    file_in_memory_is_the_file()
    file_that_is_appended_to_can_be_mapped()
    program_that_runs_can_be_removed()
    database_works()
    directory_has_all_of_many_files()
    threads_do_not_disturb_each_other()
    protected_names_are_not_made()
    shutil.rmtree("tried")


if __name__ == "__main__":
    main()
