"""What the kernel gives this user: limits, and the calls that the server needs."""

import os
import resource
import subprocess
import time
from pathlib import Path

from tmux_debug_mcp.linux import calls, files, processes, waits

from .finding import Finding, ok, problem, warning

# A pane takes two files in tmux and one in the server; there may be 512 panes.
_MIN_OPEN_FILES = 1200
# The files that the server has open without panes.
_OWN_FILES = 32
_MIN_TERMINALS_LEFT = 16
# From this scope on, only CAP_SYS_PTRACE lets us look at our own descendants. Source: Yama.rst.
_YAMA_ADMIN_ONLY = 2
# Time for a shell to start and to read its terminal, which takes some milliseconds.
_READS_S = 1.5
_POLL_S = 0.002


def open_files() -> list[Finding]:
    """Return how many files the server may open."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if hard == resource.RLIM_INFINITY:
        return [ok("open files", "no limit")]
    if hard < _MIN_OPEN_FILES:
        text = f"At most {hard}, enough for about {max(hard - _OWN_FILES, 0) // 3} panes."
        advice = "Raise it: prlimit --nofile=65536 --pid $$, or LimitNOFILE= in systemd"
        return [warning("open files", text, advice)]
    return [ok("open files", f"at most {hard:,}")]


def inotify() -> list[Finding]:
    """Return whether logs can be watched for output."""
    instances = _number("/proc/sys/fs/inotify/max_user_instances")
    watches = _number("/proc/sys/fs/inotify/max_user_watches")
    fd = files.open_inotify()
    if fd < 0:
        text = f"All {instances} instances of this user are in use, so waits notice output late."
        advice = "Allow more: sudo sysctl fs.inotify.max_user_instances=512"
        return [warning("inotify", text, advice)]
    os.close(fd)
    return [ok("inotify", f"{instances} instances, {watches} watches for this user")]


def pseudo_terminals() -> list[Finding]:
    """Return whether a pane gets a terminal."""
    name = "pseudo terminals"
    used, most = _number("/proc/sys/kernel/pty/nr"), _number("/proc/sys/kernel/pty/max")
    advice = "Allow more: sudo sysctl kernel.pty.max=4096"
    try:
        for fd in os.openpty():
            os.close(fd)
    except OSError as error:
        if used < most:
            advice = "Mount them: sudo mount -t devpts devpts /dev/pts"
        return [problem(name, f"None can be created: {error.strerror}.", advice)]
    if most - used < _MIN_TERMINALS_LEFT:
        return [warning(name, f"{used} of {most} are in use.", advice)]
    return [ok(name, f"{used} of {most} are in use")]


def process_calls() -> list[Finding]:
    """Return whether the kernel has the call with which we wait for processes to end."""
    name = "ending processes"
    try:
        os.close(os.pidfd_open(os.getpid()))
    except OSError as error:
        if error.errno in processes.OUT_OF_FILES:
            raise
        text = f"pidfd_open(2) fails: {error.strerror}."
        advice = "Use Linux 5.3 or newer, and a container whose seccomp profile allows it."
        return [problem(name, text, advice)]
    return [ok(name, "pidfd_open works")]


def awaits() -> list[Finding]:
    """Return whether we can see that a program in a pane awaits input, by trying a real child."""
    name = "awaits input"
    if not calls.is_known_machine():
        machine = os.uname().machine
        reason = f"the system call numbers of {machine} are unknown"
        text = f"Can't tell when programs wait for input: {reason}."
        return [warning(name, text, "Wait for prompts with wait_for instead")]
    outer, inner = os.openpty()
    try:
        seen = _seen_reading(inner)
    finally:
        os.close(outer)
        os.close(inner)
    if seen is None:
        reason, advice = _why_hidden()
        text = f"Can't tell when programs wait for input: {reason}."
        return [warning(name, text, advice)]
    if not seen:
        text = "A test shell read its terminal, but the doctor could not see that."
        advice = "If the machine was busy, try again: tmux-debug doctor"
        return [warning(name, text, advice)]
    return [ok(name, "can tell when programs wait for input")]


def _seen_reading(terminal: int) -> bool | None:
    """Return whether we see a shell read a terminal; None if the kernel doesn't let us look."""
    shell = subprocess.Popen(
        ["/bin/sh", "-c", "read -r line"], stdin=terminal, start_new_session=True
    )
    tty = _tty_number(os.fstat(terminal).st_rdev)
    deadline = time.monotonic() + _READS_S
    try:
        while time.monotonic() < deadline:
            seen = waits.wait_of(shell.pid, str(shell.pid), tty)
            if seen is None:
                return None
            if seen.is_for_terminal:
                return True
            time.sleep(_POLL_S)
        return False
    finally:
        shell.kill()
        shell.wait()


def _tty_number(device: int) -> int:
    """Return the device number of a terminal in the form of tty_nr in proc(5)."""
    major, minor = os.major(device), os.minor(device)
    return (minor & 0xFF) | (major << 8) | ((minor & ~0xFF) << 12)


def _why_hidden() -> tuple[str, str]:
    """Return why we can't look at our own child, and what to do."""
    scope = _number("/proc/sys/kernel/yama/ptrace_scope")
    if scope >= _YAMA_ADMIN_ONLY:
        advice = "Allow it: sudo sysctl kernel.yama.ptrace_scope=1"
        return f"Yama forbids it (ptrace_scope {scope})", advice
    options = _proc_options(Path("/proc/self/mounts").read_text(errors="replace"))
    hiding = [option for option in options if option.startswith("hidepid=")]
    if hiding and hiding[0] not in ("hidepid=0", "hidepid=off"):
        advice = "Allow it: sudo mount -o remount,hidepid=0 /proc"
        return f"/proc is mounted with {hiding[0]}", advice
    if "Seccomp:\t2" in Path("/proc/self/status").read_text():
        reason = "/proc/PID/syscall can't be read, and this process has a seccomp filter"
        return reason, "Allow ptrace in the container: podman run --cap-add SYS_PTRACE"
    return "/proc/PID/syscall can't be read", "Wait for prompts with wait_for instead"


def _proc_options(mounts: str) -> list[str]:
    """Return the mount options of /proc. Source: proc(5), /proc/PID/mounts."""
    lines = [line.split() for line in mounts.splitlines()]
    found = [words[3].split(",") for words in lines if words[1:3] == ["/proc", "proc"]]
    return found[-1] if found else []


def _number(path: str) -> int:
    """Return the number in a file, -1 if there is no number or no file."""
    try:
        return int(Path(path).read_text())
    except (OSError, ValueError):
        return -1
