"""The page `docs/reference.md`: options and limits, made from the code.

Run it after a change of either: `.venv/bin/python tests/tools/reference.py`.
"""

import re
from pathlib import Path

from tmux_debug_mcp import audit, wire
from tmux_debug_mcp.logs import archive, matching, retention, searching
from tmux_debug_mcp.options import OPTIONS, Option
from tmux_debug_mcp.panes import creation, engine, people, recording, reports
from tmux_debug_mcp.panes.running import giving
from tmux_debug_mcp.tmux import host, users_server
from tmux_debug_mcp.tools import captures, tabs, users_tabs
from tmux_debug_mcp.tools.arguments import (
    MAX_NAME_CHARACTERS,
    MAX_TEXT_CHARACTERS,
    MAX_TEXT_LINES,
    parameters_of,
)
from tmux_debug_mcp.tools.debug_arguments import CreatePane
from tmux_debug_mcp.tools.toolset import choose
from tmux_debug_mcp.vt import sizes, steps

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reference.md"

# A row of the table of limits: what is limited, and its limit.
Limit = tuple[str, str]

_OPENING = """\
# Reference

This page is made from the code by `tests/tools/reference.py`.

## Options

Each option is a flag of `tmux-debug-mcp`, a variable in its environment, and an attribute in [Nix](nix.md). A flag wins
over its variable. An empty variable counts as not set. In Nix, `--tmux` defaults to the package's own tmux.

"""

_BETWEEN = """
## Limits

A call that exceeds a limit is refused with a sentence that names the limit; only `lines` is reduced instead. Text that
is too long is cut, and the result says so; tools of `debug` keep a quarter from the beginning and the rest from the
end. Logs lose their oldest bytes.

"""


def page() -> str:
    """Return the page."""
    options = [row(option) for option in OPTIONS]
    limits = [f"| {subject} | {limit} |" for subject, limit in limits_of_the_code()]
    return (
        _OPENING
        + table("| flag | variable | Nix | default | meaning |", options)
        + _BETWEEN
        + table("| limit | at most |", limits)
    )


def table(head: str, rows: list[str]) -> str:
    """Return a table in Markdown."""
    return "\n".join([head, "|---" * (head.count("|") - 1) + "|", *rows, ""])


def row(option: Option) -> str:
    """Return the row of an option."""
    first, *words = option.flag.split("-")
    in_nix = first + "".join(map(str.capitalize, words))
    default = f" `{option.default}` " if option.default else " "
    flag = f"--{option.flag} {option.value}".strip()
    return f"| `{flag}` | `{option.variable}` | `{in_nix}` |{default}| {option.help} |"


def limits_of_the_code() -> list[Limit]:
    """Return what is limited, each with its limit."""
    return [
        *_limits_of_panes(),
        *_limits_of_arguments(),
        *_limits_of_texts(),
        *_limits_of_logs(),
        *_limits_of_tabs(),
        *_limits_of_sessions(),
    ]


def _limits_of_panes() -> list[Limit]:
    return [
        ("panes", f"{engine.MAX_PANES}; those that have ended give way"),
        ("panes of `tmux_run` that have ended", f"the last {engine.KEPT_RUN_PANES}"),
    ]


def _limits_of_arguments() -> list[Limit]:
    users_command = f"with `--socket` {users_server.MAX_COMMAND_BYTES:,}"
    return [
        ("command", f"{creation.MAX_COMMAND_BYTES:,} bytes; {users_command}"),
        ("name", f"{MAX_NAME_CHARACTERS} characters"),
        ("`env`", f"{_variables()} variables, {_size(creation.MAX_ENV_VALUE_BYTES)} each"),
        ("`keys`", f"{_size(steps.MAX_KEYS_BYTES)}, {steps.MAX_PRESSED:,} keys to press"),
        ("steps of one call", f"{steps.MAX_STEPS:,}"),
        ("line of `tmux-debug secret`", f"{people.MAX_SECRET_BYTES:,} bytes"),
        ("message of a client", _size(wire.MAX_LINE_BYTES)),
        ("pattern", f"{matching.MAX_PATTERN_CHARACTERS:,} characters"),
        ("`timeout_s` of a wait or a run", f"{_timeout_s():,} s"),
    ]


