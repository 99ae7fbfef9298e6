"""The supervisor: the parent of a tmux server, and so the ancestor of every process in its panes.

The supervisor is a subreaper, so it adopts a daemon that leaves its session and its parent: when it
has ended its descendants, nothing is left. It ignores signals and waits for the end of its standard
input, the *lifeline*. The kernel closes that however the owner ends, even by SIGKILL. An owner that
keeps running, or cleans up itself, writes a byte first.

A program with a small memory footprint: standard library only, and of that neither typing nor enum.
"""

import _signal as signal  # `signal` imports enum
import os
import resource
import sys
import time

from . import files, processes

_PR_SET_PDEATHSIG = 1
# A tmux server needs two files per pane. Panes themselves get the limit that we were started with.
_TMUX_OPEN_FILES = 4096
# Time for the kernel to close all files of a killed owner, which takes milliseconds.
_UNLOCK_S = 2.0
_POLL_S = 0.005

# Signals that don't end a supervisor. Ignoring SIGCHLD has the kernel reap its children.
_IGNORED = (
    signal.SIGHUP,
    signal.SIGINT,
    signal.SIGQUIT,
    signal.SIGTERM,
    signal.SIGPIPE,
    signal.SIGALRM,
    signal.SIGUSR1,
    signal.SIGUSR2,
    signal.SIGTSTP,
    signal.SIGTTIN,
    signal.SIGTTOU,
    signal.SIGCHLD,
)


def main() -> None:
    """Run tmux until the lifeline ends; then end everything that it started.

    The arguments are those of the program: the directory to create, mode 0700, and to remove at the
    end; a directory that the owner holds, to remove if the owner was killed, or "";
    the descriptors that tmux reads control mode commands from and writes to; and the command that
    starts tmux as a control mode client and server.
    """
    directory, owners, *descriptors = sys.argv[1:5]
    control_in, control_out = map(int, descriptors)
    for number in _IGNORED:
        signal.signal(number, signal.SIG_IGN)
    processes.become_subreaper()
    os.chdir("/")
    os.mkdir(directory, 0o700)
    files.hold(directory)
    if os.fork() == 0:
        _exec_tmux(control_in, control_out, sys.argv[5:])
    os.close(control_in)
    os.close(control_out)
    was_killed = os.read(sys.stdin.fileno(), 1) == b""
    processes.end_descendants(os.getpid())
    files.remove(directory)
    # The kernel may close the lifeline before it unlocks the owner's directory. A server that has
    # taken the owner's place has locked its own.
    deadline = time.monotonic() + _UNLOCK_S
    while was_killed and os.path.lexists(owners) and time.monotonic() < deadline:
        files.remove_unheld(owners)
        time.sleep(_POLL_S)


def _exec_tmux(control_in: int, control_out: int, argv: list[str]) -> None:
    """Become tmux's client, or end."""
    # tmux's client dies with the supervisor, so that the owner notices its death at once.
    processes.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    wanted = _TMUX_OPEN_FILES
    if hard != resource.RLIM_INFINITY:
        wanted = min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    for number in (*_IGNORED, signal.SIGXFSZ):  # Python itself ignores SIGXFSZ
        signal.signal(number, signal.SIG_DFL)
    os.dup2(control_in, 0)
    os.dup2(control_out, 1)
    os.dup2(control_out, 2)
    try:
        os.execvp(argv[0], argv)  # noqa: S606
    except OSError as error:
        os.write(2, f"{argv[0]}: {error.strerror}\n".encode())
        os._exit(127)


def remove_if_unused(directory: str, deadline: float) -> None:
    """Remove the directory of a supervisor that is gone, and kill the processes that carry its tag.

    The directory is named `NAME-PID-NONCE`, with the server's PID. If the server is gone, a stopped
    supervisor is continued, and does this itself. The deadline is by time.monotonic().
    """
    with files.unheld(directory) as is_unused:
        name = os.path.basename(directory)
        spared = _ancestors()
        server = name.split("-")[-2]
        is_orphaned = not (server.isdigit() and processes.is_alive(int(server)))
        if not is_unused and is_orphaned:
            processes.send_signals(_tagged(name, spared), signal.SIGCONT)
        while is_unused and time.monotonic() < deadline:
            tagged = _tagged(name, spared)
            if not tagged:
                files.remove(directory)
                return
            processes.send_signals(tagged, signal.SIGKILL)
            time.sleep(_POLL_S)


def _ancestors() -> set[int]:
    """Return this process and its ancestors: they may themselves run in a pane of a dead server."""
    found: set[int] = set()
    pid = os.getpid()
    while pid and pid not in found:
        stat = processes.read_stat(pid)
        if stat is None:
            break
        found.add(pid)
        pid = stat.ppid
    return found


def _tagged(name: str, spared: set[int]) -> list[int]:
    """Return the living processes whose tag names this supervisor's directory."""
    numbers = [int(entry) for entry in os.listdir("/proc") if entry.isdigit()]
    living = [pid for pid in numbers if pid not in spared and processes.is_alive(pid)]
    return [pid for pid in living if processes.tag(pid).partition("/")[0] == name]
