"""The directories that the server uses: for its tmux, its socket, its logs and its audit."""

import os
import shlex
import stat
import tempfile
from collections.abc import Mapping
from pathlib import Path

from tmux_debug_mcp.audit import why_unfit
from tmux_debug_mcp.errors import StartError
from tmux_debug_mcp.logs.archive import MAX_KEPT_BYTES, MAX_SERVER_RUNS, names_run
from tmux_debug_mcp.settings import path_of
from tmux_debug_mcp.sockets import servers
from tmux_debug_mcp.tmux import supervisor

from .finding import Finding, ok, problem, shown, warning

# Panes' logs are in the private directory.
_MIN_FREE_BYTES = 64 << 20
_MIB = 1 << 20
_RUNTIME = "XDG_RUNTIME_DIR"
# As tmux-debug-mcp-PID-NONCE/tmux, with the longest pid.
_LONGEST_NAME = "/tmux-debug-mcp-4194304-01234567/tmux"
_MAX_SOCKET_BYTES = 107


def runtime_variable(environ: Mapping[str, str]) -> list[Finding]:
    """Return what is wrong with $XDG_RUNTIME_DIR; nothing if it is used or not set."""
    path = environ.get(_RUNTIME, "")
    if not path or path == str(supervisor.runtime_directories(path)[0]):
        return []
    reason, advice = _why_unused(path)
    return [warning("runtime directory", f"{_RUNTIME}={path} is not used: it {reason}.", advice)]


def _why_unused(path: str) -> tuple[str, str]:
    """Return why a runtime directory is not used, as a predicate, and what to do."""
    quoted = shlex.quote(path)
    unset = f"Unset the variable: unset {_RUNTIME}"
    try:
        status = os.stat(path)
    except OSError as error:
        own = f"/run/user/{os.getuid()}"
        advice = f"Use yours: export {_RUNTIME}={own}" if servers.is_private(own) else unset
        return f"can't be entered ({error.strerror})", advice
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid():
        return "is not a directory you own", unset
    if status.st_mode & 0o077:
        mode = stat.S_IMODE(status.st_mode)
        return f"is open to others (mode {mode:04o})", f"Make it private: chmod 700 {quoted}"
    if not os.access(path, os.W_OK | os.X_OK):
        return "can't be written", f"Give yourself permission: chmod 700 {quoted}"
    short = f"{tempfile.gettempdir()}/run-{os.getuid()}"
    reason = "is too long for sockets, or has characters other than A-Z a-z 0-9 / . _ + -"
    return reason, f"Use a short one: mkdir -m 700 {short}; export {_RUNTIME}={short}"


def private_directory(environ: Mapping[str, str]) -> list[Finding]:
    """Return whether our tmux server has a place for its directory."""
    name = "private directory"
    base = supervisor.runtime_directories(environ.get(_RUNTIME, ""))[0]
    refusal = _refusal(base)
    if refusal:
        advice = f"Make {base} writable, or set {_RUNTIME} to a directory you own, with mode 0700."
        return [problem(name, f"{base} {refusal}.", advice)]
    room = os.statvfs(base)
    free = room.f_bavail * room.f_frsize
    mode = stat.S_IMODE(base.stat().st_mode)
    longest = len(os.fsencode(base)) + len(_LONGEST_NAME)
    paths = f"paths up to {longest} bytes (limit {_MAX_SOCKET_BYTES})"
    text = f"{base}: mode {mode:04o}, {_size(free)} free, {paths}"
    if free < _MIN_FREE_BYTES:
        advice = f"Make room there for panes' logs: du -xh {base} | sort -h | tail"
        return [warning(name, f"{text}.", advice)]
    return [ok(name, text)]


def _refusal(directory: Path) -> str:
    """Return why we can't use a directory, as a predicate; "" if we can."""
    if not directory.is_dir():
        return "is not a directory"
    if not os.access(directory, os.W_OK | os.X_OK):
        return "can't be written"
    status = directory.stat()
    if status.st_uid not in (0, os.getuid()):
        return "belongs to another user"
    if status.st_mode & 0o002 and not status.st_mode & stat.S_ISVTX:
        return "lets others remove the server's files: its sticky bit is missing"
    return ""


