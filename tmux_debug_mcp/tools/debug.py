"""The toolset `debug`: spec 001's five tools, with parameters added, and two of ours."""

from functools import partial

import orjson

from tmux_debug_mcp.archive import PastPane
from tmux_debug_mcp.capturing import capture
from tmux_debug_mcp.creation import NewPane, check
from tmux_debug_mcp.errors import ArgumentError, CursorError, KeysError, NameTakenError
from tmux_debug_mcp.logs import Log
from tmux_debug_mcp.matching import compiled
from tmux_debug_mcp.panes import Pane
from tmux_debug_mcp.reading import read_forward, read_last_lines, read_middle
from tmux_debug_mcp.running import MAX_OUTPUT_CHARACTERS, run_in_pane, run_in_shell
from tmux_debug_mcp.searching import search
from tmux_debug_mcp.sending import Sending, send
from tmux_debug_mcp.session import Session
from tmux_debug_mcp.steps import MAX_STEPS, steps, summary
from tmux_debug_mcp.texts import Shown, cut_in_the_middle
from tmux_debug_mcp.waiting import (
    DEFAULT_TIMEOUT_S,
    MAX_UNASKED_CHARACTERS,
    Begin,
    Conditions,
    since_cursor,
    since_last_keys,
    wait,
)

from . import Answer, Arguments, Tool, Toolset
from .arguments import CWD, ENV, NAME
from .results import meta, observed, ran, row, shown_command, status

INSTRUCTIONS = (
    "Real terminals for debugging: a server in one pane, requests from another. Start each program in a pane with "
    "tmux_create_pane, type with tmux_send_keys; both return what came of it. For commands that end, tmux_run. Never "
    "sleep: give wait_for, or call tmux_wait. Programs keep running between calls; panes stay after their program "
    "exits. The last line of a result, in brackets, says what the pane is doing: it runs, has ended, or awaits input "
    "(a line), hidden input (a password) or keys (a line editor, as at a shell's or gdb's prompt, or a menu). Its "
    "cursor, a byte offset, is for `since`."
)

MAX_CAPTURE_CHARACTERS = 40_000
# What a create or a send waits for where nothing else is asked for.
_REST_S = 1.0
_MAX_CAPTURE_LINES = 1000
_DEFAULT_CAPTURE_LINES = 100

_PANE_ID = {"type": "string", "minLength": 1, "description": "Pane id or name"}
_TIMEOUT = {"type": "number", "minimum": 0, "maximum": 3600}
_PATTERN = {"type": "string", "minLength": 1}
_WAIT_FOR = {
    "wait_for": {**_PATTERN, "description": "Wait for this regular expression, in a line that is new or has changed"},
    "timeout_s": {
        **_TIMEOUT,
        "description": "Most seconds to wait (default 1, with wait_for 30); 0 returns at once",
    },
}
_STEP_TIMEOUT = {
    **_TIMEOUT,
    "description": "Most seconds to wait (default 1, with wait_for and for each step 30); 0 returns at once",
}


async def create_pane(session: Session, arguments: Arguments) -> Answer:
    """Start a command in a new pane, and observe it."""
    conditions = _conditions(arguments)
    new = NewPane(**{name: value for name, value in arguments.items() if name not in _WAIT_FOR})
    check(new)
    if new.name is None:
        pane = await session.create(new)
    else:
        async with session.naming:
            await _refuse_taken(session, new.name)
            pane = await session.create(new)
    text = f"Created pane '{pane.name}' (id: {pane.id}) running: {shown_command(pane.command)}"
    if conditions is None:
        state = await pane.state()
        return Answer([text, status(pane, state)], meta(pane, state), pane.id)
    return observed(await wait([pane], conditions, lambda _pane: Begin(0, 0)), conditions, text)


async def send_keys(session: Session, arguments: Arguments) -> Answer:
    """Type and press what `keys` says, and observe what comes of it."""
    conditions = _conditions(arguments)
    pane = await session.find(arguments["pane_id"])
    try:
        parts = steps(arguments["keys"], literal=arguments.get("literal", False), paste=arguments.get("paste", False))
    except KeysError:
        if arguments.get("secret"):
            raise KeysError(
                "The secret keys can't be typed as they are. Set literal, and send key names in a call of their own."
            ) from None
        raise
    timeout_s = arguments.get("timeout_s") or DEFAULT_TIMEOUT_S
    sending = await send(pane, parts, timeout_s, keeps_screen=conditions is not None)
    done = summary(parts[: sending.done])
    if sending.signalled > 1:
        done += f" to {sending.signalled} processes"
    text = f"Sent keys to pane '{pane.id}' ({done})"
    if sending.why_not:
        text = f"Sent {sending.done} of {len(parts)} steps to pane '{pane.id}' ({done}). Step {sending.done + 1} was "
        text += f"not sent: {sending.why_not}."
        conditions = Conditions(timeout_s=0, most_characters=MAX_UNASKED_CHARACTERS)
    if conditions is None:
        state = await pane.state()
        return Answer([text, status(pane, state)], meta(pane, state), pane.id)
    return observed(await wait([pane], conditions, partial(_begin, sending)), conditions, text)


