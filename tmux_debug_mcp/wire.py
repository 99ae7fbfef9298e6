"""Lines of the wire, before the SDK takes them: no I/O.

What is no message of JSON-RPC is answered with an error, and what the SDK would drop, too.
"""

import json
import re
from typing import Any

import mcp_types as types
from pydantic_core import from_json  # the parser of the SDK, whose limits count

# 1 MiB of keys, six bytes for each when it is escaped, and room for the rest.
MAX_LINE_BYTES = 8 << 20

# A message of many values holds the event loop while it is parsed, about 2 us for each. A line that is short has few.
_MAX_VALUES = 20_000
_SHORT_LINE_BYTES = 64 << 10

# `\ud800` without its other half is no character; JSON parsers refuse the message whole and nobody would be
# answered. As NUL it reaches the check of the arguments, which says what is wrong. Only in so much, as it takes time.
_MAX_MENDED_BYTES = 1 << 20
_MAX_HALF_PAIRS = 1000
_HALF_PAIR_BYTES = len(rb"\ud800")
_NO_HALF_PAIR = re.compile(rb"(?:[^\\]++|(?:\\[^u])++|\\u(?![dD][89a-fA-F])|\\u[dD][89abAB]..\\u[dD][c-fC-F]..)*+")

# In a message of strings, brackets and commas there is at most one more value than these.
_STRING = rb'"(?:[^"\\]++|(?:\\.)++)*+'
_VALUE = re.compile(_STRING + rb'"?|[\[{,]')

# Where a message can't be parsed its id is found when all members before it, or all behind it, are plain: a request
# has one member that is not, `params`.
EDGE_BYTES = 1024
_ID = rb'"id"\s*:\s*(-?\d+|' + _STRING + rb'")\s*'
_PLAIN = _STRING + rb'"\s*:\s*(?:' + _STRING + rb'"|[-+.\w]+)\s*'
_FIRST_ID = re.compile(rb"\s*\{\s*(?:" + _PLAIN + rb",\s*)*?" + _ID + rb"[,}]")
_LAST_ID = re.compile(rb",\s*" + _ID + rb"(?:,\s*" + _PLAIN + rb")*\}\s*\Z")


class RefusedError(Exception):
    """Raised for a line that is answered with an error of JSON-RPC and goes no further.

    Args:
        code: The error's code in JSON-RPC.
        sentence: What is wrong and what to send instead.
        request_id: The id of the request, or None where it has none or it can't be read.
    """

    def __init__(self, code: int, sentence: str, request_id: str | int | None = None) -> None:
        super().__init__(sentence)
        self._code = code
        self._request_id = request_id

    def answer(self) -> str:
        """Return the error's message, without a line feed."""
        error = types.ErrorData(code=self._code, message=str(self))
        return types.JSONRPCError(jsonrpc="2.0", id=self._request_id, error=error).model_dump_json(exclude_unset=True)


def read_message(line: bytes) -> str | None:
    """Return a line as the SDK takes it: a request, a notification or a response. A blank line is None.

    A byte order mark is skipped.

    Raises:
        RefusedError: The line is none of these.
    """
    line = line.removeprefix(b"\xef\xbb\xbf").strip(b" \t\r")
    if not line:
        return None
    if len(line) > MAX_LINE_BYTES:
        size = f"longer than {MAX_LINE_BYTES >> 20} MiB"
        raise RefusedError(types.INVALID_REQUEST, f"The message is {size}. Send a shorter one.", _id_at_an_edge(line))
    if len(line) > _SHORT_LINE_BYTES and _has_many_values(line):
        many = f"more than {_MAX_VALUES} values"
        raise RefusedError(types.INVALID_REQUEST, f"The message has {many}. Send fewer.", _id_at_an_edge(line))
    try:
        message = from_json(line)
    except ValueError:
        line, message = _mended(line)
    _check(message)
    return line.decode()


