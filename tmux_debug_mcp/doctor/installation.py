"""The installation: Python, this package, the servers that run, and what killed ones left."""

import contextlib
import os
import platform
import shlex
import shutil
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import tmux_debug_mcp
from tmux_debug_mcp import __version__
from tmux_debug_mcp.linux import files, processes
from tmux_debug_mcp.sockets import servers
from tmux_debug_mcp.tmux import supervisor

from .finding import Finding, ok, shown, warning

_PROGRAM = "tmux-debug-mcp"
# As for the server, which spares directories that may not be locked yet.
_MIN_STALE_AGE_S = 10.0


def package(environ: Mapping[str, str]) -> list[Finding]:
    """Return which package this is, in which Python."""
    root = Path(tmux_debug_mcp.__file__).parent
    text = f"{__version__} in {shown(root)}"
    python = ok("python", f"{platform.python_version()}, {sys.executable}")
    on_path = shutil.which(_PROGRAM, path=environ.get("PATH"))
    own = Path(sys.prefix) / "bin" / _PROGRAM
    if on_path and own.exists() and not os.path.samefile(on_path, own):
        text += f", but {on_path} on PATH is another installation."
        advice = f"Give clients the full path: {shlex.quote(str(own))}"
        return [python, warning("package", text, advice)]
    if on_path is None and own.exists():
        text += f"; clients need the full path {shown(own)}"
    return [python, ok("package", text)]


def running_servers(environ: Mapping[str, str]) -> list[Finding]:
    """Return the servers that run, and the directories of those that were killed."""
    runtime = environ.get("XDG_RUNTIME_DIR", "")
    living = [server for server in servers.running(runtime) if servers.is_held(server.directory)]
    found = [_server(server) for server in living] or [ok("running servers", "none")]
    stale = [*_stale_servers(runtime), *_stale_supervisors(runtime)]
    if stale:
        text = f"the next server removes what they left: {', '.join(stale)}"
        found.append(ok("killed servers", text))
    return found


@contextlib.contextmanager
def sparing_stale_directories(runtime: str) -> Iterator[None]:
    """Keep a server that starts meanwhile from removing what killed servers left.

    Args:
        runtime: The value of $XDG_RUNTIME_DIR, "" if it is not set.
    """
    with contextlib.ExitStack() as stack:
        for directory in _stale_servers(runtime):
            with contextlib.suppress(OSError):
                stack.callback(os.close, servers.hold(directory, is_shared=True))
        for directory in _stale_supervisors(runtime):
            with contextlib.suppress(OSError):
                stack.callback(os.close, files.hold(directory))
        yield


def _server(server: servers.Server) -> Finding:
    clients = [processes.program(pid) for pid in sorted(server.clients)]
    of = f"of {', '.join(filter(None, clients))}" if any(clients) else "without a client"
    text = f"{server.pid} {of}, in {server.cwd}, version {server.version}"
    if server.version == __version__:
        return ok("running server", text)
    advice = f"Restart its client to have {__version__}, or: tmux-debug --server {server.pid} stop"
    return warning("running server", text, advice)


def _stale_servers(runtime: str) -> list[str]:
    """Return the directories of killed servers that the next one removes. Arguments: as above."""
    old = [directory for directory in servers.directories(runtime) if _is_old(directory)]
    return [directory for directory in old if not servers.is_held(directory)]


def _stale_supervisors(runtime: str) -> list[str]:
    """Return such directories of supervisors. Arguments: as above."""
    bases = supervisor.runtime_directories(runtime)
    paths = [str(path) for base in bases for path in base.glob("tmux-debug-mcp-*-*")]
    return [
        path
        for path in paths
        if servers.is_private(path) and _is_old(path) and files.is_unheld(path)
    ]


def _is_old(directory: str) -> bool:
    """Tell whether a directory is no new one, which its server has yet to lock."""
    try:
        return time.time() - os.lstat(directory).st_mtime > _MIN_STALE_AGE_S
    except OSError:
        return False