def kept_logs(state: Path, environ: Mapping[str, str]) -> list[Finding]:
    """Return whether logs of earlier panes have a place, and how much is kept of them.

    They are in our state directory, unless the environment names another.
    """
    name = "kept logs"
    given = _path(environ.get("TMUX_DEBUG_LOG_DIR", ""))
    directory = given or state / "logs"
    fault = _why_unmakeable(directory)
    if fault and given:
        advice = "Give a writable directory: export TMUX_DEBUG_LOG_DIR=~/logs"
        return [problem(name, fault, advice)]
    if fault:
        parent = shlex.quote(str(state.parent))
        advice = f"Set XDG_STATE_HOME, or check permissions: ls -ld {parent}"
        return [warning(name, fault, advice)]
    limits = f"at most {MAX_SERVER_RUNS} runs, {_size(MAX_KEPT_BYTES)}"
    if not directory.is_dir():
        return [ok(name, f"none yet ({limits}) in {shown(directory)}")]
    try:
        runs = [one for one in os.listdir(directory) if names_run(f"{one}/")]
    except OSError as error:
        advice = f"Check its permissions: ls -ld {shlex.quote(str(directory))}"
        return [warning(name, f"{directory} can't be listed: {error.strerror}.", advice)]
    used = sum(_disk_bytes(directory / run) for run in runs)
    return [ok(name, f"{len(runs)} runs, {_size(used)} ({limits}) in {shown(directory)}")]


def audit(environ: Mapping[str, str]) -> list[Finding]:
    """Return whether we can write the audit that the environment names; nothing if none."""
    found = []
    records = _path(environ.get("TMUX_DEBUG_AUDIT", ""))
    if records:
        is_there = os.path.lexists(records)
        fault = why_unfit(records) if is_there else _why_unmakeable(records.parent)
        advice = "Use a separate file: export TMUX_DEBUG_AUDIT=~/tmux-debug-audit.jsonl"
        found.append(_written("audit", records, fault, advice))
    captures = _path(environ.get("TMUX_DEBUG_AUDIT_FULL", ""))
    if captures:
        advice = "Give a directory: export TMUX_DEBUG_AUDIT_FULL=~/tmux-debug-captures"
        found.append(_written("audit's captures", captures, _why_unmakeable(captures), advice))
    return found


def _written(name: str, path: Path, fault: str, advice: str) -> Finding:
    if fault:
        return problem(name, fault, advice)
    return ok(name, f"{path}{'' if path.exists() else ' (created when needed)'}")


def _path(given: str) -> Path | None:
    """Return the path that an option names; None for "", and for the home of an unknown user."""
    try:
        return path_of(given)
    except StartError:
        return None


def _why_unmakeable(directory: Path) -> str:
    """Return why we can neither write a directory nor make it, in a sentence; "" if we can."""
    nearest = directory
    while not os.path.lexists(nearest) and nearest != nearest.parent:
        nearest = nearest.parent
    if not nearest.is_dir():
        return f"{directory}: {nearest} is not a directory."
    # Root may write in /proc and /sys, but can't make anything there.
    of_kernel = [os.stat(mount).st_dev for mount in ("/proc", "/sys") if os.path.ismount(mount)]
    if not os.access(nearest, os.W_OK | os.X_OK) or nearest.stat().st_dev in of_kernel:
        return f"{directory}: {nearest} can't be written."
    return ""


def _disk_bytes(directory: Path) -> int:
    """Return the disk space of the files in a directory; 0 if it can't be read."""
    try:
        with os.scandir(directory) as entries:
            return sum(entry.stat(follow_symlinks=False).st_blocks * 512 for entry in entries)
    except OSError:
        return 0


def _size(size: int) -> str:
    if size >= 1024 * _MIB:
        return f"{size / (1024 * _MIB):.1f} GiB"
    return f"{size / _MIB:.0f} MiB"
