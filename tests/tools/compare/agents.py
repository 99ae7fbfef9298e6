"""How a good agent works with each kind of tool, and what that takes.

A turn is what an agent does before it sees something again: a call of an MCP server; in a shell or
in Python, a script of any length.
"""

import re
import shlex
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from stories.scripts import first_pid, with_pid
from stories.steps import FOUND, Await, Find, Move, Run, Send, Start, call_of

from .mcp_server import CallError, McpServer, text_of
from .ours import Ours
from .results import Effort
from .tasks import Task
from .tools import KEYS, LOOK_S, REACT_S, NotOfferedError, Tool, plain, until

# The longest that a call or a script may take: what clients and shell tools commonly allow.
_MAX_CALL_MINUTES = 2
# How many characters of what a script prints an agent gets. Codex' limit is 10,000 tokens.
_MAX_PRINTED = 40_000
# What an agent gives a script's loop, in which a pattern may be wrong.
_SCRIPT_S = 20.0
# How long a program runs anew whose output was lost.
_AGAIN_S = 8
# What an agent leaves between two calls that look at the same thing.
_PAUSE_S = 2.0


class Agent:
    """An agent with an MCP server, each call of which is a turn."""

    def __init__(self, tool: Tool, task: Task, home: Path) -> None:
        self._tool = tool
        self._task = task
        self._home = home
        self._cwd = shlex.quote(task.story.cwd)
        self._max_s = task.minute_s * _MAX_CALL_MINUTES
        self._script_s = min(self._max_s, _SCRIPT_S)
        self._terminals: dict[str, str] = {}
        self._commands: dict[str, str] = {}
        self._pids: dict[str, str] = {}
        # What the agent was sent of each.
        self._told: defaultdict[str, str] = defaultdict(str)

    def work(self) -> Effort:
        """Work on the task until it is solved, or something can't be learned."""
        begun = time.monotonic()
        missed, wrong, pid = "", 0, ""
        for planned in self._task.story.moves:
            move = with_pid(planned, pid)
            shown = self._answer(self.take, move)
            for _ in range(self._task.looks):
                if _learns(move, shown):
                    break
                shown = self._answer(self.look, move)
            told = first_pid(shown)
            pid = pid or told
            if told and not isinstance(move, Run):
                self._pids.setdefault(move.pane, told)
            if not _learns(move, shown):
                missed = shown or "nothing was shown"
                break
            if move.ending and not isinstance(move, Run):
                ending = self.ending(move.pane) or self.ending(move.pane)
                if not re.search(r"\d|SIG", ending):
                    missed = "how the program ended"
                    break
                wrong += ending not in move.ending
        seconds = time.monotonic() - begun
        return Effort(self._tool.turns, self._tool.received, seconds, missed, wrong)

    def _answer(self, act: Callable[[Move], str], move: Move) -> str:
        """Return what is seen after an action, or how it was refused."""
        try:
            shown = act(move)
        except (CallError, NotOfferedError) as error:
            return str(error)
        if not isinstance(move, Run):
            self._told[move.pane] += f"{shown}\n"
        return shown

    def take(self, move: Move) -> str:
        """Do something, and return what is seen then."""
        tool = self._tool
        match move:
            case Start(pane=pane, command=command):
                self._commands[pane] = command
                self._terminals[pane] = tool.open(f"cd {self._cwd} && {command}")
            case Send(pane=pane, keys=keys):
                for key in keys:
                    self._send(pane, key)
                    time.sleep(LOOK_S)
            case Run(command=command):
                return tool.run(f"cd {self._cwd} && {command}").output
            case Find(pane=pane, pattern=pattern):
                found = self._found(pane, pattern)
                return found if _learns(move, found) else self._found_in_file(pane, pattern)
        return self._seen(move)

    def look(self, move: Move) -> str:
        """Look again."""
        time.sleep(min(_PAUSE_S, self._max_s))
        return self._seen(move)

    def ending(self, pane: str) -> str:
        """Return how a program has ended, an empty text if that can't be told."""
        try:
            return self._tool.ending(self._terminals[pane])
        except (CallError, NotOfferedError):
            return ""

    def _send(self, pane: str, key: str) -> None:
        terminal = self._terminals[pane]
        if key.endswith("\n"):
            self._tool.enter(terminal, key.removesuffix("\n"))
        elif key.startswith("SIG"):
            self._tool.run(f"kill -{key.removeprefix('SIG')} {self._pids[pane]}")
        elif key in KEYS:
            self._tool.press(terminal, key)
        else:
            self._tool.type(terminal, key)

    def _seen(self, move: Move) -> str:
        """Give the program some time, and return what it shows."""
        if isinstance(move, Run):
            return ""
        time.sleep(REACT_S)
        return self._tool.news(self._terminals[move.pane])

    def _found(self, pane: str, pattern: str) -> str:
        """Search what the tool has, or else what it has sent."""
        has_output = self._tool.keeps_output
        printed = self._tool.read(self._terminals[pane]) if has_output else self._told[pane]
        lines = printed.split("\n")
        return "\n".join([line for line in lines if re.search(pattern, line)][-FOUND:])

    def _found_in_file(self, pane: str, pattern: str) -> str:
        """Run the program again, with its output in a file."""
        log = self._home / "log"
        again = f"cd {self._cwd} && timeout {_AGAIN_S} {self._commands[pane]} > {log} 2>&1"
        find = f"grep -E '{pattern}' {log} | tail -n {FOUND}"
        return self._tool.run(f"{again}; {find}", timeout_s=20.0).output