def _begin(sending: Sending, _pane: Pane) -> Begin:
    return Begin(sending.cursor, sending.first_cursor, sending.rows, sending.before)


async def capture_pane(session: Session, arguments: Arguments) -> Answer:
    """Return the last lines of a pane, what is new in it, or the lines that match."""
    pane = await session.find_readable(arguments["pane_id"])
    try:
        if "pattern" in arguments:
            return await _search(pane, arguments)
        if "since" in arguments:
            return await _read_since(pane, arguments)
        return await _read_past(pane, arguments) if isinstance(pane, PastPane) else await _read_screen(pane, arguments)
    finally:
        if isinstance(pane, PastPane):
            pane.log.close()


async def _read_screen(pane: Pane, arguments: Arguments) -> Answer:
    # The state first: when it says that the program has ended, the capture has its last line.
    state = await pane.state()
    text = await capture(pane, _lines(arguments), ansi=arguments.get("ansi", False))
    shown = cut_in_the_middle(Shown(text.split("\n"), []), MAX_CAPTURE_CHARACTERS)
    return Answer([shown.text, status(pane, state)], meta(pane, state, shown), pane.id, shown.text)


async def _read_past(pane: PastPane, arguments: Arguments) -> Answer:
    """Return what a pane of an earlier run printed last."""
    state = await pane.state()
    lines, _ = await read_last_lines(pane.log, state.cursor, _lines(arguments), MAX_CAPTURE_CHARACTERS)
    text = "\n".join(lines).rstrip()
    return Answer([text, status(pane, state)], meta(pane, state), pane.id, text)


async def _read_since(pane: Pane | PastPane, arguments: Arguments) -> Answer:
    """Return what a pane has printed from a cursor on."""
    if arguments.get("ansi"):
        raise ArgumentError("Parameter 'ansi' is for what is on the screen, not for 'since'. Leave one of them out.")
    since = int(arguments["since"])
    state = await pane.state()
    if isinstance(pane, Pane):
        await pane.check_log()
    _check_cursor(pane, since, state.cursor)
    end = max(since, state.cursor)
    piece = await read_forward(pane.log, since, end, MAX_CAPTURE_CHARACTERS)
    # What a program left unfinished stays so once it has ended.
    cursor = end if state.is_final and not piece.left_bytes else piece.end
    notes = [f"{piece.start - since} bytes are no longer kept"] if piece.start > since else []
    notes += [f"{piece.left_bytes} bytes more"] if piece.left_bytes else []
    told = meta(pane, state) | {"start_cursor": piece.start, "cursor": cursor, "cut_bytes": piece.left_bytes or None}
    return Answer([piece.text, status(pane, state, *notes, cursor=cursor)], told, pane.id, piece.text)


async def _search(pane: Pane | PastPane, arguments: Arguments) -> Answer:
    """Return the lines of a pane's log that match."""
    if arguments.get("ansi"):
        raise ArgumentError("Parameter 'ansi' is for what is on the screen, not for 'pattern'. Leave one of them out.")
    pattern = compiled("pattern", arguments["pattern"], is_for_bytes=True)
    since = int(arguments.get("since", 0))
    state = await pane.state()
    _check_cursor(pane, since, state.cursor)
    shown, count = await search(pane.log, since, state.cursor, pattern, _lines(arguments))
    found = f"{count} {'line matches' if count == 1 else 'lines match'}" if count else "no line matches"
    if count == _lines(arguments):
        found = f"the newest {count} lines that match"
    return Answer([shown.text, status(pane, state, found)], meta(pane, state, shown), pane.id, shown.text)


def _check_cursor(pane: Pane | PastPane, since: int, cursor: int) -> None:
    if since > pane.log.size:
        raise CursorError(since, cursor)


def _lines(arguments: Arguments) -> int:
    return min(int(arguments.get("lines", _DEFAULT_CAPTURE_LINES)), _MAX_CAPTURE_LINES)


