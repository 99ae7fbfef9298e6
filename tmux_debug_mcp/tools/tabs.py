"""The toolset `tabs`: specs 000 and 002, a shell in each tab and a log that outlives it.

A tab is a window of tmux and has its id, such as `@3`. A tab that was closed and those of earlier
server runs are read as `RUN/@3`. Results are one block of compact JSON: what the specs want, and
more where it helps. With a socket, tabs are windows of the user's own tmux server: see `UsersTabs`.
"""

import contextlib
import os
import signal
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from tmux_debug_mcp.errors import ArgumentError, PaneNotFoundError
from tmux_debug_mcp.logs.reading import read_chunk, read_last_lines
from tmux_debug_mcp.panes.creation import NewPane, check, interactive_shell
from tmux_debug_mcp.panes.engine import Engine
from tmux_debug_mcp.panes.looking.terminal import PROMPT_SOON_S
from tmux_debug_mcp.panes.names import check_name
from tmux_debug_mcp.panes.pane import Pane
from tmux_debug_mcp.panes.readable import Readable
from tmux_debug_mcp.panes.running.runs import run_in_turn
from tmux_debug_mcp.panes.sending import send
from tmux_debug_mcp.panes.shells.pane_shell import MAX_INTERRUPTS_S
from tmux_debug_mcp.panes.stopping import stop
from tmux_debug_mcp.panes.waiting.wait import EARLY_DEATH_S, rest
from tmux_debug_mcp.settings import Settings
from tmux_debug_mcp.vt.steps import command_lines

from . import sentences
from .tabs_arguments import (
    MAX_CHUNK_BYTES,
    TAB_ID,
    CloseTab,
    CreateTab,
    ExecuteCommand,
    ReadLogs,
    SetHistoryLimit,
    StartProcess,
    StopProcess,
    StreamLogs,
)
from .tabs_results import advice, answer, clean_output, compact, ran, raw_output, tab_row
from .toolset import (
    CREATES,
    DESTROYS,
    READS,
    Answer,
    NoArguments,
    Tool,
    Toolset,
    came_out,
    may_kill,
    started,
)
from .users_tabs import MAX_LOG_CHARACTERS, UsersTabs

INSTRUCTIONS = (
    "Terminal tabs, each with a shell of its own that keeps directory and variables. "
    "execute_command runs a command to its end and returns its output; start_process starts one "
    "that goes on, such as a server, in a tab of its own. read_logs_from_tab shows what a tab "
    "printed last. Logs stay when a tab or this server ends: list_tabs shows the tabs of earlier "
    "runs as RUN/@N."
)

USERS_INSTRUCTIONS = (
    "Terminal tabs: the windows of the user's own tmux server. start_process types a command into "
    "one, read_logs_from_tab shows the last lines that tmux keeps of it, and stop_process stops "
    "what runs in its shell. Nothing there is logged: stream_logs_from_tab reads kept logs of "
    "earlier runs only, as RUN/@N."
)

_TURN_S = 10.0
_MAX_EARLIER_TABS = 20


