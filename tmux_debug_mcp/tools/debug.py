"""The toolset `debug`: spec 001's five tools, with parameters added."""

import signal
from typing import Any

import orjson

from tmux_debug_mcp.archive import PastPane
from tmux_debug_mcp.capturing import capture
from tmux_debug_mcp.creation import NewPane, check
from tmux_debug_mcp.errors import ArgumentError, CursorError, KeysError
from tmux_debug_mcp.keys import parse
from tmux_debug_mcp.panes import Pane, State
from tmux_debug_mcp.reading import end_of, read_end, read_forward
from tmux_debug_mcp.running import MAX_INTERRUPTS_S, Outcome, run_in_pane, run_in_shell
from tmux_debug_mcp.session import Session
from tmux_debug_mcp.waiting import DEFAULT_TIMEOUT_S, Conditions, Observation, compiled, wait

from . import Answer, Arguments, Tool, Toolset
from .arguments import CWD, ENV, NAME

INSTRUCTIONS = (
    "Real terminals for debugging: a server in one pane, requests from another. Start each long-running program in "
    "its own pane with tmux_create_pane, type into it with tmux_send_keys, read it with tmux_capture_pane. Never "
    "sleep: give wait_for, or call tmux_wait. For commands that end, tmux_run. Programs keep running between calls; "
    "panes stay after their program exits. The last line of a result, in brackets, says whether the program runs or "
    "how it ended, and the cursor for `since`."
)

MAX_CAPTURE_CHARACTERS = 40_000
_MAX_CAPTURE_LINES = 1000
_DEFAULT_CAPTURE_LINES = 100
_SHOWN_COMMAND_CHARACTERS = 200

_PANE_ID = {"type": "string", "minLength": 1, "description": "Pane id or name"}
_TIMEOUT = {"type": "number", "minimum": 0, "maximum": 3600, "description": "Seconds to wait (default 30)"}
_WAIT_FOR = {
    "wait_for": {
        "type": "string",
        "minLength": 1,
        "description": "Return once a line of new output matches this regular expression, or the program ends",
    },
    "timeout_s": _TIMEOUT,
}


async def create_pane(session: Session, arguments: Arguments) -> Answer:
    """Start a command in a new pane."""
    conditions = _wait_for(arguments)
    new = NewPane(**{name: value for name, value in arguments.items() if name not in _WAIT_FOR})
    check(new)
    pane, state = await session.create(new)
    text = f"Created pane '{pane.name}' (id: {pane.id}) running: {_shown(pane.command)}"
    if conditions:
        return _observed(await wait([pane], conditions, 0), conditions, text)
    return Answer([text, _status(pane, state)], _meta(pane, state), pane.id)


async def send_keys(session: Session, arguments: Arguments) -> Answer:
    """Type and press what `keys` says."""
    conditions = _wait_for(arguments)
    pane = await session.find(arguments["pane_id"])
    try:
        keystrokes = parse(arguments["keys"], literal=arguments.get("literal", False))
    except KeysError:
        if arguments.get("secret"):
            raise KeysError(
                "The secret keys can't be typed as they are. Set literal, and send key names in a call of their own."
            ) from None
        raise
    cursor = await pane.send(keystrokes)
    text = f"Sent keys to pane '{pane.id}' ({keystrokes.done})"
    if conditions:
        return _observed(await wait([pane], conditions, cursor), conditions, text)
    state = await pane.state()
    return Answer([text, _status(pane, state)], _meta(pane, state), pane.id)


async def capture_pane(session: Session, arguments: Arguments) -> Answer:
    """Return the last lines of a pane."""
    pane = await session.find_readable(arguments["pane_id"])
    if isinstance(pane, PastPane):
        try:
            return await _read_past(pane, arguments)
        finally:
            pane.log.close()
    if "since" in arguments:
        if arguments.get("ansi"):
            raise ArgumentError(
                "Parameter 'ansi' is for what is on the screen, not for 'since'. Leave one of them out."
            )
        return await _read_since(pane, int(arguments["since"]))
    lines = min(int(arguments.get("lines", _DEFAULT_CAPTURE_LINES)), _MAX_CAPTURE_LINES)
    # The state first: when it says that the program has ended, the capture has its last line.
    state = await pane.state()
    text = await capture(pane, lines, ansi=arguments.get("ansi", False))
    shown = end_of(text, MAX_CAPTURE_CHARACTERS)
    meta = _meta(pane, state)
    if shown == text:
        return Answer([text, _status(pane, state)], meta, pane.id, text)
    cut_bytes = len(text.encode()) - len(shown.encode())
    status = _status(pane, state, f"cut the first {cut_bytes} bytes: read all with since 0")
    return Answer([shown, status], meta | {"cut_bytes": cut_bytes}, pane.id, shown)


