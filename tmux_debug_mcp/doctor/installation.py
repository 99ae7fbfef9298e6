"""The installation: Python, this package, and the servers that run."""

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
# Like the server, we spare directories that may not be locked yet.
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
    """Return the running servers."""
    found = []
    for server in servers.running(environ.get("XDG_RUNTIME_DIR", "")):
        if not servers.is_held(server.directory):
            continue
        clients = [processes.program(pid) for pid in sorted(server.clients)]
        of = f"used by {', '.join(filter(None, clients))}" if any(clients) else "without a client"
        text = f"{server.pid}, {of}, in {server.cwd}, version {server.version}"
        if server.version == __version__:
            found.append(ok("running server", text))
        else:
            stop = f"tmux-debug --server {server.pid} stop"
            advice = f"Restart its client to get {__version__}, or end the server: {stop}"
            found.append(warning("running server", text, advice))
    return found or [ok("running servers", "none")]


@contextlib.contextmanager
def sparing_stale_directories(runtime: str) -> Iterator[None]:
    """Keep a server that starts meanwhile from removing what killed servers left."""
    bases = supervisor.runtime_directories(runtime)
    paths = [str(path) for base in bases for path in base.glob("tmux-debug-mcp-*-*")]
    old = [path for path in paths if servers.is_private(path) and _is_old(path)]
    with contextlib.ExitStack() as stack:
        for directory in filter(_is_old, servers.directories(runtime)):
            with contextlib.suppress(OSError):
                stack.callback(os.close, servers.hold(directory, is_shared=True))
        for directory in filter(files.is_unheld, old):
            with contextlib.suppress(OSError):
                stack.callback(os.close, files.hold(directory))
        yield


def _is_old(directory: str) -> bool:
    """Return whether a directory is so old that its server would have locked it."""
    try:
        return time.time() - os.lstat(directory).st_mtime > _MIN_STALE_AGE_S
    except OSError:
        return False
