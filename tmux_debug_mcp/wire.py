"""Lines of the wire, and the messages for the SDK that they contain. No I/O.

A line that is not a JSON-RPC message is answered with an error here, and so is a message that the
SDK would drop without an answer.
"""

import json
import re
from typing import Any

import mcp_types as types
from pydantic import ValidationError
from pydantic_core import from_json

# 1 MiB of keys, each byte escaped as six, and room for the rest of the message.
MAX_LINE_BYTES = 8 << 20

# Parsing a message blocks the event loop for about 2 us per value. Short lines have few values.
_MAX_VALUES = 20_000
_SHORT_LINE_BYTES = 64 << 10

# JSON parsers refuse a whole message for one `\ud800` without its other half, so the client would
# get no answer. Half pairs are replaced with NUL, which the check of arguments refuses with a
# sentence. Replacing takes time, so both the message and the number of half pairs are limited.
_MAX_MENDED_BYTES = 1 << 20
_MAX_HALF_PAIRS = 1000
_HALF_PAIR_BYTES = len(rb"\ud800")
_WITHOUT_HALF_PAIR = re.compile(
    rb"""(?:
        [^\\]++                                     # characters that are not escaped
        | (?:\\[^u])++                              # short escapes
        | \\u(?![dD][89a-fA-F])                     # escapes outside of the surrogates
        | \\u[dD][89abAB]..\\u[dD][c-fC-F]..        # whole pairs
    )*+""",
    re.VERBOSE,
)

# A message has at most one value more than it has strings, opening brackets and commas.
_STRING = rb'"(?:[^"\\]++|(?:\\.)++)*+'
_VALUE = re.compile(_STRING + rb'"?|[\[{,]')

# The id of a message that can't be parsed is found if all members before it, or all after it, have
# simple values. A request has one member with another value: `params`.
EDGE_BYTES = 1024
_ID = rb'"id"\s*:\s*(-?\d+|' + _STRING + rb'")\s*'
_SIMPLE_MEMBER = _STRING + rb'"\s*:\s*(?:' + _STRING + rb'"|[-+.\w]+)\s*'
_ID_AT_START = re.compile(rb"\s*\{\s*(?:" + _SIMPLE_MEMBER + rb",\s*)*?" + _ID + rb"[,}]")
_ID_AT_END = re.compile(rb",\s*" + _ID + rb"(?:,\s*" + _SIMPLE_MEMBER + rb")*\}\s*\Z")


class RefusedError(Exception):
    """Raised for a line that is answered with a JSON-RPC error and goes no further.

    The sentence says what is wrong, and what to send instead. The request's id is None if there is
    none or it can't be read.
    """

    def __init__(self, code: int, sentence: str, request_id: str | int | None = None) -> None:
        super().__init__(sentence)
        self._code = code
        self._request_id = request_id

    def answer(self) -> str:
        """Return the error response, without a line feed."""
        error = types.ErrorData(code=self._code, message=str(self))
        response = types.JSONRPCError(jsonrpc="2.0", id=self._request_id, error=error)
        return response.model_dump_json(exclude_unset=True)


def read_message(line: bytes) -> types.JSONRPCMessage | None:
    """Return a message, None for a blank line and for what can have no answer.

    The latter are malformed notifications and responses. A byte order mark is dropped, and half
    surrogate pairs are replaced with NUL.

    Raises:
        RefusedError: The line is not a request, notification or response.
    """
    line = line.removeprefix(b"\xef\xbb\xbf").strip(b" \t\r")
    if not line:
        return None
    if len(line) > MAX_LINE_BYTES:
        raise _invalid(
            f"The message is longer than {MAX_LINE_BYTES >> 20} MiB. Send a shorter one.",
            _id_at_an_edge(line),
        )
    if len(line) > _SHORT_LINE_BYTES and _has_too_many_values(line):
        raise _invalid(
            f"The message has more than {_MAX_VALUES} values. Send fewer.", _id_at_an_edge(line)
        )
    try:
        value = from_json(line)
    except ValueError:
        value = _mended(line)
    _check(value)
    try:
        return types.jsonrpc_message_adapter.validate_python(value, by_name=False)
    except ValidationError:
        return None