class AgentWithScripts(Agent):
    """An agent that writes scripts, each a turn, in which it can wait and filter."""

    def take(self, move: Move) -> str:
        """Do something."""
        return self._counted(super().take(move))

    def look(self, move: Move) -> str:
        """Look again, after a wait that is a part of the script."""
        return self._counted(self._seen(move))

    def ending(self, pane: str) -> str:
        """Ask how a program has ended."""
        return self._counted(super().ending(pane))

    def _seen(self, move: Move) -> str:
        """Wait for the pattern that the agent expects, where there is one."""
        match move:
            case Start(until=pattern) | Send(until=pattern) | Await(pattern=pattern) if pattern:
                self._wait(self._terminals[move.pane], pattern)
                return _only(self._tool.news(self._terminals[move.pane]), move)
        return super()._seen(move)

    def _wait(self, terminal: str, pattern: str) -> None:
        if self._tool.has_wait:
            self._tool.wait(terminal, pattern, self._script_s)
            return
        until(lambda: bool(re.search(pattern, self._shown(terminal))), self._script_s, LOOK_S)

    def _shown(self, terminal: str) -> str:
        try:
            return self._tool.screen(terminal)
        except NotOfferedError:
            return self._tool.read(terminal)

    def _counted(self, printed: str) -> str:
        """Return as much of what a script prints as the agent gets."""
        half = _MAX_PRINTED // 2
        shown = printed if len(printed) <= _MAX_PRINTED else printed[:half] + printed[-half:]
        self._tool.turns += 1
        self._tool.received += len(shown.encode())
        return shown


class AgentWithOurs(Agent):
    """An agent with this project's tools."""

    def __init__(self, tool: Tool, task: Task, home: Path) -> None:
        super().__init__(tool, task, home)
        # What the last result said of a pane.
        self._facts: dict[str, Mapping[str, Any]] = {}

    def take(self, move: Move) -> str:
        """Call the tool for it."""
        return self._call(*call_of(move, self._task.story.cwd, self._max_s))

    def look(self, move: Move) -> str:
        """Wait on, for the pattern where there is one."""
        if isinstance(move, Run):
            return ""
        pattern = getattr(move, "until", "") or getattr(move, "pattern", "")
        since = self._facts[move.pane]["cursor"]
        how: dict[str, object] = {"idle_s": REACT_S}
        if pattern:
            how = {"pattern": pattern, "since": since}
        if isinstance(move, Start | Send) and move.show:
            how["show"] = move.show
        return self._call("wait", {"pane_id": move.pane, "timeout_s": self._max_s, **how})

    def ending(self, pane: str) -> str:
        """Return what the last result has told; if the program ran then, wait for its end."""
        if self._facts[pane]["status"] == "running":
            self._call("wait", {"pane_id": pane, "timeout_s": self._max_s})
        facts = self._facts[pane]
        ending = facts.get("signal") or facts.get("exit_code")
        return "" if ending is None else str(ending)

    def _call(self, name: str, arguments: Mapping[str, Any]) -> str:
        assert isinstance(self._tool, McpServer)
        result = self._tool.call(f"tmux_{name}", **arguments)
        self._facts[arguments.get("pane_id") or arguments.get("name", "")] = result["_meta"]
        return text_of(result)


def _learns(move: Move, shown: str) -> bool:
    """Return whether an agent learns what it wants to; it reads over escape sequences."""
    return bool(re.search(move.shows, plain(shown)))


def _only(text: str, move: Start | Send | Await) -> str:
    """Return the last lines that the agent wants to see."""
    show = "" if isinstance(move, Await) else move.show
    if not show:
        return text
    return "\n".join([line for line in text.split("\n") if re.search(show, line)][-FOUND:])


def agent_with(tool: Tool, task: Task, home: Path) -> Agent:
    """Return an agent that knows how to use a tool."""
    if isinstance(tool, Ours):
        return AgentWithOurs(tool, task, home)
    kind = Agent if isinstance(tool, McpServer) else AgentWithScripts
    return kind(tool, task, home)
