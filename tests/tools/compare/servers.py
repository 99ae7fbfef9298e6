"""MCP servers of others, as their tools were in the versions that docs/comparison.md names."""

import json
import re
import time

from .mcp_server import McpServer
from .tools import (
    COLUMNS,
    LOOK_S,
    REACT_S,
    ROWS,
    NotOfferedError,
    Ran,
    ending_in_shell,
    run_by_marker,
)

# How many rows the windows of wrapix' server have.
_WRAPIX_ROWS = 50


class _InShells(McpServer):
    """A server whose terminals are shells, into which commands are typed."""

    def _shell(self) -> str:
        raise NotImplementedError

    def open(self, command: str, name: str = "") -> str:
        """Type it into the shell of a new terminal, so that its end can be read."""
        if name:
            raise NotOfferedError
        terminal = self._shell()
        time.sleep(LOOK_S)
        self.enter(terminal, *command.split("\n"))
        time.sleep(REACT_S)
        return terminal

    def ending(self, terminal: str) -> str:
        """Ask the shell that started it."""
        return ending_in_shell(self, terminal)

    def run(self, command: str, terminal: str = "", timeout_s: float = 10.0) -> Ran:
        """Type it with a marker behind."""
        return run_by_marker(self, command, terminal or self._shell(), timeout_s)


class Wrapix(McpServer):
    """taheris/wrapix, lib/mcp/tmux: the five tools that this project began with."""

    title = "wrapix tmux-mcp"

    def open(self, command: str, name: str = "") -> str:
        """Start it in a pane."""
        named = {"name": name} if name else {}
        text = self.text("tmux_create_pane", command=command, **named)
        found = re.search(r"debug-\d+", text)
        assert found
        time.sleep(REACT_S)
        return found[0]

    def type(self, terminal: str, text: str) -> None:
        """Send it."""
        self.call("tmux_send_keys", pane_id=terminal, keys=text)

    def press(self, terminal: str, key: str) -> None:
        """Send it by the name that it has there."""
        name = f"^{key[-1].upper()}" if key.startswith("C-") else key
        self.call("tmux_send_keys", pane_id=terminal, keys=name)

    def read(self, terminal: str) -> str:
        """Capture as many lines as it gives."""
        return self.text("tmux_capture_pane", pane_id=terminal, lines=1000).rstrip()

    def screen(self, terminal: str) -> str:
        """Capture one line, and get the rows of the screen behind it."""
        text = self.text("tmux_capture_pane", pane_id=terminal, lines=1)
        return "\n".join(text.removesuffix("\n").split("\n")[-_WRAPIX_ROWS:]).rstrip()

    def news(self, terminal: str) -> str:
        """Capture the newest lines."""
        return self.text("tmux_capture_pane", pane_id=terminal, lines=ROWS).rstrip()

    def ending(self, terminal: str) -> str:
        """Look into the list, which says whether it has exited."""
        rows = self.text("tmux_list_panes").split("\n")
        return "exited" if any(terminal in row and "exited" in row for row in rows) else ""

    def run(self, command: str, terminal: str = "", timeout_s: float = 10.0) -> Ran:
        """Type it into a shell with a marker behind."""
        return run_by_marker(self, command, terminal or self.open("bash --norc"), timeout_s)

    def end(self, terminal: str) -> None:
        """Kill the pane."""
        self.call("tmux_kill_pane", pane_id=terminal)


class Nickgnd(_InShells):
    """nickgnd/tmux-mcp."""

    title = "nickgnd/tmux-mcp"

    def _shell(self) -> str:
        created = self.text("create-session", name=f"s{time.monotonic_ns()}")
        session = _first(r'"id":\s*"(\$\d+)"', created)
        window = _first(r'"id":\s*"(@\d+)"', self.text("list-windows", sessionId=session))
        return _first(r'"id":\s*"(%\d+)"', self.text("list-panes", windowId=window))

    def type(self, terminal: str, text: str) -> None:
        """Send it without Enter."""
        self.call("execute-command", paneId=terminal, command=text, rawMode=True, noEnter=True)

    def press(self, terminal: str, key: str) -> None:
        """Send it by its name. What it does not know without Enter comes with one."""
        has_enter = key.startswith("C-")
        self.call(
            "execute-command", paneId=terminal, command=key, noEnter=not has_enter, rawMode=True
        )

    def enter(self, terminal: str, *lines: str) -> None:
        """Send them with Enter."""
        for line in lines:
            self.call("execute-command", paneId=terminal, command=line, rawMode=True)

    def read(self, terminal: str) -> str:
        """Capture many lines."""
        return self.text("capture-pane", paneId=terminal, lines="50000").rstrip()

    def screen(self, terminal: str) -> str:
        """Capture no line of the history, which leaves the screen."""
        return self.text("capture-pane", paneId=terminal, lines="0").rstrip()

    def news(self, terminal: str) -> str:
        """Capture the newest lines."""
        return self.text("capture-pane", paneId=terminal, lines=str(ROWS)).rstrip()

    def run(self, command: str, terminal: str = "", timeout_s: float = 10.0) -> Ran:
        """Use the tool for it, and ask for the result until it is there."""
        shell = terminal or self._shell()
        told = self.text("execute-command", paneId=shell, command=command)
        number = _first(r"([0-9a-f]{8}-[0-9a-f-]{27})", told)
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            # Bnomei's server gives up a command whose result is asked for at once.
            time.sleep(LOOK_S)
            ran = self._result(number)
            if ran:
                return ran
        return Ran("", None, has_ended=False)

    def run_elsewhere(self, command: str, terminal: str) -> Ran:
        """Use the same tool."""
        return self.run(command, terminal)

    def _result(self, number: str) -> Ran | None:
        """Return what came of a command; None as long as it runs."""
        told = self.text("get-command-result", commandId=number)
        found = re.search(r"Exit code: (\d+)", told)
        output = told.partition("--- Output ---\n")[2]
        return Ran(output.rstrip(), int(found[1])) if found else None

    def end(self, terminal: str) -> None:
        """Kill the pane."""
        self.call("kill-pane", paneId=terminal)


