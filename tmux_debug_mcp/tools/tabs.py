"""The toolset `tabs`: specs 000 and 002, a shell in each tab and a log that outlives it.

A tab is a tmux window and has its id, such as `@3`. Closed tabs and those of earlier server runs
are read as `RUN/@3`. Results are one block of compact JSON: what the specs want, and more where it
helps. With a socket, tabs are windows of the user's own tmux server: see `UsersTabs`.
"""

import os
from dataclasses import replace
from signal import Signals
from typing import Annotated, Any, Literal

from tmux_debug_mcp import errors
from tmux_debug_mcp.logs.excerpts import Excerpt
from tmux_debug_mcp.logs.reading import read_chunk, read_end, read_last_lines
from tmux_debug_mcp.panes.creation import (
    NewPane,
    check_command,
    check_name,
    interactive_shell,
)
from tmux_debug_mcp.panes.engine import Engine
from tmux_debug_mcp.panes.looking.activity import Awaits
from tmux_debug_mcp.panes.pane import Pane
from tmux_debug_mcp.panes.prompts import AtPrompt, prompt
from tmux_debug_mcp.panes.readable import Readable
from tmux_debug_mcp.panes.reports import Reason, Report
from tmux_debug_mcp.panes.running.giving import MAX_INTERRUPTS_S, MAX_WAITING, reserved_shell
from tmux_debug_mcp.panes.running.runs import run_in_shell
from tmux_debug_mcp.panes.sending import send
from tmux_debug_mcp.panes.stopping import stop
from tmux_debug_mcp.panes.watching import rest
from tmux_debug_mcp.settings import Settings
from tmux_debug_mcp.tmux.host import MAX_HISTORY_LINES

from .arguments import Directory, Variables, argument, short_name, string, whole
from .toolset import (
    CREATES,
    DESTROYS,
    READS,
    Answer,
    Toolset,
    ask_a_person,
    came_out,
    json_answer,
    may_kill,
    run_remark,
    started,
    state_facts,
)
from .users_tabs import (
    MAX_LOG_CHARACTERS,
    TAB_ID,
    UsersTabs,
    lines_of,
    noted,
    typing_remarks,
)

INSTRUCTIONS = (
    "Terminal tabs, each with a shell of its own that keeps directory and variables. "
    "execute_command runs a command to its end and returns its output; start_process starts one "
    "that goes on, such as a server, in a tab of its own. read_logs_from_tab shows what a tab "
    "printed last. Logs stay when a tab or this server ends: list_tabs shows the tabs of the last "
    "run as RUN/@N, and how many tabs of earlier runs there are."
)

USERS_INSTRUCTIONS = (
    "Terminal tabs: the windows of the user's own tmux server. start_process types a command into "
    "one, read_logs_from_tab shows the last lines that tmux keeps of it, and stop_process stops "
    "what runs in its shell. Nothing there is logged: stream_logs_from_tab reads kept logs of "
    "earlier runs only, as RUN/@N."
)

_IF_BUSY = (
    "If it awaits input, answer with start_process. Or stop it with stop_process, or use another "
    "tab."
)
WORDS = errors.Words(
    pane="tab",
    argument="window_id",
    list="list_tabs",
    create="create_tab",
    read="read_logs_from_tab",
    send="start_process",
    kill="close_tab",
    interrupt="stop_process",
    if_busy=_IF_BUSY,
    if_running=_IF_BUSY,
)

MAX_CHUNK_BYTES = 1 << 20
MAX_OUTPUT_CHARACTERS = 40_000
_MAX_EARLIER_TABS = 20
_TIMED_OUT = (
    Reason.TIMED_OUT,
    Reason.RUNNING,
    Reason.HELD,
    Reason.LATE,
    Reason.SHELL_INTERRUPTED,
)


