"""What takes input from outside, each as a function of bytes that fails where a promise is broken.

`./dev fuzz` searches for such bytes, and `unit/test_fuzz.py` tries those of the corpus in each run.
"""

import asyncio
import functools
import json
import re
import socket
import tempfile
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import orjson
from support import done

from tmux_debug_mcp.clients import json_file, toml_file
from tmux_debug_mcp.clients.editing import EditError, Slot
from tmux_debug_mcp.errors import ArgumentError, KeysError
from tmux_debug_mcp.logs.archive import parsed
from tmux_debug_mcp.logs.log import Log
from tmux_debug_mcp.logs.matching import compiled
from tmux_debug_mcp.logs.reading import read_chunk, read_end, read_forward
from tmux_debug_mcp.logs.searching import search
from tmux_debug_mcp.logs.timing import Timing
from tmux_debug_mcp.pictures.screen import captured_cells
from tmux_debug_mcp.sockets.listener import Caller, CallerGoneError
from tmux_debug_mcp.sockets.servers import VerbError
from tmux_debug_mcp.tmux.control_mode import ControlModeParser, quote
from tmux_debug_mcp.tools.toolset import TOOLSETS, choose
from tmux_debug_mcp.verbs import parsing, requests
from tmux_debug_mcp.viewing import audits, phrases
from tmux_debug_mcp.vt.captured import captured_lines, highlighted_row
from tmux_debug_mcp.vt.echo import Echo, Echoer, TypedText
from tmux_debug_mcp.vt.printable import visible
from tmux_debug_mcp.vt.rows import NOTE
from tmux_debug_mcp.vt.steps import steps
from tmux_debug_mcp.vt.transcript import Transcript
from tmux_debug_mcp.wire import RefusedError, read_message

# What a terminal obeys, among the characters that it is shown.
_OBEYED = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_AUDIT = Path("audit.log")
_SLOTS = {
    "json file": (json_file, ("mcpServers", "tmux-debug")),
    "toml file": (toml_file, ("mcp_servers", "tmux-debug")),
}
_PARSERS = {
    tool.name: tool.parser for name in TOOLSETS for one in choose(name) for tool in one.tools
}
_SCHEMAS = {name: parser.schema for name, parser in _PARSERS.items()}


def _split(data: bytes, *limits: int) -> tuple[bytes, list[int]]:
    """Return data without its first bytes, and for each of them a number from 1 to a limit."""
    given = data[: len(limits)].ljust(len(limits), b"\xff")
    return data[len(limits) :], [
        1 + byte % limit for byte, limit in zip(given, limits, strict=True)
    ]


def _pieces(data: bytes, size: int) -> list[bytes]:
    return [data[start : start + size] for start in range(0, len(data), size)]


def _any_text(data: bytes) -> str:
    """Return text that may contain anything, half surrogate pairs included."""
    return data.decode(errors="surrogateescape")


def terminal(data: bytes) -> None:
    """A terminal's text is the same however its bytes come, and contains nothing to obey."""
    data, (columns, rows, size, flags) = _split(data, 99, 50, 20, 2)
    whole, parts = Transcript(columns + 1, rows), Transcript(columns + 1, rows)
    whole.feed(data)
    for piece in _pieces(data, size):
        parts.feed(piece)

    assert parts.text(is_annotated=bool(flags & 1)) == whole.text(is_annotated=bool(flags & 1))
    assert parts.held_bytes == whole.held_bytes
    assert parts.rows() == whole.rows()
    assert not _OBEYED.search(whole.text().replace(NOTE, ""))
    assert len(whole.rows()) <= rows


def drawing(data: bytes) -> None:
    """Where a program draws, and what is a line, is told alike however its bytes come."""
    data, (columns, rows, size) = _split(data, 99, 50, 20)
    whole = Transcript(columns + 1, rows, separates_drawing=True)
    parts = Transcript(columns + 1, rows, separates_drawing=True)
    whole.feed(data)
    for piece in _pieces(data, size):
        parts.feed(piece)

    assert parts.take_events() == whole.take_events()
    assert parts.open_lines() == whole.open_lines()
    assert parts.is_drawn_on == whole.is_drawn_on
    assert parts.rows() == whole.rows()
    assert parts.rows_before == whole.rows_before


def echo(data: bytes) -> None:
    """Only what was typed is left out of lines."""
    output, _, typed = data.partition(b"\0")
    output, (kind,) = _split(output, 4)
    transcript = Transcript()
    transcript.feed(output)
    lines = transcript.open_lines()
    expected = Echo()
    texts = [text.strip() for text in typed.decode(errors="replace").split("\0") if text.strip()]
    expected.expect(TypedText(0, texts, list(Echoer)[kind - 1], 0))
    left = expected.without([], lines)

    characters = iter("".join(line.text for line in lines))
    assert all(character in characters for character in "".join(left))


