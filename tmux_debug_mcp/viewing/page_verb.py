"""`audit --html`: what the command line says of a page."""

import argparse
import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from tmux_debug_mcp.options import value_of
from tmux_debug_mcp.settings import path_of, state_directory

from .audits import Line
from .logs import KeptCasts
from .page import Extras, write
from .visible import visible


def add_page_options(parser: argparse.ArgumentParser) -> None:
    """Add the options for what is embedded in a page."""
    page = parser.add_argument_group("with --html")
    page.add_argument(
        "--captures",
        metavar="DIR",
        help="embed the full captures of this directory (TMUX_DEBUG_AUDIT_FULL)",
    )
    page.add_argument(
        "--log-dir",
        metavar="DIR",
        help="embed replays of the panes whose logs are kept there (TMUX_DEBUG_LOG_DIR)",
    )


def write_page(
    lines: Iterable[Line], options: argparse.Namespace, environ: Mapping[str, str]
) -> None:
    """Write the page, and say on standard error what it has.

    Raises:
        CommandError: The page can't be written.
    """
    captures = path_of(options.captures or value_of("audit-full", environ))
    logs = path_of(options.log_dir or value_of("log-dir", environ))
    extras = Extras(captures, KeptCasts(logs or state_directory(environ) / "logs"))
    out = Path(options.html)
    title = ", ".join(os.path.basename(file) for file in options.files)
    count = write(lines, out, title, extras)
    sys.stderr.write(f"{visible(str(out))}: {count} calls\n")
