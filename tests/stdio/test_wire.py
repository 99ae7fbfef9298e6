"""Every line gets the answer that JSON-RPC has for it, and the next good one is served."""

import contextlib
import itertools
import json
import shlex
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from hypothesis import given
from hypothesis import strategies as st
from wire import SERVER, Server

from tmux_debug_mcp.wire import RefusedError, read_message

pytestmark = pytest.mark.xdist_group("wire")

PARSE_ERROR, INVALID_REQUEST, INVALID_PARAMS = -32700, -32600, -32602

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
PING = b'{"jsonrpc":"2.0","id":7,"method":"ping"}'
INITIALIZE = (
    b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},'
    b'"clientInfo":{"name":"test","version":"1"}}}\n{"jsonrpc":"2.0","method":"notifications/initialized"}\n'
)
LIST_PANES = (
    b'{"jsonrpc":"2.0","id":7,"method":"tools/call",'
    b'"params":{"name":"tmux_list_panes","arguments":{}}}'
)


def call(value: bytes, members: bytes = b'"jsonrpc":"2.0","id":7,"method":"tools/call"') -> bytes:
    """Return a call of tmux_list_panes with an argument that it does not have."""
    return b'{%s,"params":{"name":"tmux_list_panes","arguments":{"x":%s}}}' % (members, value)


def nested(depth: int) -> bytes:
    return b"[" * depth + b"]" * depth


NO_JSON = {
    "text": b"not json",
    "half an object": b"{",
    "an object too much": b'{"jsonrpc":"2.0","id":7,"method":"ping"} {}',
    "comma too much": b'{"jsonrpc":"2.0","id":7,"method":"ping",}',
    "control character": b'{"jsonrpc":"2.0","id":7,"method":"pi\x01ng"}',
    "NUL": b"\0",
    "NUL in a message": b'{"jsonrpc":"2.0","id":7,\0"method":"ping"}',
    "UTF-16": '{"jsonrpc":"2.0","id":7,"method":"ping"}'.encode("utf-16"),
    "half a batch": b'[{"jsonrpc":"2.0","id":7,"method":"ping"},',
    "two byte order marks": BYTE_ORDER_MARK * 2 + PING,
}


def no_requests() -> dict[str, bytes]:
    return {
        "empty batch": b"[]",
        "batch of nothing": b"[1]",
        "batch": b"[%s]" % PING,
        "null": b"null",
        "string": b'"text"',
        "number": b"5",
        "empty object": b"{}",
        "no method without id": b'{"jsonrpc":"2.0"}',
        "method that is a number, without id": b'{"jsonrpc":"2.0","method":1}',
        "id null": b'{"jsonrpc":"2.0","id":null,"method":"ping"}',
        "id fraction": b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}',
        "id float": b'{"jsonrpc":"2.0","id":1.0,"method":"ping"}',
        "id infinite": b'{"jsonrpc":"2.0","id":1e400,"method":"ping"}',
        "id boolean": b'{"jsonrpc":"2.0","id":true,"method":"ping"}',
        "id object": b'{"jsonrpc":"2.0","id":{},"method":"ping"}',
        "id array": b'{"jsonrpc":"2.0","id":[7],"method":"ping"}',
        "id half a pair": b'{"jsonrpc":"2.0","id":"\\ud800","method":"ping"}',
        "deep batch": b"[" * 100_000,
        "deep object": b'{"a":' * 10_000,
        "no message, and long": b"x" * 10_000_000,
    }


def no_requests_but_an_id() -> dict[str, bytes]:
    return {
        "other protocol": b'{"jsonrpc":"1.0","id":7,"method":"ping"}',
        "no protocol": b'{"id":7,"method":"ping"}',
        "no method": b'{"jsonrpc":"2.0","id":7}',
        "method number": b'{"jsonrpc":"2.0","id":7,"method":1}',
        "nested 200": call(nested(200)),
        "nested 5000": call(nested(5000)),
        "nested 100000": call(nested(100_000)),
        "nested, id last": call(nested(100_000))[:-1].replace(b'"id":7,', b"") + b',"id":7}',
        "nested, id in the middle": b'{ "method" : "x" , "id" : 7 , "params":'
        + nested(100_000)
        + b',"jsonrpc":"2.0"}',
        "nested and not closed": call(b"[" * 100_000),
        "long": call(b'"%s"' % (b"x" * 10_000_000)),
        "long, id last": call(b'"%s"' % (b"x" * 30_000_000))[:-1].replace(b'"id":7,', b"")
        + b',"id":7}',
        "many values": call(b"[%s[]]" % (b"[]," * 2_000_000)),
        "many strings": call(b"[%s1]" % (b'"",' * 2_000_000)),
        "number of 5000 digits": call(b"1" * 5000),
        "half pairs without number": call(b'"%s"' % (b"\\udc00" * 1_000_000)),
    }


