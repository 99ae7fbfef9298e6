"""The verb `doctor`: checks everything that the server needs, and says what is missing."""

import argparse
import contextlib
import logging
import signal
import sys
from collections.abc import Iterator, Mapping

from tmux_debug_mcp.options import value_of
from tmux_debug_mcp.settings import duration_s
from tmux_debug_mcp.verbs.parsing import parser_of
from tmux_debug_mcp.verbs.registry import VERBS

from .report import Severity, as_json, show, worst

_TIMEOUT_S = 10.0
_INTERRUPTED = 130
_MAX_TIMEOUT_S = 600.0
_DESCRIPTION = """\
Check whether tmux-debug-mcp works on this machine: start a server, run a command in a pane, and try
the entries in clients' files. It changes nothing."""
_EPILOG = "The exit status is 1 if there is a problem, else 0, even with warnings."


def add_arguments(made: argparse.ArgumentParser) -> None:
    """Add the arguments to the parser of the verb."""
    made.description, made.epilog = _DESCRIPTION, _EPILOG
    made.add_argument("--json", action="store_true", help="print a list of JSON objects")
    made.add_argument("--tmux", metavar="PROGRAM", help="the tmux to check (TMUX_DEBUG_TMUX)")
    made.add_argument(
        "--timeout",
        metavar="TIME",
        type=_seconds,
        default=_TIMEOUT_S,
        help="time limit for the servers that it starts (default %(default)g)",
    )


def run(words: list[str], environ: Mapping[str, str]) -> int:
    """Print the findings, and return the exit status: 1 if there is a problem."""
    arguments = parser_of(VERBS["doctor"]).parse_args(words)
    logging.disable()  # the SDK's: what it would say is in the findings
    tmux = arguments.tmux or value_of("tmux", environ)
    try:
        with _signals():
            from .machine import look  # noqa: PLC0415  it imports the SDK

            findings = look(tmux, environ, arguments.timeout)
    except KeyboardInterrupt:
        return _INTERRUPTED
    if arguments.json:
        sys.stdout.write(as_json(findings))
    else:
        show(findings, sys.stdout, environ)
    return int(worst(findings) is Severity.PROBLEM)


@contextlib.contextmanager
def _signals() -> Iterator[None]:
    """Let C-c unwind this process, so that it cleans up, and let no closed pipe end it."""
    interrupt = signal.signal(signal.SIGINT, signal.default_int_handler)
    pipe = signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, interrupt)
        signal.signal(signal.SIGPIPE, pipe)


def _seconds(text: str) -> float:
    seconds = duration_s(text) or 0.0
    if not 0 < seconds <= _MAX_TIMEOUT_S:
        raise argparse.ArgumentTypeError(
            f"'{text}' is not a time. Give more than 0 and at most {_MAX_TIMEOUT_S:g} seconds."
        )
    return seconds