async def wait_for_panes(session: Session, arguments: Arguments) -> Answer:
    """Return what happens first in one pane or in several."""
    names = arguments["pane_id"]
    names = [names] if isinstance(names, str) else names
    given = {name: value for name, value in arguments.items() if name not in ("pane_id", "since")}
    is_for_input = given.keys() <= {"timeout_s"}
    conditions = Conditions(**given, is_for_input=is_for_input)
    if "since" in arguments and len(names) > 1:
        raise ArgumentError("Parameter 'since' is a cursor of one pane. Give one pane, or leave it out.")
    panes = [await session.find(name) for name in dict.fromkeys(names)]
    begin = partial(since_cursor, cursor=int(arguments["since"])) if "since" in arguments else since_last_keys
    return observed(await wait(panes, conditions, begin), conditions)


async def run_command(session: Session, arguments: Arguments) -> Answer:
    """Run a command in a shell's pane or in a new one, and return its output."""
    command, timeout_s = arguments["command"], arguments.get("timeout_s", DEFAULT_TIMEOUT_S)
    if "pane_id" in arguments and "cwd" in arguments:
        raise ArgumentError("Parameter 'cwd' is for a new pane. Leave it out, or begin the command with cd.")
    new = NewPane(command, cwd=arguments.get("cwd"), gives_way=True)
    check(new)
    if "pane_id" in arguments:
        pane = await session.find(arguments["pane_id"])
        outcome = await run_in_shell(pane, command, timeout_s, _show)
    else:
        pane = await session.create(new)
        outcome = await run_in_pane(pane, timeout_s, _show)
        await session.retire()
    return ran(pane, outcome, timeout_s)


async def _show(log: Log, start: int, end: int) -> Shown:
    """Return the output of a command."""
    shown, _ = await read_middle(log, start, end, MAX_OUTPUT_CHARACTERS, folds=False)
    return shown


async def kill_pane(session: Session, arguments: Arguments) -> Answer:
    """End a pane and all that belongs to it."""
    pane = await session.find(arguments["pane_id"])
    state = await session.kill(pane)
    ending = "it is not known how" if state.is_running else str(state)
    return Answer([f"Killed pane '{pane.id}' ({ending})", status(pane, state)], meta(pane, state), pane.id)


async def list_panes(session: Session, _arguments: Arguments) -> Answer:
    """Return all panes as a JSON array."""
    rows = [row(pane, await pane.state()) for pane in session.panes]
    if not rows:
        return Answer(["No active panes. Use tmux_create_pane to start one."])
    return Answer([orjson.dumps(rows).decode()])


async def _refuse_taken(session: Session, name: str) -> None:
    for pane in session.panes:
        if pane.name == name and (await pane.state()).is_running:
            raise NameTakenError(name, pane.id)


def _observes(arguments: Arguments) -> bool:
    return arguments.get("timeout_s") != 0 or not isinstance(arguments.get("keys", ""), str)


def _conditions(arguments: Arguments) -> Conditions | None:
    """Return what a create or a send is to wait for, or None where nothing is to be observed."""
    if "wait_for" in arguments:
        compiled("wait_for", arguments["wait_for"])  # before anything is done
        return Conditions(arguments["wait_for"], timeout_s=arguments.get("timeout_s", DEFAULT_TIMEOUT_S))
    timeout_s = arguments.get("timeout_s", _REST_S)
    if not timeout_s:
        return None
    return Conditions(is_for_rest=True, timeout_s=timeout_s, most_characters=MAX_UNASKED_CHARACTERS)