async def _read_past(pane: PastPane, arguments: Arguments) -> Answer:
    """Return what a pane of an earlier run has printed."""
    if "since" in arguments:
        return await _read_since(pane, int(arguments["since"]))
    state = await pane.state()
    lines = min(int(arguments.get("lines", _DEFAULT_CAPTURE_LINES)), _MAX_CAPTURE_LINES)
    piece = await read_end(pane.log, 0, state.cursor, MAX_CAPTURE_CHARACTERS)
    read = piece.text.rstrip().split("\n")
    text = "\n".join(read[-lines:])
    is_cut = len(read) < lines and piece.start > pane.log.kept_from
    notes = [f"cut the first {piece.start} bytes: read all with since 0"] if is_cut else []
    return Answer([text, _status(pane, state, *notes)], _meta(pane, state), pane.id, text)


async def _read_since(pane: Pane | PastPane, since: int) -> Answer:
    """Return what a pane has printed from a cursor on."""
    state = await pane.state()
    if isinstance(pane, Pane):
        await pane.check_log()
    if since > pane.log.size:
        raise CursorError(since, state.cursor)
    end = max(since, state.cursor)
    piece = await read_forward(pane.log, since, end, MAX_CAPTURE_CHARACTERS)
    # What a program left unfinished stays so once it has ended.
    cursor = end if state.is_final and not piece.left_bytes else piece.end
    notes = [f"{piece.start - since} bytes are no longer kept"] if piece.start > since else []
    notes += [f"{piece.left_bytes} bytes more"] if piece.left_bytes else []
    meta = _meta(pane, state) | {"start_cursor": piece.start, "cursor": cursor, "cut_bytes": piece.left_bytes or None}
    return Answer([piece.text, _status(pane, state, *notes, cursor=cursor)], meta, pane.id, piece.text)


async def wait_for_panes(session: Session, arguments: Arguments) -> Answer:
    """Return what happens first in one pane or in several."""
    names = arguments["pane_id"]
    names = [names] if isinstance(names, str) else names
    conditions = Conditions(**{name: value for name, value in arguments.items() if name not in ("pane_id", "since")})
    since = int(arguments["since"]) if "since" in arguments else None
    if since is not None and len(names) > 1:
        raise ArgumentError("Parameter 'since' is a cursor of one pane. Give one pane, or leave it out.")
    panes = [await session.find(name) for name in dict.fromkeys(names)]
    return _observed(await wait(panes, conditions, since), conditions)


async def run_command(session: Session, arguments: Arguments) -> Answer:
    """Run a command in a shell's pane or in a new one, and return its output."""
    command, timeout_s = arguments["command"], arguments.get("timeout_s", DEFAULT_TIMEOUT_S)
    if "pane_id" in arguments and "cwd" in arguments:
        raise ArgumentError("Parameter 'cwd' is for a new pane. Leave it out, or begin the command with cd.")
    new = NewPane(command, cwd=arguments.get("cwd"), gives_way=True)
    check(new)
    if "pane_id" in arguments:
        pane = await session.find(arguments["pane_id"])
        outcome = await run_in_shell(pane, command, timeout_s)
    else:
        pane, _ = await session.create(new)
        outcome = await run_in_pane(pane, timeout_s)
    return _ran(pane, outcome, timeout_s)


async def kill_pane(session: Session, arguments: Arguments) -> Answer:
    """End a pane and all that belongs to it."""
    pane = await session.find(arguments["pane_id"])
    first = (_signal(arguments["signal"]),) if "signal" in arguments else (signal.SIGHUP, signal.SIGTERM)
    state = await session.kill(pane, first)
    ending = "it is not known how" if state.is_running else str(state)
    return Answer([f"Killed pane '{pane.id}' ({ending})", _status(pane, state)], _meta(pane, state), pane.id)


async def list_panes(session: Session, _arguments: Arguments) -> Answer:
    """Return all panes as a JSON array."""
    rows = [_row(pane, await pane.state()) for pane in session.panes]
    if not rows:
        return Answer(["No active panes. Use tmux_create_pane to start one."])
    return Answer([orjson.dumps(rows).decode()])


