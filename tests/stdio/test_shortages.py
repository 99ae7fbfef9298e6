"""Something runs out while a tool is at work: descriptors, processes, memory, disk, directories.

Whatever comes of the call is right or a sentence. Once there is enough again the server works, and
nothing is left.
"""

import contextlib
import os
import re
import resource
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial

import pytest
from support import run_directories
from wire import SERVER, Server

from .test_faults import CALLS, check_right, check_works, open_shell, pid_of, shown, target

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


@contextlib.contextmanager
def limited(pid: int, limit: int, value: int) -> Iterator[None]:
    """Give a process a limit. It may have ended at the end."""
    before = resource.prlimit(pid, limit)
    resource.prlimit(pid, limit, (value, before[1]))
    try:
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            resource.prlimit(pid, limit, before)


def descriptors(victim: str, server: Server, pane: str) -> AbstractContextManager[None]:
    """Let a part open no more files."""
    pid = pid_of(server, victim, pane)
    return limited(pid, resource.RLIMIT_NOFILE, len(os.listdir(f"/proc/{pid}/fd")))


def processes(victim: str, server: Server, pane: str) -> AbstractContextManager[None]:
    """Let a part start nothing."""
    return limited(pid_of(server, victim, pane), resource.RLIMIT_NPROC, 1)


def disk(victim: str, server: Server, pane: str) -> AbstractContextManager[None]:
    """Let a part write nothing into files, as on a full disk."""
    return limited(pid_of(server, victim, pane), resource.RLIMIT_FSIZE, 0)


def memory(victim: str, server: Server, pane: str) -> AbstractContextManager[None]:
    """Let a part have no more memory than it has. The server itself may end, as when killed."""
    pid = pid_of(server, victim, pane)
    with open(f"/proc/{pid}/statm") as statm:
        pages = int(statm.read().split()[0])
    return limited(pid, resource.RLIMIT_AS, pages * _PAGE_BYTES)


@contextlib.contextmanager
def read_only(server: Server, _pane: str) -> Iterator[None]:
    """Let nobody but root write into the server's directory."""
    [directory] = run_directories(server.pid)
    os.chmod(directory, 0o500)
    try:
        yield
    finally:
        with contextlib.suppress(FileNotFoundError):  # it has been made anew elsewhere
            os.chmod(directory, 0o700)


@contextlib.contextmanager
def no_directory(server: Server, _pane: str) -> Iterator[None]:
    """Remove the server's directory."""
    [directory] = run_directories(server.pid)
    shutil.rmtree(directory)
    yield


Shortage = Callable[[Server, str], AbstractContextManager[None]]
SHORTAGES: dict[str, Shortage] = {
    "descriptors of the server": partial(descriptors, "server"),
    "descriptors of tmux": partial(descriptors, "tmux"),
    "processes": partial(processes, "tmux"),
    "disk for the server": partial(disk, "server"),
    "disk for the log": partial(disk, "writer"),
    "memory of tmux": partial(memory, "tmux"),
    "a directory to write into": read_only,
    "a directory": no_directory,
}


@pytest.mark.parametrize("what", SHORTAGES)
def test_shortage_makes_no_call_wrong(server: Server, what: str) -> None:
    for tool, (arguments, _) in CALLS.items():
        pane = open_shell(server)
        with SHORTAGES[what](server, pane):
            result = server.call(tool, **{**arguments, **target(tool, pane)})

        check_right(tool, result)
        check_works(server)
    server.finish()


# A /dev/pts of its own with three terminals, and then a command.
_FEW_TERMINALS = """
mount -t devpts -o newinstance,ptmxmode=0666,max=3 devpts /dev/pts &&
mount --bind /dev/pts/ptmx /dev/ptmx && exec "$@"
"""


def test_terminals_that_run_out_are_told_and_used_again() -> None:
    unshare = ["unshare", "--mount", "sh", "-c", _FEW_TERMINALS, "sh"]
    if subprocess.run([*unshare, "true"], capture_output=True, check=False).returncode:
        pytest.skip("only who may mount a /dev/pts can limit the number of terminals")
    server = Server(command=[*unshare, *SERVER]).start()
    made = [server.call("create_pane", command="exec cat", name=str(n)) for n in range(5)]
    refused = [result for result in made if result.get("isError")]

    assert 1 <= len(refused) <= 3
    assert all(re.search(r"\w.*\.$", shown(result)) for result in refused), refused
    server.text("kill_pane", pane_id="0")
    assert not server.call("create_pane", command="exec cat").get("isError")
    server.finish()