TOOLS = (
    Tool(
        "tmux_create_pane",
        "Start a command in a new terminal pane: a server, a test run, a debugger, or a shell such as 'bash'. Returns "
        "its output so far (2,000 characters) once it is at rest (ended, awaiting something or quiet), after timeout_s "
        "at the latest; it keeps running.",
        create_pane,
        {
            "command": {
                "type": "string",
                "minLength": 1,
                "description": "Shell command line, e.g. 'RUST_LOG=debug cargo run'",
            },
            "name": {**NAME, "description": "Name to use instead of the id"},
            "cwd": CWD,
            "env": ENV,
            **_WAIT_FOR,
        },
        required=("command",),
        hints={"destructive_hint": False},
        may_take_long=_observes,
    ),
    Tool(
        "tmux_send_keys",
        "Type into a pane, and return the output that follows, or the screen of a full-screen program, once the pane "
        "is at rest. A string is key names alone ('C-c', 'Up Up Enter', 'Escape', 'F5'), a signal for all processes of "
        "the program ('SIGTERM'), or text, which ends with ' Enter' or a line feed to press Enter: 'ls -la Enter'. An "
        "array is steps, and so is each line of a text: ['break main Enter', 'run Enter', 'C-c']. A step waits until "
        "the program reads the terminal.",
        send_keys,
        {
            "pane_id": _PANE_ID,
            "keys": {
                "anyOf": [
                    {"type": "string"},
                    {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": MAX_STEPS},
                ],
                "description": "Text or keys, or an array of steps",
            },
            "literal": {"type": "boolean", "description": "Text only, no key names; a line feed is Enter"},
            "paste": {"type": "boolean", "description": "Paste it in one piece, not line by line"},
            "secret": {"type": "boolean", "description": "Keep the keys out of the audit log"},
            **_WAIT_FOR,
            "timeout_s": _STEP_TIMEOUT,
        },
        required=("pane_id", "keys"),
        hints={"destructive_hint": False},
        may_take_long=lambda _arguments: True,
    ),
    Tool(
        "tmux_capture_pane",
        "Read a pane, running or exited: the last lines of its scrollback, or the screen of a full-screen program. "
        "With `since`, all that was printed from that cursor on. With `pattern`, only lines of the log that match "
        "(from `since` on), with two lines around each, behind the cursor of the first.",
        capture_pane,
        {
            "pane_id": _PANE_ID,
            "lines": {"type": "integer", "minimum": 1, "description": "How many lines (default 100, max 1000)"},
            "since": {"type": "integer", "minimum": 0, "description": "Cursor to read on from, oldest first"},
            "pattern": {**_PATTERN, "description": "Regular expression"},
            "ansi": {"type": "boolean", "description": "Keep colours of the last lines"},
        },
        required=("pane_id",),
        hints={"read_only_hint": True},
    ),
    Tool(
        "tmux_run",
        "Run a command to its end; return its output and exit code. With pane_id it runs in the shell at its prompt "
        "there, which keeps directory and variables; without, in a pane of its own. If it awaits input, the call "
        "returns: answer with tmux_send_keys. On timeout it is interrupted with C-c.",
        run_command,
        {
            "command": {"type": "string", "minLength": 1, "description": "Shell command; may have several lines"},
            "pane_id": {**_PANE_ID, "description": "Pane with a shell at its prompt"},
            "cwd": {**CWD, "description": "Directory to run in, without pane_id"},
            "timeout_s": {**_TIMEOUT, "description": "Seconds to give it (default 30)"},
        },
        required=("command",),
        hints={"destructive_hint": True},
        may_take_long=lambda _arguments: True,
    ),
    Tool(
        "tmux_wait",
        "Wait for a pane: until a line matches, until it is quiet, or, with neither, until its program awaits input. "
        "Ends when the program does. Returns the output since the last keys, or the screen of a full-screen program. "
        "Given several panes, waits for the first.",
        wait_for_panes,
        {
            "pane_id": {
                "anyOf": [
                    {"type": "string", "minLength": 1},
                    {"type": "array", "items": {"type": "string", "minLength": 1}, "minItems": 1, "maxItems": 64},
                ],
                "description": "Pane id or name, or an array of them",
            },
            "pattern": {**_PATTERN, "description": "Regular expression for a line"},
            "stop_pattern": {**_PATTERN, "description": "Another one that ends the wait, such as 'error|panic'"},
            "idle_s": {"type": "number", "minimum": 0, "description": "Until nothing is printed for so many seconds"},
            "since": {
                "type": "integer",
                "minimum": 0,
                "description": "Cursor to begin at (default: the last keys sent)",
            },
            "timeout_s": {**_TIMEOUT, "description": "Most seconds to wait (default 30); 0 looks now"},
        },
        required=("pane_id",),
        hints={"read_only_hint": True},
        may_take_long=lambda _arguments: True,
    ),
    Tool(
        "tmux_kill_pane",
        "End a pane: its program, all that this started, and the pane with its output. To signal only the program, "
        "send 'C-c' or a signal's name with tmux_send_keys.",
        kill_pane,
        {"pane_id": _PANE_ID},
        required=("pane_id",),
        hints={"destructive_hint": True},
        removed={
            "signal": "To send a signal, call tmux_send_keys with its name as keys, such as 'SIGTERM'; tmux_kill_pane "
            "ends the pane."
        },
    ),
    Tool(
        "tmux_list_panes",
        "List all panes as JSON: id, name, status, what the program awaits, pid, command, exit code or signal.",
        list_panes,
        hints={"read_only_hint": True},
    ),
)

TOOLSET = Toolset("debug", TOOLS, INSTRUCTIONS)
