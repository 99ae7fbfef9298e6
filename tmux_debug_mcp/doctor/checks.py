"""All checks, run at the same time, and their surroundings."""

import contextlib
import tempfile
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager
from functools import partial

from tmux_debug_mcp.settings import state_directory
from tmux_debug_mcp.tmux import supervisor

from . import directories, installation, kernel, options, tmux_findings
from .clients import clients
from .finding import Check, Finding, findings_of
from .probe import Surroundings, end_children

# The part of the time that is kept for ending what was started.
_ENDING_PART = 0.15


def look(tmux: str, environ: Mapping[str, str], timeout_s: float) -> list[Finding]:
    """Return all findings, in an order from the installation to the clients."""
    runtime = environ.get("XDG_RUNTIME_DIR", "")
    # First: while stale directories are spared, they look like those of living servers.
    found = Check("servers", partial(installation.running_servers, environ))
    findings = findings_of([found], timeout_s)
    deadline = time.monotonic() + timeout_s * (1 - _ENDING_PART)
    with _directory(runtime) as directory, installation.sparing_stale_directories(runtime):
        here = Surroundings(environ, directory, timeout_s, deadline)
        state = state_directory(environ)
        checks = [
            Check("package", partial(installation.package, environ)),
            Check("tmux", partial(tmux_findings.tmux, tmux, here)),
            Check("locale", partial(tmux_findings.locale_of_panes, environ)),
            Check("runtime directory", partial(directories.runtime_variable, environ)),
            Check("private directory", partial(directories.private_directory, environ)),
            Check("kept logs", partial(directories.kept_logs, state, environ)),
            Check("audit", partial(directories.audit, environ)),
            Check("open files", kernel.open_files),
            Check("inotify", kernel.inotify),
            Check("pseudo terminals", kernel.pseudo_terminals),
            Check("awaits input", kernel.awaits),
            Check("ending processes", kernel.process_calls),
            Check("options", partial(options.variables, environ)),
            Check("clients", partial(clients, here)),
        ]
        try:
            return [*findings_of(checks, timeout_s), *findings]
        finally:
            end_children()


def _directory(runtime: str) -> AbstractContextManager[str | None]:
    """Return a private directory for trials, None if none can be made."""
    for base in supervisor.runtime_directories(runtime):
        with contextlib.suppress(OSError):
            return tempfile.TemporaryDirectory(
                prefix="doctor-", dir=base, ignore_cleanup_errors=True
            )
    return contextlib.nullcontext()