WRONG_PARAMS = {
    name: b'{"jsonrpc":"2.0","id":7,"method":"ping","params":%s}' % params
    for name, params in {
        "array": b"[]",
        "number": b"5",
        "string": b'"x"',
        "boolean": b"true",
    }.items()
} | {
    "array of a call": (
        b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":["tmux_list_panes"]}'
    ),
    "arguments array": (
        b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"x","arguments":[]}}'
    ),
    "no name": b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{}}',
}

SILENT = [
    b"",
    b" ",
    b"\t",
    b"\r",
    BYTE_ORDER_MARK,
    b'{"jsonrpc":"2.0","method":"notifications/nothing"}',
    b'{"jsonrpc":"2.0","method":"notifications/nothing","params":[]}',
    b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":77}}',
    b'{"jsonrpc":"2.0","method":"tools/call","params":{"name":"tmux_list_panes"}}',
    b'{"jsonrpc":"2.0","id":9,"result":{}}',
    b'{"jsonrpc":"2.0","id":9,"result":[]}',
    b'{"jsonrpc":"2.0","id":9,"error":"no"}',
    b'{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"x"}}',
]


def answered() -> dict[str, bytes]:
    return {
        "byte order mark": BYTE_ORDER_MARK + PING,
        "carriage return": PING + b"\r",
        "spaces": b" \t" + PING + b" ",
        "params null": b'{"jsonrpc":"2.0","id":7,"method":"ping","params":null}',
        "id twice": b'{"jsonrpc":"2.0","id":6,"id":7,"method":"ping"}',
        "nested 190": call(nested(190)),
        "NaN": call(b"NaN"),
        "infinite": call(b"-1e999"),
        "half a pair": call(b'"\\ud800"'),
        "half a pair in a name": (
            b'{"jsonrpc":"2.0","id":7,"method":"ping\\ud800","params":{"\\udc00":1}}'
        ),
        "5 MB": call(b'"%s"' % (b"x" * 5_000_000)),
        "5 MB of escapes": call(b'"%s"' % (b"\\n" * 2_500_000)),
        "many values": call(b"[%s[]]" % (b"[]," * 5_000)),
        "progress token": call(b"1").replace(b'"name"', b'"_meta":{"progressToken":{}},"name"'),
        "meta": call(b"1").replace(b'"name"', b'"_meta":5,"name"'),
    }


def refusal(server: Server, line: bytes) -> tuple[int | None, Any, str]:
    """Return code, id and message of the error that answers a line, after which a ping is served.

    The ping behind it is what is read where a line gets no answer.
    """
    server.write(line)
    server.write(b'{"jsonrpc":"2.0","id":"next","method":"ping"}')
    answers = [server.read()]
    if answers[0]["id"] != "next":
        answers.append(server.read())
    assert answers[-1] == {"jsonrpc": "2.0", "id": "next", "result": {}}
    error = answers[0].get("error", {})
    return error.get("code"), answers[0]["id"], error.get("message", "")


def test_line_that_is_no_json_is_a_parse_error(shared: Server) -> None:
    for name, line in NO_JSON.items():
        assert refusal(shared, line)[:2] == (PARSE_ERROR, None), name


def test_line_that_is_no_request_is_an_invalid_request(shared: Server) -> None:
    lines = no_requests()
    for name, line in lines.items():
        assert refusal(shared, line)[:2] == (INVALID_REQUEST, None), name
    for name in ("empty batch", "batch of nothing", "batch"):
        assert "one message per line" in refusal(shared, lines[name])[2]


def test_request_that_can_not_be_read_is_answered_by_its_id(shared: Server) -> None:
    for name, line in no_requests_but_an_id().items():
        assert refusal(shared, line)[:2] == (INVALID_REQUEST, 7), name


def test_params_that_are_no_object_are_answered_by_the_id_of_the_request(shared: Server) -> None:
    for name, line in WRONG_PARAMS.items():
        assert refusal(shared, line)[:2] == (INVALID_PARAMS, 7), name


def test_bytes_that_are_no_text_are_not_typed_as_something_else(shared: Server) -> None:
    shared.text("create_pane", command="cat", name="cat")
    line = (
        b'{"jsonrpc":"2.0","id":"a\\"b","method":"tools/call","params":'
        b'{"name":"tmux_send_keys","arguments":{"pane_id":"cat","keys":"caf\xe9"}}}'
    )

    code, request_id, message = refusal(shared, line)
    assert (code, request_id, "UTF-8" in message) == (PARSE_ERROR, 'a"b', True)


def test_notifications_responses_and_blank_lines_get_no_answer(shared: Server) -> None:
    for line in SILENT:
        shared.write(line)

    assert shared.ask("ping") == {}


def test_odd_requests_are_answered_all_the_same(shared: Server) -> None:
    for name, line in answered().items():
        shared.write(line)
        shared.write(b'{"jsonrpc":"2.0","id":"next","method":"ping"}')
        assert {shared.read()["id"], shared.read()["id"]} == {7, "next"}, name


