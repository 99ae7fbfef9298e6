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
    """Return what is wrong with $XDG_RUNTIME_DIR; nothing where it is used or not set."""
    path = environ.get(_RUNTIME, "")
    if not path or path == str(supervisor.runtime_directories(path)[0]):
        return []
    reason, advice = _why_unused(path)
    text = f"{_RUNTIME}={path} is not used: it {reason}."
    return [warning("runtime directory", text, advice)]


def private_directory(environ: Mapping[str, str]) -> list[Finding]:
    """Return whether our tmux server has a place for its directory."""
    name = "private directory"
    base = supervisor.runtime_directories(environ.get(_RUNTIME, ""))[0]
    refusal = _refusal(base)
    if refusal:
        advice = f"Have {base} made writable, or set {_RUNTIME} to a directory of yours, mode 0700."
        return [problem(name, f"{base} {refusal}.", advice)]
    free = _free_bytes(base)
    status = base.stat()
    longest = len(os.fsencode(base)) + len(_LONGEST_NAME)
    mode = stat.S_IMODE(status.st_mode)
    paths = f"paths of {longest} bytes (of {_MAX_SOCKET_BYTES})"
    text = f"{base}: mode {mode:04o}, {_size(free)} free, {paths}"
    if free < _MIN_FREE_BYTES:
        advice = f"Make room there, for the logs of panes: du -xh {base} | sort -h | tail"
        return [warning(name, f"{text}.", advice)]
    return [ok(name, text)]


def socket_directory(environ: Mapping[str, str]) -> list[Finding]:
    """Return where servers' sockets are, by which tmux-debug finds them."""
    name = "sockets"
    bases = servers.bases(environ.get(_RUNTIME, ""))
    base = Path(bases[0])
    refusal = _refusal(base)
    if refusal:
        advice = f"Set {_RUNTIME} to a directory of yours, mode 0700. Until then tmux-debug finds "
        return [warning(name, f"{base} {refusal}.", f"{advice}no server.")]
    others = f", also looked for in {', '.join(bases[1:])}" if bases[1:] else ""
    return [ok(name, f"{base}{others}")]


def state_directory(state: Path) -> list[Finding]:
    """Return whether files that outlive the server have a place."""
    refusal = _unmakeable(state)
    if refusal:
        advice = f"Give yourself the rights, or set XDG_STATE_HOME: ls -ld {_quoted(state.parent)}"
        return [warning("state directory", f"{state}: {refusal}.", advice)]
    return [ok("state directory", f"{shown(state)}{_made_later(state)}")]


def kept_logs(state: Path, environ: Mapping[str, str]) -> list[Finding]:
    """Return how much is kept of the logs of earlier panes."""
    name = "kept logs"
    given = environ.get("TMUX_DEBUG_LOG_DIR", "")
    directory = _path(given) or state / "logs"
    limits = f"at most {MAX_SERVER_RUNS} runs, {_size(MAX_KEPT_BYTES)}"
    refusal = _unmakeable(directory)
    if refusal and given:
        advice = "Give a directory that can be written: export TMUX_DEBUG_LOG_DIR=~/logs"
        return [problem(name, f"{directory}: {refusal}.", advice)]
    if not directory.is_dir():
        return [ok(name, f"none yet ({limits}) in {shown(directory)}")]
    try:
        runs = [one for one in os.listdir(directory) if names_run(f"{one}/")]
    except OSError as error:
        advice = f"Give yourself the rights: ls -ld {_quoted(directory)}"
        return [warning(name, f"{directory} can't be listed: {error.strerror}.", advice)]
    used = sum(_disk_bytes(directory / run) for run in runs)
    return [ok(name, f"{len(runs)} runs, {_size(used)} ({limits}) in {shown(directory)}")]


