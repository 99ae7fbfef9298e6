"""The verb `doctor`: looks at everything that the server needs, and says what is missing."""

import argparse
import contextlib
import io
import logging
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

from tmux_debug_mcp.options import value_of
from tmux_debug_mcp.settings import state_directory
from tmux_debug_mcp.tmux import supervisor
from tmux_debug_mcp.verbs.parsing import parser_of
from tmux_debug_mcp.verbs.registry import VERBS

from . import directories, installation, kernel, options, tmux_findings
from .clients import clients
from .finding import Check, Finding, State, findings_of
from .installation import sparing_stale_directories
from .probe import Surroundings, end_children
from .report import as_json, show, worst

_TIMEOUT_S = 5.0
# Of the time, what is left to end what was started.
_ENDING_PART = 0.15
_INTERRUPTED = 130
_MAX_TIMEOUT_S = 600.0
_DESCRIPTION = """\
Looks whether tmux-debug-mcp works on this machine: tmux, directories, limits, the kernel, options,
and the clients that are set up for it. It changes nothing."""
_EPILOG = "The exit status is 0 if the server works, also with warnings, and 1 with a problem."


def add_arguments(made: argparse.ArgumentParser) -> None:
    """Add the arguments to the parser of the verb."""
    made.description, made.epilog = _DESCRIPTION, _EPILOG
    made.add_argument("--json", action="store_true", help="print a list of JSON objects")
    made.add_argument("--tmux", metavar="PROGRAM", help="the tmux to look at (TMUX_DEBUG_TMUX)")
    made.add_argument(
        "--timeout",
        metavar="SECONDS",
        type=_seconds,
        default=_TIMEOUT_S,
        help="how long all of it may take (default %(default)g)",
    )


def run(words: list[str], environ: Mapping[str, str]) -> int:
    """Print what is found, and return the exit status: 1 if there is a problem."""
    arguments = parser_of(VERBS["doctor"]).parse_args(words)
    logging.disable()  # the SDK's: what it would say is in the findings
    tmux = arguments.tmux or value_of("tmux", environ)
    try:
        with _signals():
            findings = look(tmux, environ, arguments.timeout)
    except KeyboardInterrupt:
        return _INTERRUPTED
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    if arguments.json:
        sys.stdout.write(as_json(findings))
    else:
        show(findings, sys.stdout, environ)
    sys.stdout.flush()
    return int(worst(findings) is State.PROBLEM)


def look(tmux: str, environ: Mapping[str, str], timeout_s: float) -> list[Finding]:
    """Return all findings, in an order from the installation to the clients.

    Args:
        tmux: The tmux program.
        environ: The environment.
        timeout_s: How long to look.
    """
    runtime = environ.get("XDG_RUNTIME_DIR", "")
    # First: while stale directories are spared, they look like those of living servers.
    found = Check("servers", partial(installation.running_servers, environ))
    findings = findings_of([found], timeout_s)
    deadline = time.monotonic() + timeout_s * (1 - _ENDING_PART)
    with _directory(runtime) as directory, sparing_stale_directories(runtime):
        here = Surroundings(environ, directory, timeout_s, deadline)
        try:
            return [*findings_of(_checks(tmux, here), timeout_s), *findings]
        finally:
            end_children()


def _checks(tmux: str, here: Surroundings) -> list[Check]:
    environ = here.environ
    state = state_directory(environ)
    return [
        Check("package", partial(installation.package, environ)),
        Check("tmux", partial(tmux_findings.tmux, tmux, here)),
        Check("locale", lambda: tmux_findings.locale_of_panes(options.pane_environment(environ))),
        Check("runtime directory", partial(directories.runtime_variable, environ)),
        Check("private directory", partial(directories.private_directory, environ)),
        Check("sockets", partial(directories.socket_directory, environ)),
        Check("state directory", partial(directories.state_directory, state)),
        Check("kept logs", partial(directories.kept_logs, state, environ)),
        Check("audit", partial(directories.audit, environ)),
        Check("open files", kernel.open_files),
        Check("processes", kernel.process_limit),
        Check("inotify", kernel.inotify),
        Check("pseudo terminals", kernel.pseudo_terminals),
        Check("awaits input", kernel.awaits),
        Check("ending processes", kernel.process_calls),
        Check("options", partial(options.variables, environ)),
        Check("clients", partial(clients, here)),
    ]


@contextlib.contextmanager
def _signals() -> Iterator[None]:
    """Have C-c unwind this process, which removes what was made, and no closed pipe end it."""
    before = [
        (signal.SIGINT, signal.signal(signal.SIGINT, signal.default_int_handler)),
        (signal.SIGPIPE, signal.signal(signal.SIGPIPE, signal.SIG_IGN)),
    ]
    try:
        yield
    finally:
        for number, handler in before:
            signal.signal(number, handler)


@contextlib.contextmanager
def _directory(runtime: str) -> Iterator[Path | None]:
    """Yield a private directory for what is tried, None where none can be made."""
    with contextlib.ExitStack() as stack:
        directory = None
        for base in supervisor.runtime_directories(runtime):
            with contextlib.suppress(OSError):
                made = tempfile.TemporaryDirectory(
                    prefix="doctor-", dir=base, ignore_cleanup_errors=True
                )
                directory = Path(stack.enter_context(made))
                break
        yield directory


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= _MAX_TIMEOUT_S:
        raise argparse.ArgumentTypeError(
            f"'{text}' is not a time. Give more than 0 and at most {_MAX_TIMEOUT_S:g} seconds."
        )
    return seconds
