"""The verb `audit`: shows audits as a table, finished or growing, or as a page."""

import argparse
import os
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path

from tmux_debug_mcp.audit import default_path, older
from tmux_debug_mcp.options import value_of
from tmux_debug_mcp.settings import path_of, state_directory
from tmux_debug_mcp.sockets.choosing import directories_of
from tmux_debug_mcp.sockets.servers import VerbError, current_directory
from tmux_debug_mcp.verbs.parsing import parser_of
from tmux_debug_mcp.verbs.registry import VERBS
from tmux_debug_mcp.vt.printable import visible

from .audits import AuditFile, Damage, Growth, Record, merged
from .columns import has_styles
from .filters import Filter, PaneNames, time_of, tools_of
from .logs import kept_casts
from .outputs import JsonOutput, Output, PlainOutput, TableOutput
from .page import write

_Audits = Iterable[Iterator[Record | Damage]]

_ALL_READ = 0
_DAMAGED = 1
# Damaged lines that are reported; any more are only counted.
_MAX_REPORTED = 100

_DESCRIPTION = "Show audits, the records of calls, as a table ordered by time."
_EPILOG = """\
In a terminal, the table has colours and fits its width; elsewhere, each call is a line of plain
text. Times are local, and say when calls were answered. A line that is not a record is reported on
standard error and skipped. Exit status: 0 all was read; 1 a line was damaged; 125 a usage error.
"""


def add_arguments(made: argparse.ArgumentParser) -> None:
    """Add the arguments to the parser of the verb."""
    made.description, made.epilog = _DESCRIPTION, _EPILOG
    made.add_argument(
        "files",
        nargs="*",
        metavar="FILE",
        help="a file that a server wrote with --audit, - for standard input; else what the "
        "detached servers of this directory wrote",
    )
    made.add_argument(
        "--pane",
        action="append",
        default=[],
        metavar="PANE",
        help="only calls about this pane, by id or name (repeatable)",
    )
    made.add_argument(
        "--tool",
        action="append",
        default=[],
        metavar="TOOL",
        help="only calls to this tool or verb, such as tmux_run or send (repeatable)",
    )
    made.add_argument(
        "--caller",
        default="",
        metavar="TEXT",
        help="only calls by callers whose name contains TEXT",
    )
    made.add_argument(
        "--failed",
        action="store_true",
        help="only calls that were refused, that timed out, or whose program failed",
    )
    made.add_argument(
        "--since",
        metavar="WHEN",
        help="only calls since WHEN: 2026-01-30T10:15, 10:15, or an age: 10m, 2h, 1d",
    )
    forms = made.add_mutually_exclusive_group()
    forms.add_argument("--follow", action="store_true", help="keep printing new calls, until C-c")
    forms.add_argument("--html", metavar="OUT", help="write a page for a browser instead")
    made.add_argument("--json", action="store_true", help="print the raw records as JSON Lines")
    page = made.add_argument_group("with --html")
    page.add_argument(
        "--captures",
        metavar="DIR",
        help="embed the full captures from this directory (TMUX_DEBUG_AUDIT_FULL)",
    )
    page.add_argument(
        "--log-dir",
        metavar="DIR",
        help="embed replays of panes whose logs are in DIR (TMUX_DEBUG_LOG_DIR)",
    )


def run(words: list[str], environ: Mapping[str, str]) -> int:
    """Run the verb and return its exit status; VerbError if it can't be done."""
    options = parser_of(VERBS["audit"]).parse_args(words)
    _check(options)
    files = options.files or _default_files(environ)
    if options.follow and not options.files:
        del files[:-1]  # nothing is added to the older file
    wanted = _filter(options)
    names = PaneNames()
    output = _output(environ, names, is_json=options.json)
    sources = [AuditFile(word, output.flush) for word in files]
    damaged: Counter[str] = Counter()

    def calls(audits: _Audits) -> Iterator[Record]:
        return _chosen(audits, wanted, names, damaged)

    def show(audits: _Audits) -> bool:
        has_any = False
        for record in calls(audits):
            output.show(record)
            has_any = True
        output.flush()
        return has_any

    try:
        if options.html:
            for source in sources:
                source.check_is_not(options.html)
            title = ", ".join(map(os.path.basename, files))
            _write_page(calls(source.to_end() for source in sources), title, options, environ)
        elif options.follow:
            for source in sources:
                source.check_can_be_followed()
            growth = Growth(sources)
            is_read = True
            while is_read:
                show(source.new() for source in sources)
                is_read = growth.wait()
        elif not (show(source.to_end() for source in sources) or damaged):
            _complain("No call matches.")
    except OSError as error:
        raise VerbError(f"The output can't be written: {error.strerror}.") from None
    _complain_of_more(damaged)
    return _DAMAGED if damaged else _ALL_READ