def _has_many_values(line: bytes) -> bool:
    if sum(map(line.count, (b'"', b"[", b"{", b","))) <= _MAX_VALUES:
        return False
    return any(count > _MAX_VALUES for count, _ in enumerate(_VALUE.finditer(line)))


def _mended(line: bytes) -> tuple[bytes, Any]:
    """Return a line that the parser refused with NUL for each half of a surrogate pair, and what it says.

    Raises:
        RefusedError: It is not JSON, or JSON beyond the parser's limits.
    """
    beyond = RefusedError(
        types.INVALID_REQUEST,
        "The message is nested deeper than 200, or has a number of too many digits or too many half surrogate pairs. "
        "Send a simpler one.",
        _id_at_an_edge(line),
    )
    # The standard library's parser tells what is no JSON from what is too much of it.
    try:
        meant = json.loads(line.decode())
    except UnicodeDecodeError as error:
        raise RefusedError(types.PARSE_ERROR, "The line is not UTF-8. Send UTF-8.", _id_at_an_edge(line)) from error
    except json.JSONDecodeError as error:
        sentence = f"The line is not JSON: {error}. Send one message a line."
        raise RefusedError(types.PARSE_ERROR, sentence) from error
    except (RecursionError, ValueError) as error:
        raise beyond from error
    if len(line) <= _MAX_MENDED_BYTES:
        line = _without_half_pairs(line)
    try:
        message = from_json(line)
    except ValueError as error:
        raise beyond from error
    if isinstance(message, dict) and message.get("id") != meant.get("id"):
        raise RefusedError(types.INVALID_REQUEST, "The id has half a surrogate pair. Leave it out.")
    return line, message


def _without_half_pairs(line: bytes) -> bytes:
    """Return a line with NUL for the first thousand halves of surrogate pairs, and the rest as it is."""
    pieces: list[bytes] = []
    begin = 0
    while len(pieces) < _MAX_HALF_PAIRS and (sound := _NO_HALF_PAIR.match(line, begin)):
        pieces.append(line[begin : sound.end()])
        if sound.end() == len(line):
            return b"\\u0000".join(pieces)
        begin = sound.end() + _HALF_PAIR_BYTES
    return line


def _id_at_an_edge(line: bytes) -> str | int | None:
    """Return the id of a request that is not parsed, or None where it is not among its first or last members."""
    found = _FIRST_ID.match(line[:EDGE_BYTES]) or _LAST_ID.search(line[-EDGE_BYTES:])
    if found is None:
        return None
    try:
        request_id: str | int = from_json(found[1])
    except ValueError:
        return None
    return request_id


def _check(message: Any) -> None:  # noqa: ANN401  it is any JSON
    """Raise RefusedError for what is neither a request nor a notification nor a response."""
    if isinstance(message, list):
        raise RefusedError(types.INVALID_REQUEST, "The line is a batch, which MCP has not. Send one message a line.")
    if not isinstance(message, dict):
        raise RefusedError(types.INVALID_REQUEST, "The line is not an object. Send a JSON-RPC request.")
    if "method" not in message and ("result" in message or "error" in message):
        return  # nobody answers a response, whatever is wrong with it
    given = message.get("id")
    request_id = given if isinstance(given, str | int) and not isinstance(given, bool) else None
    if message.get("jsonrpc") != "2.0":
        raise RefusedError(types.INVALID_REQUEST, "Member 'jsonrpc' is not \"2.0\". Send that.", request_id)
    if not isinstance(message.get("method"), str):
        raise RefusedError(types.INVALID_REQUEST, "Member 'method' is not a string. Send the name of one.", request_id)
    if "id" in message and request_id is None:
        raise RefusedError(types.INVALID_REQUEST, "Member 'id' is neither a string nor an integer. Send one of these.")
    if request_id is not None and not isinstance(message.get("params"), dict | None):
        raise RefusedError(types.INVALID_PARAMS, "Member 'params' is not an object. Send one.", request_id)
