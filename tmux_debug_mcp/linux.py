"""What only Linux has: /proc, signals to whole trees of processes, and the warden.

With `files` and `terminals`, this is what knows Linux. It imports only the standard library, because it is also a
program: the *warden*, the parent of a tmux server and so the ancestor of everything in its panes. Daemons that leave
their session and their parents fall to the warden too (it is a subreaper), so when it ends its descendants,
nothing is left. It ignores signals and works on the end of its standard input, the lifeline: the kernel
closes that however its owner ends, by SIGKILL too.
"""

import contextlib
import ctypes
import errno
import fcntl
import os
import resource
import signal
import stat
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, NoReturn

# What tmux and all in its panes have in their environment: the name of the warden's directory, and behind a slash
# the pane's id.
MARKER = "MCP_DEBUG_PANE"

_MARKER = f"{MARKER}=".encode()
_PF_FORKNOEXEC = 0x40
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36

# Gentle signals get this long before SIGKILL: clients kill their server 500 ms after asking it to end.
GRACE_S = 0.1
# What SIGKILL has not ended after this long hangs in the kernel or belongs to another user.
_GIVE_UP_S = 2.0
# A tmux server needs two files per pane; the panes themselves get the limit that we were started with.
_TMUX_OPEN_FILES = 4096
# We need one for each pane, and some for each call.
_MOST_OPEN_FILES = 65_536
# Of the process, or of the system.
OUT_OF_FILES = (errno.EMFILE, errno.ENFILE)

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# A directory is gone after as many looks as it is deep.
_MOST_LOOKS = 10_000

# What a warden does not end of. To ignore SIGCHLD is to have children reaped.
_IGNORED = (
    *(signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGPIPE, signal.SIGALRM),
    *(signal.SIGUSR1, signal.SIGUSR2, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU, signal.SIGCHLD),
)


class Stat(NamedTuple):
    """One process in /proc/PID/stat, proc(5)'s names.

    Attributes:
        is_fork: It has not started a program since it was forked, as a subshell has not.
        reaped: Whether it has ever waited for a child that had ended: its cminflt is not 0, for no process runs
            without page faults. Of a pane.sh, whose first child is the command, that the command has ended.
        start_stack: Where the stack of its program begins, another address after each execve.
    """

    pid: int
    comm: str
    state: str
    ppid: int
    pgrp: int
    session: int
    tty: int
    tpgid: int
    is_fork: bool
    reaped: bool
    starttime: int
    start_stack: int


def read_stat(pid: int) -> Stat | None:
    """Return the process's state, or None when there is no such process."""
    data = read(f"/proc/{pid}/stat")
    if not data:
        return None
    # The name is in parentheses and may hold any byte, parentheses too.
    name, _, rest = data.partition(b"(")[2].rpartition(b")")
    words = rest.split()
    ppid, pgrp, session, tty, tpgid = map(int, words[1:6])
    comm = name.decode(errors="replace")
    is_fork = bool(int(words[6]) & _PF_FORKNOEXEC)
    times = words[8] != b"0", int(words[19]), int(words[25])
    return Stat(pid, comm, chr(words[0][0]), ppid, pgrp, session, tty, tpgid, is_fork, *times)


def is_on_terminal(process: Stat, path: str) -> bool:
    """Tell whether a process has this terminal, such as /dev/pts/3, as its own."""
    try:
        return os.stat(path).st_rdev == device(process.tty)
    except OSError:
        return False


def device(tty: int) -> int:
    """Return the device number of a terminal, as os.stat() has it, for what /proc/PID/stat says."""
    # As proc(5) has it: the minor number in bits 31 to 20 and 7 to 0, the major one in 15 to 8.
    return os.makedev(tty >> 8 & 0xFFF, tty & 0xFF | tty >> 12 & 0xFFF00)


def cpu_time(pid: int) -> bytes:
    """Return a mark that changes whenever the process runs; empty when it is gone."""
    return read(f"/proc/{pid}/schedstat")