def _waits(arguments: Arguments) -> bool:
    return "wait_for" in arguments


def _wait_for(arguments: Arguments) -> Conditions | None:
    """Return what a create or a send is to wait for."""
    if "wait_for" not in arguments:
        if "timeout_s" in arguments:
            raise ArgumentError("Parameter 'timeout_s' is the time to wait for 'wait_for'. Give both or none.")
        return None
    compiled("wait_for", arguments["wait_for"])  # before anything is done
    return Conditions(arguments["wait_for"], timeout_s=arguments.get("timeout_s", DEFAULT_TIMEOUT_S))


def _observed(found: list[Observation], conditions: Conditions, *confirmation: str) -> Answer:
    """Return what was observed, of each pane if nothing happened in any."""
    text = "\n".join(observation.piece.text for observation in found)
    status = " ".join(_observed_status(observation, conditions) for observation in found)
    first = found[0]
    pane, piece = first.pane, first.piece
    meta = _meta(pane, first.state) | {"reason": first.reason, "cursor": piece.end, "start_cursor": first.start}
    meta |= {"cut_bytes": piece.start - first.start or None}
    return Answer([*confirmation, *(one.piece.text for one in found), status], meta, pane.id, text)


def _observed_status(observation: Observation, conditions: Conditions) -> str:
    pane, piece, reason = observation.pane, observation.piece, observation.reason
    notes = {
        "matched": ["matched"],
        "stopped": ["stop_pattern matched"],
        "idle": [f"idle for {conditions.idle_s or 0:g} s"],
        "exited": [],
        "timed_out": [f"timed out after {conditions.timeout_s:g} s"],
    }[reason]
    if cut := piece.start - observation.start:
        notes.append(f"cut the first {cut} bytes: read them with since {observation.start}")
    if observation.unseen_bytes:
        notes.append(f"{observation.unseen_bytes} bytes were gone before they were looked at")
    return _status(pane, observation.state, *notes, cursor=piece.end)


def _ran(pane: Pane, outcome: Outcome, timeout_s: float) -> Answer:
    """Return what a command printed and how it ended."""
    notes = [note] if (note := outcome.note(timeout_s)) else []
    if outcome.exit_code is not None and outcome.state.is_running:
        notes.append(f"exit code {outcome.exit_code} after {outcome.runtime_s:.1f} s")
    piece = outcome.piece
    if cut := piece.start - outcome.start:
        notes.append(f"cut the first {cut} bytes: read them with tmux_capture_pane since {outcome.start}")
    meta = _meta(pane, outcome.state) | {"reason": outcome.reason, "exit_code": outcome.exit_code}
    meta |= {"start_cursor": outcome.start, "cut_bytes": cut or None, "run_s": round(outcome.runtime_s, 3)}
    return Answer([piece.text, _status(pane, outcome.state, *notes)], meta, pane.id, piece.text)


def _signal(name: str) -> int:
    try:
        return signal.Signals["SIG" + name.upper().removeprefix("SIG")]
    except KeyError:
        raise ArgumentError(
            f"Parameter 'signal' is '{name}', which is none. Give a name such as SIGINT, SIGTERM or SIGKILL."
        ) from None


def _row(pane: Pane | PastPane, state: State) -> dict[str, Any]:
    row = {"id": pane.id, "name": pane.name, "status": _word(state), "command": _shown(pane.command)}
    ending = {"exit_code": state.exit_code, "signal": state.signal, "lost": state.is_lost or None}
    rest = {"runtime_s": round(state.runtime_s, 1), "foreground": state.foreground, "cursor": state.cursor}
    return {key: value for key, value in (row | ending | rest).items() if value is not None}


def _meta(pane: Pane | PastPane, state: State) -> dict[str, Any]:
    row = {key: value for key, value in _row(pane, state).items() if key not in ("id", "name", "command")}
    return {"pane_id": pane.id} | row


def _status(pane: Pane | PastPane, state: State, *notes: str, cursor: int | None = None) -> str:
    foreground = f", foreground {state.foreground}" if state.foreground else ""
    here = state.cursor if cursor is None else cursor
    if isinstance(pane, Pane) and pane.has_gaps:
        notes = (*notes, "some output was lost: there was no room for it")
    return f"[{'; '.join([f'{pane.id} {state}{foreground}', *notes, f'cursor {here}'])}]"


def _word(state: State) -> str:
    return "running" if state.is_running else "exited"