class Tabs:
    """The tabs on our own tmux server.

    Attributes:
        engine: The engine.
        users: The tabs on the user's tmux server instead, None if we work on ours.
    """

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.users: UsersTabs | None = None
        if engine.users_server:
            self.users = UsersTabs(engine.users_server, engine.settings)

    def users_for(self, window_id: str) -> UsersTabs | None:
        """Return the user's tabs if a call about this tab is for them; kept logs are ours."""
        return None if "/" in window_id else self.users

    def _find(self, window_id: str) -> Pane | None:
        archive = self.engine.archive
        own = window_id.removeprefix(f"{archive.run}/") if archive else window_id
        return next((pane for pane in self.engine.panes if pane.window == own), None)

    def usable(self, window_id: str) -> Pane:
        """Return the tab with this id, for use.

        Raises:
            ArgumentError: It has ended, or another server has it.
            PaneNotFoundError: There is none.
        """
        pane = self._find(window_id)
        if pane:
            return pane
        archive = self.engine.archive
        if archive is None or not ("/" in window_id or archive.runs_with(window_id)):
            raise errors.PaneNotFoundError(window_id)
        kept = archive.find(self.readable_id(window_id))
        kept.log.close()
        state = "has ended; only its log is left"
        if kept.is_held and not kept.target.startswith(f"{archive.run}/"):
            state = "belongs to another server, which still runs; here, it can only be read"
        raise errors.ArgumentError(
            f"Tab '{window_id[:80]}' {state}. Use read_logs_from_tab, or create_tab to make "
            "another."
        )

    def readable_id(self, window_id: str) -> str:
        """Return the engine's id of a tab; without a run, of this run's tab, else of the only one.

        Raises:
            ArgumentError: Several earlier runs had a tab with this id.
            PaneNotFoundError: There is none.
        """
        _, slash, own = window_id.rpartition("/")
        if not TAB_ID.fullmatch(own):
            raise errors.PaneNotFoundError(window_id)
        pane = self._find(window_id)
        if pane:
            return pane.id
        if slash:
            return window_id
        archive = self.engine.archive
        if archive is None:
            raise errors.PaneNotFoundError(window_id)
        if archive.has(f"{archive.run}/{own}"):
            return f"{archive.run}/{own}"
        runs = archive.runs_with(own)
        if len(runs) > 1:
            ids = ", ".join(f"{run}/{own}" for run in runs[:_MAX_EARLIER_TABS])
            raise errors.ArgumentError(f"Several runs had a tab '{own}': {ids}. Give one of these.")
        if not runs:
            raise errors.PaneNotFoundError(window_id)
        return f"{runs[0]}/{own}"


def _is_ours(settings: Settings) -> bool:
    """Tell whether tabs are on our own tmux server, with our logs and options."""
    return not settings.socket


_Tab = Annotated[str, string("Tab id, e.g. @3")]
_ReadableTab = Annotated[str, string("Tab id, e.g. @3; of an earlier run, RUN/@3")]
_StripAnsi = Annotated[bool, argument("Remove ANSI sequences (default false)")]

TOOLSET = Toolset(
    "tabs",
    Tabs,
    INSTRUCTIONS,
    USERS_INSTRUCTIONS,
    WORDS,
    keeps_logs=True,
    uses_socket=True,
)


@TOOLSET.tool("create_tab", "Create a new terminal tab with a shell.", CREATES)
async def create_tab(
    tabs: Tabs,
    name: Annotated[str | None, short_name("Name for the tab")] = None,
    cwd: Directory = None,
    env: Variables = None,
    login: Annotated[
        bool | None, argument("Start a login shell, which reads the user's profile")
    ] = None,
) -> Answer:
    if tabs.users:
        return await tabs.users.create_tab(name, cwd, env or {}, login=login)
    shell = interactive_shell(tabs.engine.origin.env)
    program = [shell, "-l"] if login else [shell]
    if name is None:
        name = os.path.basename(shell)
    check_name(name, ids=TAB_ID)
    new = NewPane(
        " ".join(program),
        name,
        cwd=cwd,
        env=env or {},
        program=program,
        is_shown=True,
    )
    pane = await tabs.engine.create(new)
    state = await rest(pane, pane.clock.times.early_death_s)
    result = {"window_id": pane.window, "name": pane.name}
    if not state.is_running:
        result["note"] = f"It has ended: {state}."
    return json_answer(pane.window, result, outcome=started(state))