def _limits_of_texts() -> list[Limit]:
    assert searching.MAX_FOUND_CHARACTERS == captures.MAX_CHARACTERS
    asked = f"{reports.MAX_ASKED_CHARACTERS:,} characters"
    first = f"or {reports.WHOLE_SCREEN:,} of a screen shown for the first time"
    step = f"{reports.STEP_CHARACTERS} more for each further step, up to {asked}"
    return [
        ("lines of a capture", f"{MAX_TEXT_LINES:,}"),
        (
            "text of a capture",
            f"{captures.MAX_CHARACTERS:,} characters; with `since`, all from the beginning",
        ),
        (
            "text of `tmux_run`",
            f"{captures.MAX_CHARACTERS:,} characters; `tmux-debug run` prints all",
        ),
        ("text of a wait, or with `wait_for` or `port`", asked),
        (
            "other text of `tmux_create_pane` and `tmux_send_keys`",
            f"{reports.MAX_UNASKED_CHARACTERS:,} characters, {first}; {step}",
        ),
        ("lines that `show` returns", f"the newest {reports.MAX_SHOWN_LINES}"),
    ]


def _limits_of_logs() -> list[Limit]:
    log = f"the last {_size(retention.MAX_LOG_BYTES)}"
    all_logs = f"{_size(retention.MAX_LOGS_BYTES)} for all panes"
    kept = f"{_size(archive.MAX_KEPT_BYTES)} beside the logs of present panes"
    before = f"and {_size(audit.MAX_DEFAULT_BYTES)} in the file before"
    audits = f"{before}; {_size(audit.MAX_DEFAULTS_BYTES)} for all directories"
    memory = "which take 10 MB, or up to 250 MB in many colours"
    return [
        ("log of a pane", f"{log}, and {all_logs}"),
        ("kept logs", f"the last {archive.MAX_SERVER_RUNS} runs, {kept}"),
        ("audit in the state directory", f"{_size(audit.MAX_DEFAULT_BYTES)}, {audits}"),
        ("history of a pane in tmux", f"{_history_lines():,} lines, {memory}"),
    ]


def _limits_of_tabs() -> list[Limit]:
    return [
        ("output of `execute_command`", f"the last {tabs.MAX_OUTPUT_CHARACTERS:,} characters"),
        ("history that `set_history_limit` can ask for", f"{host.MAX_HISTORY_LINES:,} lines"),
        ("text of `read_logs_from_tab`", f"the last {users_tabs.MAX_LOG_CHARACTERS:,} characters"),
        ("chunk of `stream_logs_from_tab`", _size(tabs.MAX_CHUNK_BYTES)),
        ("calls that wait for a tab", str(giving.MAX_WAITING)),
    ]


def _limits_of_sessions() -> list[Limit]:
    lines = f"{MAX_TEXT_LINES:,} lines of scrollback"
    return [
        ("text of `getContent`", f"{lines}, the last {MAX_TEXT_CHARACTERS:,} characters"),
        (
            "text of `tmux_read_pane`",
            f"{MAX_TEXT_LINES:,} lines, {MAX_TEXT_CHARACTERS:,} characters",
        ),
        ("size of a terminal", f"{sizes.MAX_COLUMNS} columns, {sizes.MAX_ROWS} rows"),
        ("recording", _size(recording.MAX_RECORDING_BYTES)),
    ]


def _size(count: int) -> str:
    """Return a count of bytes in the largest unit that it is a multiple of."""
    for shift, unit in ((30, "GiB"), (20, "MiB"), (10, "KiB")):
        if count % (1 << shift) == 0:
            return f"{count >> shift} {unit}"
    return f"{count:,} bytes"


def _variables() -> int:
    [env] = [one for one in parameters_of(CreatePane) if one.name == "env"]
    return int(env.schema["maxProperties"])


def _timeout_s() -> int:
    """Return the longest wait, which all tools have in common."""
    [longest] = {
        int(parameter.schema["maximum"])
        for tool in choose("debug")[0].tools
        for parameter in tool.parser.parameters
        if parameter.name == "timeout_s"
    }
    return longest


def _history_lines() -> int:
    """Return the history that our configuration of tmux asks for."""
    configuration = (ROOT / "tmux_debug_mcp" / "tmux" / "tmux.conf").read_text()
    [lines] = re.findall(r"^set -g history-limit (\d+)$", configuration, re.MULTILINE)
    return int(lines)


if __name__ == "__main__":
    PAGE.write_text(page())