class Tabs:
    """The handlers of `tabs` on our own tmux server.

    Those that take a tab may raise PaneNotFoundError, and ArgumentError where it has ended, or
    where several runs had a tab of its id. What else `panes` raises comes through.

    Args:
        engine: The engine.

    Attributes:
        users: The handlers on the user's tmux server, None where we work on ours.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.users: UsersTabs | None = None
        if engine.users_server:
            self.users = UsersTabs(engine.users_server, engine.settings)

    async def create_tab(self, arguments: CreateTab) -> Answer:
        """Start a shell in a new tab.

        Raises:
            ArgumentError: The name, the directory or the variables can't be used.
            PaneLimitError: There are as many tabs as there may be, and all run.
        """
        shell = interactive_shell(self._engine.settings)
        program = [shell]
        if arguments.login:
            program.append("-l")
        name = os.path.basename(shell) if arguments.name is None else arguments.name
        check_name(name, ids=TAB_ID)
        new = NewPane(
            " ".join(program),
            name,
            cwd=arguments.cwd,
            env=arguments.env or {},
            program=program,
            is_shown=True,
        )
        check(new)
        pane = await self._engine.create(new)
        state = await rest(pane, EARLY_DEATH_S)
        result = {"window_id": pane.window, "name": pane.name}
        if not state.is_running:
            result["note"] = f"It has ended: {state}."
        return answer(pane.window, result, outcome=started(state))

    async def list_tabs(self, _arguments: NoArguments) -> Answer:
        """Return the tabs, those of earlier runs behind the others."""
        engine = self._engine
        active = await engine.host.active_windows()
        first_panes = {pane.window: pane for pane in reversed(engine.panes)}
        tabs = [
            tab_row(pane, await pane.state(), is_active=pane.window in active)
            for pane in reversed(first_panes.values())
        ]
        kept = engine.archive.earlier() if engine.archive else ()
        earlier = [
            {
                "window_id": f"{run}/{entry.window}",
                "name": entry.name,
                "active": False,
                "status": "exited",
            }
            for run, entry in kept
        ]
        result: dict[str, Any] = {"tabs": tabs + earlier[:_MAX_EARLIER_TABS]}
        if len(earlier) > _MAX_EARLIER_TABS:
            result["earlier_tabs_not_shown"] = len(earlier) - _MAX_EARLIER_TABS
        return Answer([compact(result | self._diagnostics())])

    def _diagnostics(self) -> dict[str, str]:
        """Return what a person may want to know of our tmux server and our logs."""
        facts = {}
        if self._engine.archive:
            facts["log_dir"] = str(self._engine.archive.directory)
        client = self._engine.host.client
        if client:
            facts["tmux"] = client.version
            facts["socket"] = f"{client.directory}/tmux"
        return facts

    async def read_logs(self, arguments: ReadLogs) -> Answer:
        """Return the last lines of a tab's log."""
        readable_id = self._readable_id(arguments.window_id)
        async with self._engine.open_readable(readable_id) as tab:
            gaps = await _gaps(tab)
            end = (await tab.state()).cursor
            found, is_cut = await read_last_lines(
                tab.log, end, arguments.lines, MAX_LOG_CHARACTERS, is_raw=not arguments.strip_ansi
            )
        content = "\n".join(found)
        result = {"content": content, "returned_lines": len(found), "truncated": is_cut}
        return answer(arguments.window_id, result | gaps, content)

    async def execute_command(self, arguments: ExecuteCommand) -> Answer:
        """Run a command in a tab's shell and return its output."""
        check(NewPane(arguments.command))
        pane = self._tab(arguments.window_id)
        timeout_s = arguments.timeout_ms / 1000
        show = clean_output if arguments.strip_ansi else raw_output
        outcome = await run_in_turn(pane, arguments.command, timeout_s, show)
        came = came_out(outcome.reason, outcome.state, outcome.exit_code)
        return answer(pane.window, ran(pane, outcome, timeout_s), outcome.excerpt.text, came)

    async def start_process(self, arguments: StartProcess) -> Answer:
        """Type a command into a tab."""
        check(NewPane(arguments.command))
        pane = self._tab(arguments.window_id)
        text = arguments.command.replace("\r\n", "\n").rstrip("\n")
        lines = command_lines(text, enters=int(arguments.append_newline))
        async with pane.shell.turn(_TURN_S):
            foreground = (await pane.state()).foreground or "a program"
            is_shell = await pane.terminal.prompt(PROMPT_SOON_S) is not None
            sent = await send(pane, lines)
        remarks = []
        if sent.why_not:
            remarks.append(f"Line {sent.done + 1} was not typed: {sent.why_not}.")
        if not arguments.append_newline:
            remarks.append("Enter was not pressed.")
        if not is_shell:
            remarks.append(f"It was typed into {foreground}, which is in the foreground.")
        result: dict[str, Any] = {"started": True}
        if remarks:
            result["note"] = " ".join(remarks)
        return answer(pane.window, result)

    async def stop_process(self, arguments: StopProcess) -> Answer:
        """Stop what runs in the foreground of a tab."""
        pane = self._tab(arguments.window_id)
        number = signal.Signals[arguments.signal]
        reason = await stop(pane, number, advice(number))
        if reason is None:
            return answer(pane.window, {"success": True})
        return answer(pane.window, {"success": False, "note": f"Not stopped: {reason}."})

    async def stream_logs(self, arguments: StreamLogs) -> Answer:
        """Return the next bytes of a tab's log.

        Raises:
            ArgumentError: The offset is beyond the log's end.
        """
        start, max_bytes = arguments.from_byte, arguments.max_bytes
        readable_id = self._readable_id(arguments.window_id)
        async with self._engine.open_readable(readable_id) as tab:
            gaps = await _gaps(tab)
            state = await tab.state()
            if start > tab.log.size:
                raise ArgumentError(
                    f"Parameter 'from_byte' is {start}, and the log has {state.cursor} bytes. "
                    f"Give at most {state.cursor}."
                )
            piece = await read_chunk(
                tab.log,
                start,
                state.cursor,
                max_bytes,
                is_raw=not arguments.strip_ansi,
                is_final=state.is_final,
            )
        is_end = not piece.remaining_bytes
        next_byte = piece.end
        if state.is_final and is_end:  # what is unfinished when a program ends stays so
            next_byte = max(next_byte, state.cursor)
        result: dict[str, Any] = {"chunk": piece.text, "next_byte": next_byte, "eof": is_end}
        if piece.start > start:
            result["skipped_bytes"] = piece.start - start
        return answer(arguments.window_id, result | gaps, piece.text)

    async def set_history_limit(self, arguments: SetHistoryLimit) -> Answer:
        """Set how many lines of scrollback the tabs that are to come keep."""
        await self._engine.host.set_history_limit(arguments.limit)
        note = "It holds for tabs that are created from now on."
        return Answer([compact({"success": True, "note": note})])

    async def close_tab(self, arguments: CloseTab) -> Answer:
        """End a tab and all that runs in it."""
        engine = self._engine
        tab = self._tab(arguments.window_id)
        state = await engine.kill(tab)
        for pane in engine.panes_in(tab.window):  # of a window that was split
            with contextlib.suppress(PaneNotFoundError):  # it was killed meanwhile
                await engine.kill(pane)
        result: dict[str, Any] = {"success": True, "ended": str(state)}
        if engine.archive:
            result["log"] = f"{engine.archive.run}/{tab.window}"
        return answer(tab.window, result, outcome=came_out("killed", state))

    def _own_id(self, window_id: str) -> str:
        """Return the id of a tab of this run without the run."""
        archive = self._engine.archive
        return window_id.removeprefix(f"{archive.run}/") if archive else window_id

    def _find(self, window_id: str) -> Pane | None:
        own = self._own_id(window_id)
        return next((pane for pane in self._engine.panes if pane.window == own), None)

    def _tab(self, window_id: str) -> Pane:
        """Return the tab of an id, to be used.

        Raises:
            ArgumentError: It has ended.
            PaneNotFoundError: There is none.
        """
        pane = self._find(window_id)
        if pane:
            return pane
        archive = self._engine.archive
        is_of_earlier_run = archive is not None and bool(archive.runs_with(window_id))
        if "/" in window_id or is_of_earlier_run:
            raise ArgumentError(
                f"Tab '{window_id[:80]}' has ended, and at best its log is left. Use "
                "read_logs_from_tab, or create_tab to make another."
            )
        raise PaneNotFoundError(window_id)

    def _readable_id(self, window_id: str) -> str:
        """Return what the engine calls a tab; an id without a run means the only one of all runs.

        Raises:
            ArgumentError: Several runs had a tab of this id.
            PaneNotFoundError: There is none.
        """
        _, slash, own = window_id.rpartition("/")
        if not TAB_ID.fullmatch(own):
            raise PaneNotFoundError(window_id)
        pane = self._find(window_id)
        if pane:
            return pane.id
        if slash:
            return window_id
        archive = self._engine.archive
        if archive is None:
            raise PaneNotFoundError(window_id)
        if archive.has(f"{archive.run}/{own}"):
            return f"{archive.run}/{own}"
        runs = archive.runs_with(own)
        if len(runs) > 1:
            ids = ", ".join(f"{run}/{own}" for run in runs[:_MAX_EARLIER_TABS])
            raise ArgumentError(f"Several runs had a tab '{own}': {ids}. Give one of these.")
        if not runs:
            raise PaneNotFoundError(window_id)
        return f"{runs[0]}/{own}"