def audit(environ: Mapping[str, str]) -> list[Finding]:
    """Return whether the audit that the environment asks for can be written; nothing for none."""
    found = []
    records = _path(environ.get("TMUX_DEBUG_AUDIT", ""))
    if records:
        advice = "Give a file of its own: export TMUX_DEBUG_AUDIT=~/tmux-debug-audit.jsonl"
        fault = why_unfit(records) if os.path.lexists(records) else _fault(records.parent)
        found.append(_audit("audit", records, fault, advice))
    captures = _path(environ.get("TMUX_DEBUG_AUDIT_FULL", ""))
    if captures:
        advice = "Give a directory: export TMUX_DEBUG_AUDIT_FULL=~/tmux-debug-captures"
        found.append(_audit("audit's captures", captures, _fault(captures), advice))
    return found


def _fault(directory: Path) -> str:
    """Return as a sentence why nothing can be written to a directory; "" if it can."""
    reason = _unmakeable(directory)
    return f"{directory}: {reason}." if reason else ""


def _audit(name: str, path: Path, fault: str, advice: str) -> Finding:
    if fault:
        return problem(name, fault, advice)
    return ok(name, f"{path}{_made_later(path)}")


def _why_unused(path: str) -> tuple[str, str]:
    """Return why a runtime directory is not used, as a predicate, and what to do."""
    quoted = shlex.quote(path)
    try:
        status = os.stat(path)
    except OSError as error:
        reason = f"can't be entered ({error.strerror})"
        own = f"/run/user/{os.getuid()}"
        if servers.is_private(own):
            return reason, f"Use yours: export {_RUNTIME}={own}"
        return reason, f"Leave it out: unset {_RUNTIME}"
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid():
        return "is no directory of yours", f"Leave it out: unset {_RUNTIME}"
    if status.st_mode & 0o077:
        mode = stat.S_IMODE(status.st_mode)
        return f"is open to others (mode {mode:04o})", f"Close it: chmod 700 {quoted}"
    if not os.access(path, os.W_OK | os.X_OK):
        return "can't be written", f"Give yourself the rights: chmod 700 {quoted}"
    short = f"{tempfile.gettempdir()}/run-{os.getuid()}"
    reason = "is too long for sockets, or has characters other than A-Z a-z 0-9 / . _ + -"
    return reason, f"Use a short one: mkdir -m 700 {short}; export {_RUNTIME}={short}"


def _refusal(directory: Path) -> str:
    """Return why nothing can be made in a directory, as a predicate; "" if it can."""
    if not directory.is_dir():
        return "is no directory"
    if not os.access(directory, os.W_OK | os.X_OK):
        return "can't be written"
    status = directory.stat()
    is_others = status.st_uid not in (0, os.getuid())
    if is_others:
        return "belongs to another user"
    if status.st_mode & 0o002 and not status.st_mode & stat.S_ISVTX:
        return "lets others remove our files: its sticky bit is missing"
    return ""


def _unmakeable(directory: Path) -> str:
    """Return why a directory is not, or can't be made, one that we can write; "" if it can."""
    nearest = _nearest(directory)
    if not nearest.is_dir():
        return f"{nearest} is no directory"
    if not os.access(nearest, os.W_OK | os.X_OK) or _is_of_kernel(nearest):
        return f"{nearest} can't be written"
    return ""


def _is_of_kernel(path: Path) -> bool:
    """Tell whether a path is in /proc or /sys, where root may write, and nothing can be made."""
    mounts = filter(os.path.ismount, ("/proc", "/sys"))
    return path.stat().st_dev in [os.stat(mount).st_dev for mount in mounts]


def _nearest(path: Path) -> Path:
    """Return the path, or the nearest of its parents that is there."""
    while not os.path.lexists(path) and path != path.parent:
        path = path.parent
    return path


def _made_later(path: Path) -> str:
    return "" if path.exists() else " (made when it is needed)"


def _path(given: str) -> Path | None:
    """Return the path that an option names; None for none, and for one that means nothing."""
    try:
        return path_of(given)
    except StartError:
        return None


def _free_bytes(directory: Path) -> int:
    status = os.statvfs(directory)
    return status.f_bavail * status.f_frsize


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


def _quoted(path: Path) -> str:
    return shlex.quote(str(path))