class Bnomei(Nickgnd):
    """bnomei/tmux-mcp."""

    title = "bnomei/tmux-mcp"

    def type(self, terminal: str, text: str) -> None:
        """Send it literally."""
        self.call("send-keys", paneId=terminal, keys=text, literal=True)

    def press(self, terminal: str, key: str) -> None:
        """Send it by its name."""
        self.call("send-keys", paneId=terminal, keys=key)

    def read(self, terminal: str) -> str:
        """Capture many lines, with wrapped ones joined."""
        return self.text("capture-pane", paneId=terminal, lines=50_000, join=True).rstrip()

    def screen(self, terminal: str) -> str:
        """Capture from the first row of the screen on."""
        return self.text("capture-pane", paneId=terminal, start=0).rstrip()

    def news(self, terminal: str) -> str:
        """Capture the newest lines."""
        return self.text("capture-pane", paneId=terminal, lines=ROWS).rstrip()

    def _result(self, number: str) -> Ran | None:
        told = json.loads(self.text("get-command-result", commandId=number))
        if told.get("status") == "pending":
            return None
        return Ran(str(told.get("output") or "").rstrip(), told.get("exitCode"))


class NightTrek(_InShells):
    """NightTrek/Terminally-mcp."""

    title = "Terminally-mcp"

    def _shell(self) -> str:
        return _first(r"(@\d+)", self.text("create_tab", name=f"t{time.monotonic_ns()}"))

    def type(self, terminal: str, text: str) -> None:
        """Start it as a process, but without Enter."""
        self.call("start_process", window_id=terminal, command=text, append_newline=False)

    def press(self, terminal: str, key: str) -> None:
        """Only Enter and C-c can be pressed."""
        if key == "C-c":
            self.call("stop_process", window_id=terminal)
        elif key == "Enter":
            self.enter(terminal, "")
        else:
            raise NotOfferedError

    def enter(self, terminal: str, *lines: str) -> None:
        """Start them as processes."""
        for line in lines:
            self.call("start_process", window_id=terminal, command=line)

    def read(self, terminal: str) -> str:
        """Read many lines."""
        text = self.text("read_logs_from_tab", window_id=terminal, lines=50_000, strip_ansi=True)
        return str(json.loads(text).get("content", "")).rstrip()

    def screen(self, terminal: str) -> str:
        """Read as few lines as it gives: one, and the rows of the screen."""
        return self._newest(terminal, 1)

    def news(self, terminal: str) -> str:
        """Read the newest lines."""
        return self._newest(terminal, ROWS)

    def _newest(self, terminal: str, lines: int) -> str:
        text = self.text("read_logs_from_tab", window_id=terminal, lines=lines, strip_ansi=True)
        return str(json.loads(text).get("content", "")).rstrip()

    def run(self, command: str, terminal: str = "", timeout_s: float = 10.0) -> Ran:
        """Use the tool for it."""
        shell = terminal or self._shell()
        text = self.text(
            "execute_command",
            window_id=shell,
            command=command,
            timeout_ms=int(timeout_s * 1000),
            strip_ansi=True,
        )
        return Ran(str(json.loads(text).get("output", "")).rstrip(), None)

    def run_elsewhere(self, command: str, terminal: str) -> Ran:
        """Use the same tool."""
        return self.run(command, terminal)


class Ellery(_InShells):
    """elleryfamilia/terminal-mcp."""

    title = "elleryfamilia/terminal-mcp"

    def _shell(self) -> str:
        text = self.text("createSession", cols=COLUMNS, rows=ROWS)
        return str(json.loads(text)["sessionId"])

    def type(self, terminal: str, text: str) -> None:
        """Type it."""
        self.call("type", sessionId=terminal, text=text)

    def press(self, terminal: str, key: str) -> None:
        """Send it by its name."""
        names = {"C-c": "Ctrl+C", "C-d": "Ctrl+D", "Up": "ArrowUp"}
        self.call("sendKey", sessionId=terminal, key=names.get(key, key))

    def read(self, terminal: str) -> str:
        """Get its whole buffer."""
        return self.text("getContent", sessionId=terminal).rstrip()

    def screen(self, terminal: str) -> str:
        """Take its picture as text."""
        return self.text("getContent", sessionId=terminal, visibleOnly=True).rstrip()

    def end(self, terminal: str) -> None:
        """Destroy the session."""
        self.call("destroySession", sessionId=terminal)


def _first(pattern: str, text: str) -> str:
    found = re.search(pattern, text)
    assert found, text
    return found[1]