def marker(pid: int) -> str:
    """Return the value of MARKER in the environment that the process was started with, or nothing."""
    for entry in read(f"/proc/{pid}/environ").split(b"\0"):
        if entry.startswith(_MARKER):
            return entry.removeprefix(_MARKER).decode(errors="replace")
    return ""


def children(pid: int) -> list[int]:
    """Return the children of all threads of the process, oldest first within a thread."""
    found: list[int] = []
    for thread in threads(pid):
        found += map(int, read(f"/proc/{pid}/task/{thread}/children").split())
    return found


def threads(pid: int) -> list[str]:
    """Return the ids of the threads of a process."""
    try:
        # A directory of one thread has three links, and to ask for that is faster than to list it.
        if os.stat(f"/proc/{pid}/task").st_nlink == 3:  # noqa: PLR2004
            return [str(pid)]
        return os.listdir(f"/proc/{pid}/task")
    except OSError:
        return []


def living_children(pid: int, is_meant: Callable[[Stat], bool]) -> list[int]:
    """Return the living children that are meant, oldest first; of a subreaper, none only if there are none.

    Who ends while this looks leaves its children to the subreaper, behind what has been read. So it looks again until
    all that had ended when the children were read were known to have.
    """
    ended: set[int] = set()
    while True:
        stats = {child: read_stat(child) for child in children(pid)}
        living = {child: stat for child, stat in stats.items() if stat and stat.state not in "ZX"}
        found = [child for child, stat in living.items() if is_meant(stat)]
        newly_ended = stats.keys() - living.keys() - ended
        if found or not newly_ended:
            return found
        ended |= newly_ended


def descendants(pid: int, spare: frozenset[int] = frozenset()) -> list[int]:
    """Return the children, their children and so on, parents first, without zombies and the spared and theirs.

    Of a subreaper, none only if there are none.
    """
    found = living_children(pid, lambda stat: stat.pid not in spare)
    for parent in found:
        found += [child for child in children(parent) if child not in spare and is_alive(child)]
    return found


def is_alive(pid: int) -> bool:
    """Tell whether the process is there and more than a zombie."""
    stat = read_stat(pid)
    return stat is not None and stat.state not in "ZX"


def open_pidfd(pid: int) -> int:
    """Return a file that can be read once the process has ended, or -1 when it is gone."""
    try:
        return os.pidfd_open(pid)
    except ProcessLookupError:
        return -1


def send_signals(pids: Iterable[int], *signals: int) -> None:
    """Send each process each signal in order; those that are gone or another user's are passed over."""
    for pid in pids:
        for number in signals:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)


def signal_exit_code(name: str) -> int:
    """Return the exit code by which a shell tells that this signal ended a program."""
    return 128 + signal.Signals[name.partition("+")[0]] + int(name.partition("+")[2] or 0)


def end_descendants(root: int, spare: frozenset[int] = frozenset()) -> bool:
    """End all descendants of a process, but the spared ones and theirs: gently, then by SIGKILL.

    A process that forks faster than it can be killed is stopped first.

    Returns:
        Whether all of them are gone.
    """
    begin = time.monotonic()
    told: set[int] = set()
    while (living := set(descendants(root, spare))) and time.monotonic() < begin + GRACE_S:
        # Also what the ending ones start, such as the sleep of pane.sh.
        send_signals(living - told, signal.SIGTERM, signal.SIGHUP, signal.SIGCONT)
        told |= living
        time.sleep(0.002)
    while living and time.monotonic() < begin + _GIVE_UP_S:
        stopped: set[int] = set()
        while living := set(descendants(root, spare)) - stopped:
            send_signals(living, signal.SIGSTOP)
            stopped |= living
        send_signals(stopped, signal.SIGKILL)
        time.sleep(0.001)
        living = set(descendants(root, spare))
    return not living


def reap_adopted(spare: frozenset[int]) -> None:
    """Reap our dead children but the spared ones, which whoever started them reaps."""
    for pid in children(os.getpid()):
        if pid not in spare and not is_alive(pid):
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)


def program(pid: int) -> str:
    """Return the name of the file that a process runs, or nothing when that can't be told."""
    try:
        return os.path.basename(os.readlink(f"/proc/{pid}/exe")).removesuffix(" (deleted)")
    except OSError:
        return ""


