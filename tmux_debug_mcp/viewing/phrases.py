"""What a call did, in the words of the command line. No I/O.

A phrase is a verb, the pane's name, what the call was mainly about, and the rest::

    create web: python3 app.py, until /listening/
    send web: 'GET /' Enter, then C-c

The arguments of a failed call may have any type: they are on record as the client sent them. The
text of a phrase is not safe to print before it went through `visible`.
"""

import signal
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import orjson

from tmux_debug_mcp.vt.key_names import key_name

from .audits import Record

# Longer strings are text, not names of keys.
_MAX_KEYS_CHARACTERS = 1000
# Arguments that a phrase has said already, or that the table has in a column.
_SAID = frozenset({"pane_id", "window_id", "session", "name", "secret"})


def _text(value: object) -> str:
    """Return an argument of any type as text."""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return ", ".join(value)
    try:
        return orjson.dumps(value).decode()
    except TypeError:  # half a surrogate pair
        return repr(value)


class _Wording(NamedTuple):
    """How the calls of a tool are told.

    Attributes:
        verb: What it does.
        main: The argument that it is mainly about, "" for none.
        shown: Returns the text of that argument.
    """

    verb: str
    main: str = ""
    shown: Callable[[object], str] = _text


def describe(record: Record, name: str = "") -> str:
    """Return what a call did.

    Args:
        record: The call.
        name: The name of its pane, "" if it has none or the pane stands beside the phrase.
    """
    arguments = record.arguments
    wording = _WORDINGS.get(record.tool, _Wording(record.tool))
    head = wording.verb
    name = name or _name(arguments)
    if name:
        head = f"{head} {name}"
    details = [
        _detail(argument, value)
        for argument, value in arguments.items()
        if argument not in _SAID and argument != wording.main
    ]
    if arguments.get("secret"):
        details.insert(0, "a secret")
    if wording.main in arguments:
        main = wording.shown(arguments[wording.main])
        joint = ": " if name else " "
        head = f"{head}{joint}{main}"
        return ", ".join([head, *details])
    return " ".join([head, ", ".join(details)]).rstrip(" ")


def _name(arguments: Mapping[str, Any]) -> str:
    """Return the name that a call gives."""
    name = arguments.get("name")
    return name if isinstance(name, str) else ""


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
    """Return what was typed and pressed: text in quotation marks, keys without."""
    if isinstance(value, list):
        return ", then ".join(_keys(step) for step in value)
    if not isinstance(value, str):
        return _text(value)
    if len(value) <= _MAX_KEYS_CHARACTERS and _are_keys(value.split()):
        return " ".join(value.split())
    body = value.rstrip("\n")
    enters = len(value) - len(body)
    if body.endswith(" Enter"):
        body = body.removesuffix(" Enter")
        enters = max(enters, 1)
    return " ".join([_quoted(body), *["Enter"] * min(enters, _MAX_KEYS_CHARACTERS)])


def _are_keys(words: list[str]) -> bool:
    return bool(words) and all(
        word in signal.Signals.__members__ or key_name(word) for word in words
    )


# Arguments that are yes or no, where the answer is yes.
_FLAGS = {
    "ansi": "with colours",
    "follow": "following",
    "horizontal": "one above the other",
    "literal": "literally",
    "login": "as a login shell",
    "paste": "pasted",
    "write": "with the keyboard",
}
# Other arguments; what is not here stands as `argument=value`.
_DETAILS = {
    "cwd": "in {}",
    "env": "with {}",
    "idle_s": "until quiet for {} s",
    "lines": "last {} lines",
    "line_count": "{} lines",
    "max_bytes": "at most {} bytes",
    "from_byte": "from {}",
    "since": "from {}",
    "pattern": "for /{}/",
    "stop_pattern": "or /{}/",
    "wait_for": "until /{}/",
    "timeout_s": "at most {} s",
    "timeout_ms": "at most {} ms",
}
# By the names on record. Tools of two toolsets may share a name; then they do the same.
_WORDINGS = {
    # debug
    "create_pane": _Wording("create", "command"),
    "send_keys": _Wording("send", "keys", _keys),
    "capture_pane": _Wording("capture"),
    "run": _Wording("run", "command"),
    "wait": _Wording("wait"),
    "kill_pane": _Wording("kill"),
    "list_panes": _Wording("list panes", "target"),
    # people
    "attach": _Wording("attach"),
    "secret": _Wording("type a secret into"),
    "replay": _Wording("replay"),
    # tabs
    "create_tab": _Wording("create tab"),
    "list_tabs": _Wording("list tabs"),
    "read_logs_from_tab": _Wording("read"),
    "execute_command": _Wording("run", "command"),
    "start_process": _Wording("start", "command"),
    "stop_process": _Wording("stop"),
    "stream_logs_from_tab": _Wording("read"),
    "set_history_limit": _Wording("set history limit", "limit"),
    "close_tab": _Wording("close tab"),
    # terminal
    "type": _Wording("type", "text", _quoted),
    "sendKey": _Wording("press", "key"),
    "getContent": _Wording("read"),
    "takeScreenshot": _Wording("take screenshot"),
    "clear": _Wording("clear"),
    "resize": _Wording("resize"),
    "createSession": _Wording("create session", "command"),
    "listSessions": _Wording("list sessions"),
    "closeSession": _Wording("close session"),
    "startRecording": _Wording("start recording", "path"),
    "stopRecording": _Wording("stop recording"),
    # tmux
    "list_sessions": _Wording("list sessions"),
    "create_session": _Wording("create session", "command"),
    "rename_session": _Wording("rename session", "old_name"),
    "kill": _Wording("kill", "target"),
    "list_windows": _Wording("list windows", "session"),
    "create_window": _Wording("create window", "command"),
    "select_window": _Wording("select window", "target"),
    "rename_window": _Wording("rename window", "target"),
    "split_window": _Wording("split", "target"),
    "select_pane": _Wording("select", "target"),
    "resize_pane": _Wording("resize", "target"),
    "read_pane": _Wording("read", "target"),
}