@pytest.mark.parametrize(
    "request_id", [0, -1, 10**30, 10**4000, "", "7", "é\u2028\0", "x" * 100_000]
)
def test_ids_come_back_as_they_were(shared: Server, request_id: int | str) -> None:
    shared.write(json.dumps({"jsonrpc": "2.0", "id": request_id, "method": "ping"}).encode())
    assert shared.read() == {"jsonrpc": "2.0", "id": request_id, "result": {}}


def test_id_that_is_used_twice_at_once_is_answered_twice(shared: Server) -> None:
    shared.write(LIST_PANES + b"\n" + LIST_PANES)

    assert [shared.read()["id"], shared.read()["id"]] == [7, 7]


def test_answers_to_bad_lines_wait_for_a_client_that_reads_late(shared: Server) -> None:
    for _ in range(5000):
        shared.write(b"x")
    shared.write(PING)

    answers = [shared.read()["id"] for _ in range(5001)]
    assert answers.count(None) == 5000
    assert answers.count(7) == 1


def test_first_line_that_is_bad_does_not_decide_anything(launch: Callable[..., Server]) -> None:
    server = launch()
    assert refusal_before_the_handshake(server) == [PARSE_ERROR, INVALID_REQUEST]
    assert server.start().text("list_panes").startswith("No active panes")


def refusal_before_the_handshake(server: Server) -> list[int]:
    """Return the codes that two bad lines are answered with; after them a good one is answered."""
    server.write(b"not json")
    server.write(b"[]")
    server.write(PING)
    answers = itertools.takewhile(lambda answer: answer["id"] is None, iter(server.read, None))
    return [answer["error"]["code"] for answer in answers]


def check_last_answer(last: bytes, out: bytes) -> None:
    """Check what a server has answered to `INITIALIZE` and this line."""
    answers = {answer["id"]: answer for answer in map(json.loads, out.splitlines())}
    if last == LIST_PANES:
        assert answers.keys() == {1, 7}
        assert answers[7]["result"]["content"][0]["text"].startswith("No active panes")
    else:
        assert answers.keys() == {1, None}
        assert answers[None]["error"]["code"] == PARSE_ERROR


@pytest.mark.parametrize(
    ("last", "end"),
    [(LIST_PANES, b""), (LIST_PANES, b"\r\n\n"), (b"not json", b"")],
    ids=["pipe", "CRLF and a blank line", "no json"],
)
def test_last_line_before_the_end_is_answered(
    launch: Callable[..., Server], last: bytes, end: bytes
) -> None:
    server = launch()
    assert server.process.stdin
    server.process.stdin.write(INITIALIZE + last + end)
    out, error = server.finish()

    check_last_answer(last, out)
    assert (error, server.process.returncode) == (b"", 0)


@pytest.mark.parametrize(
    ("last", "end"), [(LIST_PANES, b""), (b"not json", b"\n")], ids=["pane list", "no json"]
)
def test_last_line_of_a_file_is_answered(
    environment: dict[str, str], tmp_path: Path, last: bytes, end: bytes
) -> None:
    (tmp_path / "requests").write_bytes(INITIALIZE + last + end)
    done = subprocess.run(
        ["sh", "-c", f"{shlex.join(SERVER)} <requests >answers"],
        cwd=tmp_path,
        capture_output=True,
        env=environment,
        check=True,
        timeout=60,
    )

    check_last_answer(last, (tmp_path / "answers").read_bytes())
    assert done.stderr == b""


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3), st.lists
)


def messages() -> Iterator[tuple[str, st.SearchStrategy[Any]]]:
    """Yield the members of a message: right, wrong and unknown."""
    yield "jsonrpc", st.just("2.0") | JSON
    yield "id", st.integers() | st.text() | JSON
    yield "method", st.just("ping") | JSON
    yield "params", st.dictionaries(st.text(), JSON) | JSON
    yield "result", JSON
    yield "error", JSON


@given(st.fixed_dictionaries({}, optional=dict(messages())) | JSON)
def test_what_is_passed_on_is_what_the_sdk_takes_for_the_same(message: Any) -> None:  # noqa: ANN401
    try:
        taken = read_message(json.dumps(message).encode())
    except RefusedError as refused:
        answer = json.loads(refused.answer())
        is_id = isinstance(message, dict) and type(message.get("id")) in (int, str)
        assert answer["id"] == (message["id"] if is_id else None)
        return
    assert isinstance(message, dict)
    if "method" in message and "id" in message:
        assert isinstance(taken, types.JSONRPCRequest)
        assert taken.model_dump(include={"id", "method"}) == {
            "id": message["id"],
            "method": message["method"],
        }


@given(st.binary())
def test_bytes_of_any_kind_are_a_message_blank_or_refused(line: bytes) -> None:
    with contextlib.suppress(RefusedError):
        read_message(line)