def runs(pid: int, path: str) -> bool:
    """Tell whether a process runs the program at this path."""
    try:
        return os.path.samefile(f"/proc/{pid}/exe", path)
    except OSError:
        return False


def arguments(pid: int) -> list[str]:
    """Return what a process was started with, its own name first."""
    return read(f"/proc/{pid}/cmdline").decode(errors="replace").split("\0")[:-1]


def is_in_our_place(pid: int) -> bool:
    """Tell whether a process has our user and sees the files that we see."""
    try:
        ours = os.stat("/proc/self/ns/mnt").st_ino, os.readlink("/proc/self/root"), os.geteuid()
        user = os.stat(f"/proc/{pid}").st_uid
        return ours == (os.stat(f"/proc/{pid}/ns/mnt").st_ino, os.readlink(f"/proc/{pid}/root"), user)
    except OSError:
        return False


def open_files(pid: int) -> list[str]:
    """Return the numbers of the files that a process has open."""
    try:
        return os.listdir(f"/proc/{pid}/fd")
    except OSError:
        return []


def open_files_limit_of(pid: int) -> int:
    """Return how many files a process may have open, or 0 when it is gone."""
    try:
        soft = resource.prlimit(pid, resource.RLIMIT_NOFILE)[0]
    except OSError:
        return 0
    return _MOST_OPEN_FILES if soft == resource.RLIM_INFINITY else soft


def has_open(pid: int, path: str) -> bool:
    """Tell whether a process has a file open, be it removed."""
    for name in open_files(pid):
        with contextlib.suppress(OSError):
            if os.readlink(f"/proc/{pid}/fd/{name}").removesuffix(" (deleted)") == path:
                return True
    return False


def open_files_limit() -> str:
    """Return our soft limit of open files, as `ulimit -n` has it."""
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return "unlimited" if soft == resource.RLIM_INFINITY else str(soft)


def raise_open_files_limit() -> None:
    """Let this process have many files open, as far as it may."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MOST_OPEN_FILES if hard == resource.RLIM_INFINITY else min(_MOST_OPEN_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def hold(directory: str) -> int:
    """Lock a directory as in use until the returned file is closed or this process ends."""
    fd = os.open(directory, _DIRECTORY)
    fcntl.flock(fd, fcntl.LOCK_SH)
    return fd


@contextlib.contextmanager
def unheld(directory: str) -> Iterator[bool]:
    """Tell whether nobody holds an existing directory, and keep it so for the time of the block."""
    fd = os.open(directory, _DIRECTORY)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        is_free = True
    except BlockingIOError:
        is_free = False
    try:
        yield is_free
    finally:
        os.close(fd)


def remove_if_unused(directory: str, deadline: float) -> None:
    """Remove the directory of a warden unless a warden holds it, and kill what carries its mark.

    A warden that was stopped, whose server is gone, goes on and does that itself.

    Args:
        directory: An existing directory, `NAME-PID-NONCE`, of the warden of a server.
        deadline: When to give up, as time.monotonic() has it.
    """
    with unheld(directory) as is_free:
        mark = os.path.basename(directory)
        kin = _ancestors()
        server = mark.split("-")[-2]
        if not is_free and not (server.isdigit() and is_alive(int(server))):
            send_signals(_marked(mark, kin), signal.SIGCONT)
        while is_free and time.monotonic() < deadline:
            marked = _marked(mark, kin)
            if not marked:
                remove(directory)
                return
            send_signals(marked, signal.SIGKILL)
            time.sleep(0.005)


def remove(directory: str) -> None:
    """Remove a directory with all that is in it, if it is there and no link.

    Directories in it are emptied from the top, what they have being moved there: so it may be deep, and no path is
    followed that somebody could change meanwhile.
    """
    try:
        if stat.S_ISDIR(os.lstat(directory).st_mode):
            os.chmod(directory, 0o700)
        root = os.open(directory, _DIRECTORY)
    except OSError:
        return
    try:
        moved = 0
        for _ in range(_MOST_LOOKS):
            directories = [name for name in os.listdir(root) if not _unlinked(name, root)]
            for name in directories:
                moved = _emptied(name, root, moved)
            if not directories:
                break
        os.rmdir(directory)
    except OSError:
        return
    finally:
        os.close(root)


def _unlinked(name: str, directory: int) -> bool:
    """Remove what is no directory; tell whether it was none."""
    try:
        os.unlink(name, dir_fd=directory)
    except OSError as error:
        return error.errno not in (errno.EISDIR, errno.EPERM)
    return True


def _emptied(name: str, root: int, moved: int) -> int:
    """Remove a directory; what is in it goes, or directories to the root. Return how many have been moved there."""
    with contextlib.suppress(OSError):
        found = os.open(name, _DIRECTORY | os.O_PATH, dir_fd=root)
        try:
            os.chmod(f"/proc/self/fd/{found}", 0o700)
        finally:
            os.close(found)
        opened = os.open(name, _DIRECTORY, dir_fd=root)
        try:
            for inner in os.listdir(opened):
                if not _unlinked(inner, opened):
                    moved += 1
                    os.rename(inner, f".removed-{moved}", src_dir_fd=opened, dst_dir_fd=root)
        finally:
            os.close(opened)
        os.rmdir(name, dir_fd=root)
    return moved


def become_subreaper(*, is_one: bool = True) -> None:
    """Make orphaned descendants children of this process instead of init's, or again of init."""
    _prctl(_PR_SET_CHILD_SUBREAPER, int(is_one))