def _shown(command: str) -> str:
    if len(command) <= _SHOWN_COMMAND_CHARACTERS:
        return command
    return command[:_SHOWN_COMMAND_CHARACTERS] + "…"


TOOLS = (
    Tool(
        "tmux_create_pane",
        "Start a command in a new terminal pane: a server, a test run, a REPL, or a shell such as 'bash'. "
        "Returns the pane's id at once, or when wait_for has matched; the command keeps running. The pane stays after "
        "the command exits, with its output and exit code.",
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
        may_take_long=_waits,
    ),
    Tool(
        "tmux_send_keys",
        "Type into a pane as at its keyboard. Key names alone, separated by spaces, are pressed: 'C-c' (or '^C'), "
        "'Up Up Enter', 'Escape', 'F5'. Anything else is typed exactly; end it with a line feed or ' Enter' to press "
        "Enter after it: 'ls -la Enter'. With wait_for the result has what came of it.",
        send_keys,
        {
            "pane_id": _PANE_ID,
            "keys": {"type": "string", "description": "Text to type, or keys to press"},
            "literal": {
                "type": "boolean",
                "description": "Type exactly this, key names too; a line feed is Enter",
            },
            "secret": {"type": "boolean", "description": "Keep the keys out of the audit log"},
            **_WAIT_FOR,
        },
        required=("pane_id", "keys"),
        hints={"destructive_hint": False},
        may_take_long=_waits,
    ),
    Tool(
        "tmux_capture_pane",
        "Read the last lines of a pane's screen and scrollback: logs, command output, error messages. Works on running "
        "and exited panes. With `since`, read what is new: results end with the cursor to go on from.",
        capture_pane,
        {
            "pane_id": _PANE_ID,
            "lines": {"type": "integer", "minimum": 1, "description": "How many (default 100, max 1000)"},
            "since": {
                "type": "integer",
                "minimum": 0,
                "description": "Instead: all that was printed since this cursor, oldest first",
            },
            "ansi": {"type": "boolean", "description": "Keep colours, as escape sequences"},
        },
        required=("pane_id",),
        hints={"read_only_hint": True},
    ),
    Tool(
        "tmux_run",
        "Run a command to its end; return its complete output and exit code. With pane_id it runs in the shell at its "
        "prompt there, which keeps directory, variables and functions; without, in a pane of its own. On timeout it "
        f"is interrupted with C-c, and gets up to {MAX_INTERRUPTS_S:g} s to end.",
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
        "Wait for a pane instead of sleeping: until a line of its output matches, until it is quiet, or until its "
        "program ends. Returns the first that happens, with the output since the last keys were sent. Given several "
        "panes, waits for the first of them.",
        wait_for_panes,
        {
            "pane_id": {
                "anyOf": [
                    {"type": "string", "minLength": 1},
                    {"type": "array", "items": {"type": "string", "minLength": 1}, "minItems": 1, "maxItems": 64},
                ],
                "description": "Pane id or name, or an array of them",
            },
            "pattern": {"type": "string", "minLength": 1, "description": "Regular expression to find in a line"},
            "stop_pattern": {
                "type": "string",
                "minLength": 1,
                "description": "Another one that ends the wait, such as 'error|panic'",
            },
            "idle_s": {"type": "number", "minimum": 0, "description": "Until nothing is printed for so many seconds"},
            "since": {
                "type": "integer",
                "minimum": 0,
                "description": "Cursor to begin at (default: the last keys sent)",
            },
            "timeout_s": {**_TIMEOUT, "description": "Seconds to wait (default 30; 0 looks now)"},
        },
        required=("pane_id",),
        hints={"read_only_hint": True},
        may_take_long=lambda _arguments: True,
    ),
    Tool(
        "tmux_kill_pane",
        "End a pane: its program, everything that program started, and the pane with its output.",
        kill_pane,
        {
            "pane_id": _PANE_ID,
            "signal": {
                "type": "string",
                "description": "Signal to begin with (default SIGHUP and SIGTERM); SIGKILL follows after 500 ms",
            },
        },
        required=("pane_id",),
        hints={"destructive_hint": True},
    ),
    Tool(
        "tmux_list_panes",
        "List all panes as JSON: id, name, status (running or exited), command, exit code or signal, run time, "
        "foreground program.",
        list_panes,
        hints={"read_only_hint": True},
    ),
)

TOOLSET = Toolset("debug", TOOLS, INSTRUCTIONS)
