"""Serves as the options and the environment ask: one client on standard streams, or detached."""

import contextlib
import os
import sys
from collections.abc import Mapping

import anyio

from . import server
from .audit import AuditLog, DefaultAudit, default_path
from .errors import StartError
from .logs.archive import Archive
from .option_checks import checked
from .options import NO_AUDIT, Values
from .server import Configuration
from .settings import Settings, path_of, seconds_of
from .sockets.listener import claim
from .sockets.servers import JOINED, READY

# The file for a detached server's complaints, such as a bug of ours, or why it ended.
_ERRORS = "errors.log"


def serve(values: Values, environ: Mapping[str, str]) -> None:
    """Serve on standard input and output, and end the process.

    Raises:
        StartError: An option's value can't be used.
    """
    anyio.run(server.serve, configuration_of(values, environ))


def serve_detached(directory: str, values: Values, environ: Mapping[str, str]) -> None:
    """Make the directory, and serve at a socket in it until the lease is over.

    Write `READY` or `JOINED` to standard error, where somebody waits for it.

    Raises:
        StartError: An option's value can't be used, or the directory can't be made.
    """
    keep_s = seconds_of(values["keep"])
    configuration = configuration_of(values, environ, is_detached=True)
    listener = claim(directory)
    if listener is None:
        tell(JOINED)
        return

    def ready() -> None:
        """Say so. From now on, the server's complaints go to a file that outlives it."""
        state = configuration.settings.state_dir
        try:
            state.mkdir(0o700, parents=True, exist_ok=True)
            errors = os.open(state / _ERRORS, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        except OSError:
            errors = os.open(os.devnull, os.O_WRONLY)
        tell(READY)
        os.dup2(errors, 2)
        os.close(errors)

    anyio.run(server.serve_detached, configuration, listener, keep_s, ready)


def configuration_of(
    values: Values, environ: Mapping[str, str], *, is_detached: bool = False
) -> Configuration:
    """Return what a server with these options and this environment serves.

    Raises:
        StartError: An option's value can't be used.
    """
    settings, toolsets = checked(values, environ)

    archive = None
    log_directory = path_of(values["log-dir"])
    if log_directory is None and any(toolset.keeps_logs for toolset in toolsets):
        log_directory = settings.state_dir / "logs"
    if log_directory:
        archive = Archive(log_directory)
        archive.prepare()

    audit = _audit_of(values, settings, is_detached=is_detached)
    return Configuration(toolsets, settings, audit, archive)


def _audit_of(values: Values, settings: Settings, *, is_detached: bool) -> AuditLog | None:
    """Return the audit that the options ask for, or else the default one of a detached server.

    If the default audit can't be opened, the server starts all the same, and says so: nobody has
    asked for it.

    Raises:
        StartError: What the options ask for can't be opened.
    """
    captures = path_of(values["audit-full"])
    if is_detached and not values["audit"]:
        try:
            path = default_path(settings.state_dir, settings.cwd.resolve())
            return DefaultAudit(path, captures)
        except StartError as error:
            sys.stderr.write(f"tmux-debug: {error} Calls are not recorded now.\n")
    records = None if values["audit"] == NO_AUDIT else path_of(values["audit"])
    return AuditLog(records, captures) if records or captures else None


def tell(text: bytes) -> None:
    """Write to whoever started a detached server, unless they were killed."""
    with contextlib.suppress(BrokenPipeError):
        os.write(2, text)