@TOOLSET.tool(
    "list_tabs",
    "List all terminal tabs; those of the last run, of which only logs are left, as RUN/@N.",
    READS,
)
async def list_tabs(tabs: Tabs) -> Answer:
    if tabs.users:
        return await tabs.users.list_tabs()
    engine = tabs.engine
    active = await engine.host.active_windows()
    first_panes = {pane.window: (pane, state) for pane, state in reversed(await engine.states())}
    shown = []
    for pane, state in reversed(first_panes.values()):
        row = {
            "window_id": pane.window,
            "name": pane.name,
            "active": pane.window in active,
            "status": "running" if state.is_running else "exited",
            **state_facts(state),
        }
        if state.awaits is Awaits.HIDDEN_INPUT:
            row["note"] = ask_a_person(pane)
        shown.append(row)
    # Of the last run, since those of all runs would make most of each list.
    latest, others = engine.archive.latest(_MAX_EARLIER_TABS) if engine.archive else ([], 0)
    last = [
        {
            "window_id": f"{run}/{entry.window}",
            "name": entry.name,
            "active": False,
            "status": "exited",
        }
        for run, entry in latest
    ]
    result: dict[str, Any] = {"tabs": shown + last}
    if others:
        result["earlier_tabs_not_shown"] = others
    if engine.archive:
        result["log_dir"] = str(engine.archive.directory)
    client = engine.host.client
    if client:
        result["tmux"] = client.version
        result["socket"] = f"{client.directory}/tmux"
    return json_answer(None, result)


@TOOLSET.tool(
    "read_logs_from_tab",
    "Read the last lines that a tab printed, also after it ended. Commands of execute_command are "
    "shown as given.",
    READS,
    meta={"anthropic/maxResultSizeChars": 2 * MAX_LOG_CHARACTERS},
)
async def read_logs(
    tabs: Tabs,
    window_id: _ReadableTab,
    lines: Annotated[int, whole("Lines from the end (default 500)", minimum=1)] = 500,
    *,
    strip_ansi: _StripAnsi = False,
) -> Answer:
    users = tabs.users_for(window_id)
    if users:
        return await users.read_logs(window_id, lines, strip_ansi=strip_ansi)
    async with tabs.engine.open_readable(tabs.readable_id(window_id)) as tab:
        gaps = await _gaps(tab)
        end = (await tab.state()).cursor
        found, is_cut = await read_last_lines(
            tab.log, end, lines, MAX_LOG_CHARACTERS, is_raw=not strip_ansi
        )
    content = "\n".join(found)
    result = {"content": content, "returned_lines": len(found), "truncated": is_cut}
    return json_answer(window_id, result | gaps, content)


async def _gaps(tab: Readable) -> dict[str, str]:
    """Return a note if some output is not in the log."""
    await tab.ensure_log_writer()
    if tab.has_gaps:
        return {"note": "Some output was lost: there was no room for it."}
    return {}


@TOOLSET.tool(
    "execute_command",
    "Run a command to its end in a tab's shell; return its output, without prompt or echo, "
    "and its exit code. If it awaits input, the call returns with `awaits`: answer with "
    "start_process, but have a person type what is hidden, as the note says. On timeout it is "
    f"interrupted with C-c, and gets up to {MAX_INTERRUPTS_S:g} s to end. Commands for one tab "
    f"run one after the other, and at most {MAX_WAITING} wait; timeout_ms counts from when the "
    "command's turn comes.",
    DESTROYS,
    may_take_long=True,
    is_offered=_is_ours,
)
async def execute_command(
    tabs: Tabs,
    window_id: _Tab,
    command: Annotated[str, string("Shell command; may have several lines")],
    timeout_ms: Annotated[
        float, argument("Milliseconds to give it (default 10000)", minimum=1, maximum=3_600_000)
    ] = 10_000,
    *,
    strip_ansi: _StripAnsi = False,
) -> Answer:
    users = tabs.users_for(window_id)
    if users:
        reason = "a command's output and exit code can't be determined there"
        await users.refuse(window_id, reason)
    check_command(command)
    pane = tabs.usable(window_id)
    timeout_s = timeout_ms / 1000
    with pane.keeping_log():
        async with reserved_shell(pane):  # each run before it has a timeout of its own
            run = await run_in_shell(pane, command, timeout_s)
        if run.end > run.start:
            run = replace(run, excerpt=await _output(run, is_raw=not strip_ansi))
    came = came_out(run.reason, run.state, run.exit_code)
    return json_answer(pane.window, _ran(run, timeout_s), run.excerpt.text, came)


