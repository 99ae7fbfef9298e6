"""The installation: Python, this package, the servers that run, and podman for the sandbox."""

import os
import platform
import shlex
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

import tmux_debug_mcp
from tmux_debug_mcp import __version__
from tmux_debug_mcp.linux import processes
from tmux_debug_mcp.linux.users import user_name
from tmux_debug_mcp.sockets import servers

from .finding import MORE_TIME, Finding, ok, shown, warning
from .probe import Surroundings, environment, stale_servers, stale_supervisors

_PROGRAM = "tmux-debug-mcp"
_ID_MAPS = (Path("/etc/subuid"), Path("/etc/subgid"))


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
    stale = [*stale_servers(runtime), *stale_supervisors(runtime)]
    if stale:
        text = f"the next server removes what they left: {', '.join(stale)}"
        found.append(ok("killed servers", text))
    return found


def podman(here: Surroundings) -> list[Finding]:
    """Return whether the sandbox could run here; everything else goes without podman."""
    environ = here.environ
    program = shutil.which("podman", path=environ.get("PATH"))
    if program is None:
        return [ok("podman", "not there; only the sandbox needs it")]
    if here.directory is None:
        return [ok("podman", f"{program}, for the sandbox")]
    # It makes directories at home even to tell its version.
    env = environment(environ, here.directory, {"HOME": str(here.directory)})
    try:
        printed = here.programs.output([program, "--version"], env, here.seconds_left)
    except TimeoutError:
        return [warning("podman", f"'{program} --version' does not answer.", MORE_TIME)]
    told = [line for line in printed.splitlines() if line.startswith("podman")]
    version = told[0] if told else f"{program}, which does not tell its version"
    reason, advice = _why_not_rootless(environ)
    if reason:
        text = f"{version}; without root it can't run: {reason}. Only the sandbox needs it."
        return [warning("podman", text, advice)]
    return [ok("podman", f"{version}, for the sandbox")]


def _server(server: servers.Server) -> Finding:
    clients = [processes.program(pid) for pid in sorted(server.clients)]
    of = f"of {', '.join(filter(None, clients))}" if any(clients) else "without a client"
    text = f"{server.pid} {of}, in {server.cwd}, version {server.version}"
    if server.version == __version__:
        return ok("running server", text)
    advice = f"Restart its client to have {__version__}, or: tmux-debug --server {server.pid} stop"
    return warning("running server", text, advice)


def _why_not_rootless(environ: Mapping[str, str]) -> tuple[str, str]:
    """Return why podman can't run without root, and what to do; "" twice if it can."""
    if os.geteuid() == 0:
        return "", ""
    if _first_line("/proc/sys/user/max_user_namespaces") == "0":
        advice = "Allow them: sudo sysctl user.max_user_namespaces=15000"
        return "the kernel allows no user namespaces", advice
    missing = [name for name in ("newuidmap", "newgidmap") if not _has(name, environ)]
    if missing:
        return f"{' and '.join(missing)} are missing", "Install uidmap (shadow-utils)."
    user = user_name()
    for path in _ID_MAPS:
        starts = (f"{user}:", f"{os.getuid()}:")
        if not any(line.startswith(starts) for line in _lines(path)):
            advice = f"sudo usermod --add-subuids 100000-165535 --add-subgids 100000-165535 {user}"
            return f"{path} has no numbers for {user}", f"Give it some: {advice}"
    return "", ""


def _has(program: str, environ: Mapping[str, str]) -> bool:
    return shutil.which(program, path=environ.get("PATH")) is not None


def _first_line(path: str) -> str:
    return "".join(_lines(Path(path))[:1])


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(errors="replace").splitlines()
    except OSError:
        return []