def capture(data: bytes) -> None:
    """A capture of tmux gives rows and cells, whatever it contains."""
    data, (height,) = _split(data, 60)
    for line in done(captured_lines(data)):
        assert line == line.rstrip(" \t")
    found = done(highlighted_row(data, height))
    assert found is None or 0 <= found.row <= data.count(b"\n")
    cells = captured_cells(data, widens_emoji=True)[:height]
    assert all(cell.width in (1, 2) and cell.text for row in cells for cell in row)


def control_mode(data: bytes) -> None:
    """Tmux's answers are read alike however they come."""
    data, (size,) = _split(data, 20)
    data = data.replace(b"{", b"%begin 1 2 1\n").replace(b"}", b"%end 1 2 1\n")
    parts = ControlModeParser()
    events = [event for piece in _pieces(data, size) for event in parts.feed(piece)]

    assert events == ControlModeParser().feed(data)


def quoting(data: bytes) -> None:
    """Tmux's lexer reads a quoted word as it was."""
    line = quote(data.replace(b"\0", b""))
    assert unquoted(line) == data.replace(b"\0", b"")


def unquoted(line: str) -> bytes:
    """Return what tmux's lexer reads, by the rules that quoting relies on."""
    assert line[0] == line[-1] == '"'
    assert not re.search(r'(?<!\\)["$~]|[^ -~]', line[1:-1])
    return re.sub(rb"\\([0-7]{3})", lambda match: bytes([int(match[1], 8)]), line[1:-1].encode())


def keys(data: bytes) -> None:
    """Keys are typed, pressed or refused."""
    data, (kind,) = _split(data, 6)
    strings = _any_text(data).split("\n\n") if kind > 3 else _any_text(data)
    try:
        found = steps(strings, literal=kind % 3 == 1, paste=kind % 3 == 2)
    except KeysError as error:
        _check_sentence(str(error))
        return
    assert all(step.text or step.keys or step.signal or step.is_text for step in found)
    if kind % 3 == 1 and isinstance(strings, str):
        typed = "".join(step.text + "\n" * len(step.keys) for step in found)
        assert typed.replace("\r", "\n") == strings.replace("\r", "\n")


def wire(data: bytes) -> None:
    """A line from a client goes to the SDK as a JSON object, or is refused with its id."""
    line = data.replace(b"\n", b"")
    try:
        message = read_message(line)
    except RefusedError as error:
        answer = json.loads(error.answer())
        assert answer["error"]["message"]
        with_id = answer.get("id")
        assert with_id is None or str(with_id).encode() in line or b"\\" in line
        return
    assert message is None or message.jsonrpc == "2.0"


def arguments(data: bytes) -> None:
    """A tool takes the arguments of a call, or says which is wrong."""
    data, (number,) = _split(data, len(_PARSERS))
    parser = list(_PARSERS.values())[number - 1]
    stream = iter(data)
    names = [*parser.schema["properties"], "other"]
    sent = {names[byte % len(names)]: _value(stream) for byte in stream}
    try:
        given = parser.parse(sent)
    except ArgumentError as error:
        _check_sentence(str(error))
        return
    assert len(given) <= len(sent)


# Values that arguments may be: what is right for some, and what is right for none.
_VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2.5, 1e308, float("inf"), 10**30, "", "x", "\0", "\ud800"),
    *("9x9", "debug-1", "Enter", "[a", "a\nb", "=", "x" * 5000, "node", "png"),
)


def _value(stream: Iterator[int], depth: int = 3) -> Any:  # noqa: ANN401
    """Return a value of JSON that the next bytes stand for."""
    kind = next(stream, 0)
    if kind < len(_VALUES) or not depth:
        return _VALUES[kind % len(_VALUES)]
    if kind % 3 == 0:
        return [_value(stream, depth - 1) for _ in range(kind % 5)]
    if kind % 3 == 1:
        return {str(_value(stream, 0)): _value(stream, depth - 1) for _ in range(kind % 5)}
    return kind


def words(data: bytes) -> None:
    """The words after `tmux-debug` ask for something, or are refused with a sentence."""
    given = data.decode(errors="replace").split("\0")
    try:
        request = requests.parse(given, _SCHEMAS)
    except VerbError as error:
        _check_sentence(str(error))
        return
    except parsing.HelpWanted:
        return
    orjson.dumps(dict(request.arguments), option=orjson.OPT_PASSTHROUGH_SUBCLASS)


def file_of_a_client(name: str, data: bytes) -> None:
    """A client's settings keep all else when our entry comes and goes, or stay as they are."""
    language, path = _SLOTS[name]
    slot = Slot(language, path, lambda words: {"command": words[0], "args": words[1:]})
    text = data.decode(errors="ignore")
    try:
        after = slot.merged(text, ["/opt/bin/tmux-debug-mcp"], [])
        entry = slot.entry(after)
        assert isinstance(entry, dict)
        assert (entry["command"], entry.get("args", [])) == ("/opt/bin/tmux-debug-mcp", [])
        assert slot.merged(after, ["/opt/bin/tmux-debug-mcp"], None) == after
        left = slot.removed(after)
    except EditError as error:
        _check_sentence(str(error))
        return
    if slot.entry(text) is None:
        assert _without_empty(language.load(left)) == _without_empty(language.load(text))