async def _output(run: Report, *, is_raw: bool) -> Excerpt:
    """Return the end of a command's output."""
    piece = await read_end(run.pane.log, run.start, run.end, MAX_OUTPUT_CHARACTERS, is_raw=is_raw)
    return Excerpt(piece.printed.split("\n"), piece.start - run.start)


def _ran(run: Report, timeout_s: float) -> dict[str, Any]:
    pane = run.pane
    result: dict[str, Any] = {
        "output": run.excerpt.text,
        "timed_out": run.reason in _TIMED_OUT,
    }
    if run.exit_code is not None:
        result["exit_code"] = run.exit_code
    remarks = []
    if run.reason is Reason.INPUT:
        awaits = run.state.awaits or Awaits.KEYS
        result["awaits"] = awaits.value
        if awaits is Awaits.HIDDEN_INPUT:
            remarks.append(
                f"The command keeps running and awaits hidden input; {ask_a_person(pane)}."
            )
        else:
            remarks.append(
                f"The command keeps running and awaits {awaits.value}: answer with start_process, "
                "or stop it with stop_process."
            )
    if run.excerpt.cut_bytes:
        begin = max(run.start, pane.log.kept_from)
        remarks.append(f"The beginning is cut: use stream_logs_from_tab with from_byte {begin}.")
        result |= {"truncated": True, "from_byte": begin, "next_byte": run.end}
        if begin > run.start:
            result["skipped_bytes"] = begin - run.start
            remarks.append(f"The first {begin - run.start} bytes are no longer kept.")
    remark = run_remark(run, timeout_s)
    if remark and run.reason is not Reason.INPUT:
        remarks.append(f"{remark[0].upper()}{remark[1:]}.")
    if not run.state.is_running:
        remarks.append(f"The tab has ended: {run.state}.")
    return noted(result, remarks)


@TOOLSET.tool(
    "start_process",
    "Type a command that goes on, such as a server, into a tab; returns at once. Read what it "
    "prints with read_logs_from_tab.",
    DESTROYS,
    may_take_long=True,
)
async def start_process(
    tabs: Tabs,
    window_id: _Tab,
    command: Annotated[
        str, argument("Shell command, or an answer to what runs there; empty for Enter alone")
    ],
    *,
    append_newline: Annotated[
        bool, argument("Press Enter after it, unless it ends with a line feed (default true)")
    ] = True,
) -> Answer:
    users = tabs.users_for(window_id)
    if users:
        return await users.start_process(window_id, command, append_newline=append_newline)
    pane = tabs.usable(window_id)
    lines = lines_of(command, append_newline=append_newline)
    async with reserved_shell(pane, pane.clock.times.reserve_s):
        foreground = (await pane.state()).foreground or "a program"
        is_shell = await prompt(AtPrompt(pane, pane.clock.times.prompt_soon_s)) is not None
        sent = await send(pane, lines)
    remarks = typing_remarks(lines, None if is_shell else foreground)
    if sent.why_not:
        remarks.insert(0, f"Line {sent.done + 1} was not typed: {sent.why_not}.")
    return json_answer(pane.window, noted({"started": True}, remarks))