def _ancestors() -> set[int]:
    """Return this process and its parents: what started us may itself be left of a server."""
    found: set[int] = set()
    pid = os.getpid()
    while pid and pid not in found and (stat := read_stat(pid)):
        found.add(pid)
        pid = stat.ppid
    return found


def _marked(mark: str, spare: set[int]) -> list[int]:
    """Return the processes whose environment has a mark, but the spared ones."""
    return [pid for pid in _all() if pid not in spare and marker(pid).partition("/")[0] == mark]


def _all() -> list[int]:
    return [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if is_alive(pid)]


def _prctl(option: int, value: int) -> None:
    if ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")


def read(path: str) -> bytes:
    """Return what a file of /proc has, or nothing where it is gone or not for us."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in OUT_OF_FILES:  # which tells nothing of the process
            raise
        return b""
    try:
        # ProcessLookupError and the like: it ended meanwhile.
        data = os.read(fd, 4096)
        while data and len(data) % 4096 == 0 and (more := os.read(fd, 65536)):
            data += more
    except OSError:
        return b""
    finally:
        os.close(fd)
    return data


def _exec_tmux(control_in: int, control_out: int, argv: list[str]) -> NoReturn:
    # The client goes with the warden, so that its owner sees the warden's death at once.
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    wanted = _TMUX_OPEN_FILES if hard == resource.RLIM_INFINITY else min(_TMUX_OPEN_FILES, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    for number in (*_IGNORED, signal.SIGXFSZ):  # the last one Python itself ignores
        signal.signal(number, signal.SIG_DFL)
    os.dup2(control_in, 0)
    os.dup2(control_out, 1)
    os.dup2(control_out, 2)
    try:
        os.execvp(argv[0], argv)  # noqa: S606
    except OSError as error:
        os.write(2, f"{argv[0]}: {error.strerror}\n".encode())
        os._exit(127)


def warden(directory: str, control_in: int, control_out: int, argv: list[str]) -> None:
    """Start tmux in a new directory of its own; at the end of standard input end all and remove it."""
    for number in _IGNORED:
        signal.signal(number, signal.SIG_IGN)
    become_subreaper()
    os.chdir("/")
    os.mkdir(directory, 0o700)
    hold(directory)
    if os.fork() == 0:
        _exec_tmux(control_in, control_out, argv)
    os.close(control_in)
    os.close(control_out)
    os.read(0, 1)
    end_descendants(os.getpid())
    remove(directory)


if __name__ == "__main__":
    warden(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:])