def _without_empty(value: object) -> object:
    """Return settings without the object of servers, if it is empty, and None for no settings."""
    if not isinstance(value, dict):
        return value
    keys = {str(path[0]) for _, path in _SLOTS.values()}
    return {name: one for name, one in value.items() if one or name not in keys} or None


def audit(data: bytes) -> None:
    """An audit is read alike however it comes, and any record can be shown."""
    data, (size,) = _split(data, 40)
    whole, parts = audits.RecordParser(_AUDIT), audits.RecordParser(_AUDIT)
    records = [*whole.feed(data), *whole.finish()]
    cut = [record for piece in _pieces(data, size) for record in parts.feed(piece)]
    assert [*cut, *parts.finish()] == records
    for record in records:
        if isinstance(record, audits.Record):
            shown = [phrases.describe(record), record.error, *record.panes, record.caller]
            shown += [str(record.result), record.run, record.capture, record.directory]
            assert all(isinstance(one, str) for one in shown)
            assert not _OBEYED.search(visible(phrases.describe(record)))


def timing(data: bytes) -> None:
    """A log's times are read up to what is not one, and what was read is written again."""
    read = Timing(1e9)
    read.read(data.decode(errors="replace"))
    assert read.times == sorted(read.times)
    again = Timing(read.began_at)
    again.read(read.text())
    assert (again.columns, again.rows, again.sizes) == (read.columns, read.rows, read.sizes)
    assert [one[1:] for one in again.resizes] == [one[1:] for one in read.resizes]


def index(data: bytes) -> None:
    """Entries of an index are what was written."""
    for entry in parsed(data):
        [again] = parsed(entry.line())
        assert again.line() == entry.line()


def pattern(data: bytes) -> None:
    """A pattern searches lines, or is refused with a sentence."""
    wanted, _, output = data.partition(b"\0")
    text = output.decode(errors="replace")
    try:
        expression = compiled("pattern", wanted.decode(errors="replace"))
        of_bytes = compiled("pattern", wanted.decode(errors="replace"), is_for_bytes=True)
    except ArgumentError as error:
        _check_sentence(str(error))
        return
    found = expression.search(text)
    assert found is None or "\n" not in found[0]
    assert bool(of_bytes.search(text.encode())) == bool(found)


def reading(data: bytes) -> None:
    """A log is read from any cursor to any other, and no byte of it is skipped."""
    data, (size, at) = _split(data, 200, 200)
    start = at * len(data) // 200
    with tempfile.TemporaryDirectory() as directory:
        log = Log.create(Path(directory) / "log", "0123456789abcdef")
        try:
            log.path.write_bytes(data)
            _run(_read(log, start, 10 * size))
        finally:
            log.close()


async def _read(log: Log, start: int, size: int) -> None:
    end = log.size
    for is_raw in (False, True):
        cursor = start
        while cursor < end:
            piece = await read_chunk(log, cursor, end, size, is_raw=is_raw, is_final=True)
            assert cursor < piece.end <= end or not is_raw
            if piece.end == cursor:
                break
            cursor = piece.end
            assert is_raw or not _OBEYED.search(piece.text)
    cursor = start
    while cursor < end:
        piece = await read_forward(log, cursor, end, size)
        assert len(piece.text) <= size
        if piece.end == cursor:  # the rest is an unfinished sequence
            break
        cursor = piece.end
    assert len((await read_end(log, start, end, size)).text) <= size
    everything = compiled("pattern", "^.", is_for_bytes=True)
    found = await search(log, start, end, everything, 1000)
    assert bool(found.matches) == bool(found.lines)
    assert all(start <= line.start <= line.end <= end for line in found.lines)
    assert all(map(found.is_match, found.lines))


def greeting(data: bytes) -> None:
    """A caller's first line is an object, or the caller is gone."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    theirs.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, len(data) + 4096)
    theirs.settimeout(0)
    caller = Caller(ours)
    try:
        sent = theirs.send(data) if data else 0
        theirs.shutdown(socket.SHUT_WR)
        _run(_greeted(caller, data[:sent]))
    finally:
        caller.close()
        theirs.close()


async def _greeted(caller: Caller, data: bytes) -> None:
    line, line_feed, _ = data.partition(b"\n")
    try:
        greeted = await caller.greeting(10.0)
    except CallerGoneError:
        return
    assert line_feed
    assert greeted.wish == orjson.loads(line)
    assert greeted.fds == []


def _run(task: Coroutine[Any, Any, None]) -> None:
    asyncio.run(task)


def _check_sentence(text: str) -> None:
    """Check an error that somebody reads: it says something, briefly."""
    assert text
    assert len(text) < 2000


TARGETS: dict[str, Callable[[bytes], None]] = {
    function.__name__: function
    for function in (
        *(terminal, drawing, echo, capture, control_mode, quoting, keys, wire, arguments, words),
        *(audit, timing, index, pattern, reading, greeting),
    )
}
TARGETS |= {name.replace(" ", "_"): functools.partial(file_of_a_client, name) for name in _SLOTS}
