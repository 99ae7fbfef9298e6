"""What a call did, in the words of the command line. No I/O.

A phrase is a verb, the pane's name, what the call was mainly about, and the rest::

    create web: python3 app.py, until /listening/
    send web: 'GET /' Enter, then C-c

The verb is the tool's name in words, unless there is a shorter verb.
The arguments of a failed call may have any type: they are on record as the client sent them. A
phrase is not safe to print until it has gone through `visible`.
"""

import re
import signal
from collections.abc import Callable, Mapping

import orjson

from tmux_debug_mcp.vt.keys import key_name

from .audits import Record

# Longer strings are text, not names of keys.
_MAX_KEYS_CHARACTERS = 1000
# Arguments that a phrase shows elsewhere, or that have a column in the table.
_SAID = frozenset({"pane_id", "window_id", "session", "name", "secret"})


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return ", ".join(value)
    try:
        return orjson.dumps(value).decode()
    except TypeError:  # half a surrogate pair
        return repr(value)


def describe(record: Record, name: str = "", directory: str | None = None) -> str:
    """Return what a call did.

    `name` is its pane's, "" if it has none or the pane is shown beside the phrase. `directory`
    replaces the directory that the call named: "" leaves it out, and None keeps it.
    """
    arguments = dict(record.arguments)
    if record.directory:
        arguments["cwd"] = record.directory if directory is None else directory
    if arguments.get("cwd") == "":
        del arguments["cwd"]
    # The name of a tool in words, whether it is written as `list_tabs` or `listTabs`.
    words = re.sub("(?<=[a-z])[A-Z]", lambda capital: f" {capital[0].lower()}", record.tool)
    head = _VERBS.get(record.tool) or words.replace("_", " ")
    named = arguments.get("name")
    if not name and isinstance(named, str):
        name = named
    if name:
        head = f"{head} {name}"
    main = next((argument for argument in _MAIN if argument in arguments), "")
    details = [
        _detail(argument, value)
        for argument, value in arguments.items()
        if argument not in _SAID and argument != main
    ]
    if arguments.get("secret"):
        details.insert(0, "a secret")
    if main:
        shown = _MAIN[main](arguments[main])
        joint = ": " if name else " "
        return ", ".join([f"{head}{joint}{shown}", *details])
    return " ".join([head, ", ".join(details)]).rstrip(" ")


def _detail(argument: str, value: object) -> str:
    if argument in _FLAGS and value is True:
        return _FLAGS[argument]
    if argument in _DETAILS:
        return _DETAILS[argument].format(_text(value))
    return f"{argument}={_text(value)}"


def _quoted(value: object) -> str:
    text = _text(value)
    if "'" in text and '"' not in text:
        return f'"{text}"'
    return f"'{text}'"


def _keys(value: object) -> str:
    """Return what was typed and pressed: text in quotation marks, keys without them."""
    if isinstance(value, list):
        return ", then ".join(_keys(step) for step in value)
    if not isinstance(value, str):
        return _text(value)
    words = value.split() if len(value) <= _MAX_KEYS_CHARACTERS else []
    if words and all(word in signal.Signals.__members__ or key_name(word) for word in words):
        return " ".join(words)
    body = value.rstrip("\n")
    enters = len(value) - len(body)
    if body.endswith(" Enter"):
        body = body.removesuffix(" Enter")
        enters = max(enters, 1)
    return " ".join([_quoted(body), *["Enter"] * min(enters, _MAX_KEYS_CHARACTERS)])


# What boolean arguments say when they are true.
_FLAGS = {
    "follow": "following",
    "horizontal": "one above the other",
    "literal": "literally",
    "login": "as a login shell",
    "paste": "pasted",
    "write": "with the keyboard",
}
# Other arguments; those not listed are shown as `argument=value`.
_DETAILS = {
    "context": "with {} lines around",
    "cwd": "in {}",
    "env": "with {}",
    "idle_s": "until quiet for {} s",
    "lines": "last {} lines",
    "line_count": "{} lines",
    "max_bytes": "at most {} bytes",
    "from_byte": "from {}",
    "since": "from {}",
    "pattern": "for /{}/",
    "gone": "until /{}/ is gone",
    "stop_pattern": "or /{}/",
    "view": "as {}",
    "wait_for": "until /{}/",
    "timeout_s": "at most {} s",
    "timeout_ms": "at most {} ms",
}
# A call is mainly about the first of these arguments that it has.
_MAIN: Mapping[str, Callable[[object], str]] = {
    "keys": _keys,
    "text": _quoted,
    "key": _text,
    "target": _text,
    "command": _text,
    "path": _text,
    "limit": _text,
    "old_name": _text,
}
# Shorter words for tools, by their names on record.
_VERBS = {
    "create_pane": "create",
    "send_keys": "send",
    "capture_pane": "capture",
    "kill_pane": "kill",
    "secret": "type a secret",
    "read_logs_from_tab": "read",
    "stream_logs_from_tab": "read",
    "execute_command": "run",
    "start_process": "start",
    "stop_process": "stop",
    "sendKey": "press",
    "getContent": "read",
    "split_window": "split",
    "select_pane": "select",
    "resize_pane": "resize",
    "read_pane": "read",
}