async def _gaps(tab: Readable) -> dict[str, str]:
    """Return a note on output that is not in the log."""
    await tab.ensure_log_writer()
    if tab.has_gaps:
        return {"note": "Some output was lost: there was no room for it."}
    return {}


A = TypeVar("A")


def _either(
    own: Callable[[Tabs, A], Awaitable[Answer]],
    users: Callable[[UsersTabs, A], Awaitable[Answer]],
) -> Callable[[Tabs, A], Awaitable[Answer]]:
    """Return the handler that takes a call to our own tabs, or to those of the user's tmux server.

    Kept logs are ours in any case.
    """

    async def handle(tabs: Tabs, arguments: A) -> Answer:
        is_kept = "/" in getattr(arguments, "window_id", "")
        if tabs.users is None or is_kept:
            return await own(tabs, arguments)
        return await users(tabs.users, arguments)

    return handle


def _is_ours(settings: Settings) -> bool:
    """Tell whether tabs are on our own tmux server, with logs and options of ours."""
    return not settings.socket


TOOLS = (
    Tool(
        "create_tab",
        "Create a new terminal tab with a shell.",
        _either(Tabs.create_tab, UsersTabs.create_tab),
        CreateTab,
        hints=CREATES,
    ),
    Tool(
        "list_tabs",
        "List all terminal tabs; those of earlier runs, of which only logs are left, as RUN/@N.",
        _either(Tabs.list_tabs, UsersTabs.list_tabs),
        NoArguments,
        hints=READS,
    ),
    Tool(
        "read_logs_from_tab",
        "Read the last lines that a tab printed, also after it ended.",
        _either(Tabs.read_logs, UsersTabs.read_logs),
        ReadLogs,
        hints=READS,
        meta={"anthropic/maxResultSizeChars": 2 * MAX_LOG_CHARACTERS},
    ),
    Tool(
        "execute_command",
        "Run a command to its end in a tab's shell; return its output, without prompt or echo, "
        "and its exit code. If it awaits input, the call returns with `awaits`: answer with "
        "start_process, but have a person type what is hidden, as the note says. On timeout it is "
        f"interrupted with C-c, and gets up to {MAX_INTERRUPTS_S:g} s to end. Commands for one tab "
        "run one after the other.",
        _either(Tabs.execute_command, UsersTabs.execute_command),
        ExecuteCommand,
        hints=DESTROYS,
        is_offered=_is_ours,
        may_take_long=lambda _arguments: True,
    ),
    Tool(
        "start_process",
        "Type a command that goes on, such as a server, into a tab; returns at once. Read what it "
        "prints with read_logs_from_tab.",
        _either(Tabs.start_process, UsersTabs.start_process),
        StartProcess,
        hints=DESTROYS,
        may_take_long=lambda _arguments: True,
    ),
    Tool(
        "stop_process",
        "Stop what runs in the foreground of a tab, and tell whether it stopped; the shell stays.",
        _either(Tabs.stop_process, UsersTabs.stop_process),
        StopProcess,
        hints=DESTROYS,
    ),
    Tool(
        "stream_logs_from_tab",
        "Read a tab's log on from a byte offset, oldest first; go on from next_byte. Offsets stay "
        "good when the tab or the server ends.",
        _either(Tabs.stream_logs, UsersTabs.stream_logs),
        StreamLogs,
        hints=READS,
        meta={"anthropic/maxResultSizeChars": 2 * MAX_CHUNK_BYTES},
    ),
    Tool(
        "set_history_limit",
        "Set how many lines tmux keeps of each tab for a person who scrolls; logs are kept apart "
        "from that. Holds for tabs created from then on.",
        _either(Tabs.set_history_limit, UsersTabs.set_history_limit),
        SetHistoryLimit,
        hints=CREATES,
        is_offered=_is_ours,
    ),
    Tool(
        "close_tab",
        "Close a tab and end all that runs in it. Its log can still be read.",
        _either(Tabs.close_tab, UsersTabs.close_tab),
        CloseTab,
        hints=DESTROYS,
        is_offered=may_kill,
    ),
)

TOOLSET = Toolset(
    "tabs",
    Tabs,
    TOOLS,
    INSTRUCTIONS,
    sentences.TABS,
    users_instructions=USERS_INSTRUCTIONS,
    keeps_logs=True,
    uses_socket=True,
)