def _invalid(sentence: str, request_id: str | int | None = None) -> RefusedError:
    return RefusedError(types.INVALID_REQUEST, sentence, request_id)


def _has_too_many_values(line: bytes) -> bool:
    upper_bound = sum(map(line.count, (b'"', b"[", b"{", b",")))
    if upper_bound <= _MAX_VALUES:
        return False
    return any(count > _MAX_VALUES for count, _ in enumerate(_VALUE.finditer(line)))


def _mended(line: bytes) -> Any:  # noqa: ANN401  any JSON value
    """Return the value of a line that the parser refused, with half pairs replaced."""
    # The standard library's parser, which has other limits, says whether the line is JSON at all.
    try:
        meant = json.loads(line.decode())
    except UnicodeDecodeError as error:
        sentence = "The line is not UTF-8. Send UTF-8."
        raise RefusedError(types.PARSE_ERROR, sentence, _id_at_an_edge(line)) from error
    except json.JSONDecodeError as error:
        sentence = f"The line is not JSON: {error}. Send one message per line."
        raise RefusedError(types.PARSE_ERROR, sentence) from error
    except (RecursionError, ValueError) as error:
        raise _beyond_limits(line) from error
    if len(line) <= _MAX_MENDED_BYTES:
        line = _without_half_pairs(line)
    try:
        message = from_json(line)
    except ValueError as error:
        raise _beyond_limits(line) from error
    if isinstance(message, dict) and message.get("id") != meant.get("id"):
        raise _invalid("The id contains half a surrogate pair. Remove it.")
    return message


def _beyond_limits(line: bytes) -> RefusedError:
    return _invalid(
        "The message is nested deeper than 200 levels, has too many half surrogate pairs, or has a "
        "number with too many digits. Send a simpler one.",
        _id_at_an_edge(line),
    )


def _without_half_pairs(line: bytes) -> bytes:
    """Return a line with NUL for each half surrogate pair; unchanged if there are 1,000 or more."""
    pieces: list[bytes] = []
    start = 0
    while len(pieces) < _MAX_HALF_PAIRS:
        sound = _WITHOUT_HALF_PAIR.match(line, start)
        if sound is None:
            break
        pieces.append(line[start : sound.end()])
        if sound.end() == len(line):
            return b"\\u0000".join(pieces)
        start = sound.end() + _HALF_PAIR_BYTES
    return line


def _id_at_an_edge(line: bytes) -> str | int | None:
    """Return the id of an unparsed request, None if it is not at the start or the end."""
    found = _ID_AT_START.match(line[:EDGE_BYTES]) or _ID_AT_END.search(line[-EDGE_BYTES:])
    if found is None:
        return None
    try:
        request_id: str | int = from_json(found[1])
    except ValueError:
        return None
    return request_id


def _check(message: Any) -> None:  # noqa: ANN401  any JSON value
    """Raise RefusedError unless the message is a request, a notification or a response."""
    if isinstance(message, list):
        raise _invalid(
            "The line is a batch, which MCP does not support. Send one message per line."
        )
    if not isinstance(message, dict):
        raise _invalid("The line is not an object. Send a JSON-RPC request.")
    if "method" not in message and ("result" in message or "error" in message):
        return  # a response: JSON-RPC has no answer to one, not even to a wrong one
    request_id = message.get("id")
    if isinstance(request_id, bool) or not isinstance(request_id, str | int):
        request_id = None
    if message.get("jsonrpc") != "2.0":
        raise _invalid("Member 'jsonrpc' is not the string 2.0. Send \"2.0\".", request_id)
    if not isinstance(message.get("method"), str):
        raise _invalid("Member 'method' is not a string. Send a method's name.", request_id)
    if "id" in message and request_id is None:
        raise _invalid("Member 'id' is neither a string nor an integer. Send one of these.")
    if request_id is not None and not isinstance(message.get("params"), dict | None):
        sentence = "Member 'params' is not an object. Send one."
        raise RefusedError(types.INVALID_PARAMS, sentence, request_id)