def _default_files(environ: Mapping[str, str]) -> list[str]:
    """Return the default audit of the nearest of the caller's directories that has an audit.

    The older of its files comes first.
    """
    for directory in directories_of(current_directory(), os.path.expanduser("~")):
        path = default_path(state_directory(environ), Path(directory))
        found = [str(file) for file in (older(path), path) if file.exists()]
        if found:
            return found
    raise VerbError(
        "No audit was kept of this directory's servers. Give a FILE written with --audit."
    )


def _filter(options: argparse.Namespace) -> Filter:
    now = datetime.now().astimezone()
    return Filter(
        panes=tuple(options.pane),
        tools=tools_of(options.tool),
        caller=options.caller,
        since=0.0 if options.since is None else time_of(options.since, now),
        failed_only=options.failed,
    )


def _check(options: argparse.Namespace) -> None:
    """Check that the options go together, and the directories exist."""
    for flag, value in (("--captures", options.captures), ("--log-dir", options.log_dir)):
        if not value:
            continue
        if not options.html:
            raise VerbError(f"{flag} is only for a page. Add --html OUT, or omit {flag}.")
        path = path_of(value)
        if path and not path.is_dir():
            raise VerbError(f"{flag} is '{value}', which is not a directory.")
    if options.json and options.html:
        raise VerbError("--json and --html exclude each other. Omit one of them.")


def _chosen(
    audits: _Audits, wanted: Filter, names: PaneNames, damaged: Counter[str]
) -> Iterator[Record]:
    """Yield the wanted records by time; report damaged lines, and count them for each audit."""

    def sound(lines: Iterator[Record | Damage]) -> Iterator[Record]:
        for line in lines:
            if isinstance(line, Record):
                yield line
                continue
            path = str(line.path)
            damaged[path] += 1
            if damaged[path] <= _MAX_REPORTED:
                _complain(str(line))

    for record in merged(map(sound, audits)):
        names.note(record)
        if wanted.accepts(record, names):
            yield record


def _write_page(
    records: Iterable[Record],
    title: str,
    options: argparse.Namespace,
    environ: Mapping[str, str],
) -> None:
    """Write the page, and print the number of its calls on standard error."""
    captures = path_of(options.captures or value_of("audit-full", environ))
    logs = path_of(options.log_dir or value_of("log-dir", environ))
    cast_of = kept_casts(logs or state_directory(environ) / "logs")
    out = Path(options.html)
    count = write(records, out, title, captures, cast_of)
    sys.stderr.write(f"{visible(str(out))}: {count} calls\n")


def _output(environ: Mapping[str, str], names: PaneNames, *, is_json: bool) -> Output:
    if is_json:
        return JsonOutput(sys.stdout.buffer)
    if not (sys.stdout.isatty() or environ.get("FORCE_COLOR")):
        return PlainOutput(sys.stdout.buffer, names)
    return TableOutput(sys.stdout.buffer, names, is_plain=not has_styles(environ))


def _complain_of_more(damaged: Counter[str]) -> None:
    for path, count in damaged.items():
        if count > _MAX_REPORTED:
            _complain(f"{path} has {count - _MAX_REPORTED} more damaged lines.")


def _complain(text: str) -> None:
    sys.stderr.write(f"tmux-debug: {visible(text)}\n")