@TOOLSET.tool(
    "stop_process",
    "Stop what runs in the foreground of a tab, and tell whether it stopped; the shell stays.",
    DESTROYS,
)
async def stop_process(
    tabs: Tabs,
    window_id: _Tab,
    signal: Annotated[
        Literal["SIGINT", "SIGTERM"], argument("SIGINT, which is C-c (default), or SIGTERM")
    ] = "SIGINT",
) -> Answer:
    number = Signals[signal]
    advice = "close_tab ends all that runs there"
    if number == Signals.SIGINT:
        advice = "SIGTERM may help"
    users = tabs.users_for(window_id)
    if users:
        reason = await users.stop(window_id, number, advice)
    else:
        pane = tabs.usable(window_id)
        window_id = pane.window
        reason = await stop(pane, number, advice)
    if reason is None:
        return json_answer(window_id, {"success": True})
    return json_answer(window_id, {"success": False, "note": f"Not stopped: {reason}."})


@TOOLSET.tool(
    "stream_logs_from_tab",
    "Read a tab's log on from a byte offset, oldest first; go on from next_byte. Offsets stay "
    "good when the tab or the server ends. Without strip_ansi, these are the bytes that the "
    "terminal received: for a command of execute_command, a line that reads it from a file.",
    READS,
    meta={"anthropic/maxResultSizeChars": 2 * MAX_CHUNK_BYTES},
)
async def stream_logs(
    tabs: Tabs,
    window_id: _ReadableTab,
    from_byte: Annotated[int, whole("Offset to start at (default 0)", minimum=0)] = 0,
    max_bytes: Annotated[
        int, whole("Max bytes to read (default 65536)", minimum=1, maximum=MAX_CHUNK_BYTES)
    ] = 65_536,
    *,
    strip_ansi: _StripAnsi = False,
) -> Answer:
    users = tabs.users_for(window_id)
    if users:
        await users.refuse(window_id, "there are no offsets to read from")
    async with tabs.engine.open_readable(tabs.readable_id(window_id)) as tab:
        gaps = await _gaps(tab)
        state = await tab.state()
        if from_byte > tab.log.size:
            raise errors.ArgumentError(
                f"Parameter 'from_byte' is {from_byte}, but the log has {state.cursor} bytes. Give "
                f"at most {state.cursor}."
            )
        piece = await read_chunk(
            tab.log,
            from_byte,
            state.cursor,
            max_bytes,
            is_raw=not strip_ansi,
            is_final=state.is_final,
        )
    is_end = not piece.remaining_bytes
    next_byte = piece.end
    if state.is_final and is_end:  # what is unfinished when a program ends stays so
        next_byte = max(next_byte, state.cursor)
    result: dict[str, Any] = {"chunk": piece.printed, "next_byte": next_byte, "eof": is_end}
    if piece.start > from_byte:
        result["skipped_bytes"] = piece.start - from_byte
    return json_answer(window_id, result | gaps, piece.printed)


@TOOLSET.tool(
    "set_history_limit",
    "Set how many lines tmux keeps of each tab for a person who scrolls; logs are kept apart "
    "from that. Holds for tabs created from then on.",
    CREATES,
    is_offered=_is_ours,
)
async def set_history_limit(
    tabs: Tabs, limit: Annotated[int, whole("Lines", minimum=1, maximum=MAX_HISTORY_LINES)]
) -> Answer:
    if tabs.users:
        raise errors.ToolError(
            "The history limit of the user's own tmux server is the user's option, and was not "
            "changed."
        )
    await tabs.engine.host.set_history_limit(limit)
    note = "It applies to tabs created from now on."
    return json_answer(None, {"success": True, "note": note})


@TOOLSET.tool(
    "close_tab",
    "Close a tab and end all that runs in it. Its log can still be read.",
    DESTROYS,
    is_offered=may_kill,
)
async def close_tab(tabs: Tabs, window_id: _Tab) -> Answer:
    users = tabs.users_for(window_id)
    if users:
        return await users.close_tab(window_id)
    engine = tabs.engine
    tab = tabs.usable(window_id)
    state = await engine.kill(tab)
    await engine.kill_all(engine.panes_in(tab.window))  # of a window that was split
    result: dict[str, Any] = {"success": True, "ended": str(state)}
    if engine.archive:
        result["log"] = f"{engine.archive.run}/{tab.window}"
    return json_answer(tab.window, result, outcome=came_out("killed", state))
