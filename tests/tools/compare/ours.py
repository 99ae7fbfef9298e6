"""tmux-debug-mcp with its default toolset."""

import json
import shlex
import sys
from collections.abc import Callable, Sequence
from typing import Any

from .mcp_server import McpServer
from .tools import TOGETHER_S, Ran, until


class Ours(McpServer):
    """This project."""

    title = "tmux-debug-mcp"
    has_wait = True
    default_command = shlex.join([sys.executable, "-m", "tmux_debug_mcp"])

    def open(self, command: str, name: str = "") -> str:
        """Start it in a pane."""
        named = {"name": name} if name else {}
        return str(self.call("tmux_create_pane", command=command, **named)["_meta"]["pane_id"])

    def type(self, terminal: str, text: str) -> None:
        """Type it literally."""
        self.call("tmux_send_keys", pane_id=terminal, keys=text, literal=True)

    def press(self, terminal: str, key: str) -> None:
        """Press it by its name."""
        self.call("tmux_send_keys", pane_id=terminal, keys=key)

    def enter(self, terminal: str, *lines: str) -> None:
        """Type the lines as steps of one call."""
        keys = [f"{line}\n" for line in lines]
        self.call("tmux_send_keys", pane_id=terminal, keys=keys, literal=True)

    def submit(self, terminal: str, line: str) -> None:
        """Type it as any line."""
        self.enter(terminal, line)

    def read(self, terminal: str) -> str:
        """Read the log from its beginning, page by page."""
        pages, since = [], 0
        while True:
            result = self.call("tmux_capture_pane", pane_id=terminal, since=since)
            pages.append(result["content"][0]["text"])
            since = result["_meta"]["cursor"]
            if not result["_meta"].get("cut_bytes"):
                return "\n".join(page.removesuffix("\n") for page in pages)

    def screen(self, terminal: str) -> str:
        """Capture the screen."""
        result = self.call("tmux_capture_pane", pane_id=terminal, view="screen")
        return str(result["content"][0]["text"])

    def together(self, commands: Sequence[str], is_over: Callable[[], bool]) -> str:
        """Capture all panes in one call."""
        panes = [self.open(command) for command in commands]
        until(is_over, TOGETHER_S)
        return self.text("tmux_capture_pane", pane_id=panes)

    def wait(self, terminal: str, pattern: str, timeout_s: float) -> bool:
        """Use the tool for it."""
        result = self.call("tmux_wait", pane_id=terminal, pattern=pattern, timeout_s=timeout_s)
        return bool(result["_meta"]["reason"] == "matched")

    def ending(self, terminal: str) -> str:
        """Look into the list."""
        row = self._row(terminal)
        if row["status"] == "running":
            return ""
        return str(row.get("signal") or row.get("exit_code"))

    def left_by(self, command: str) -> str:
        """Look at the status line."""
        return self.text("tmux_wait", pane_id=self.open(command))

    def awaits(self, terminal: str) -> str:
        """Look into the list."""
        return str(self._row(terminal).get("awaits", ""))

    def blocked_on(self, terminal: str) -> str:
        """Look at the status line."""
        return self.text("tmux_wait", pane_id=terminal, idle_s=1.0)

    def run(self, command: str, terminal: str = "", timeout_s: float = 10.0) -> Ran:
        """Use the tool for it."""
        where = {"pane_id": terminal} if terminal else {}
        result = self.call("tmux_run", command=command, timeout_s=timeout_s, **where)
        facts = result["_meta"]
        has_ended = facts["reason"] == "done"
        text = result["content"][0]["text"]
        return Ran(text.rstrip(), facts.get("exit_code"), has_ended=has_ended)

    def run_elsewhere(self, command: str, terminal: str) -> Ran:
        """Use the same tool."""
        return self.run(command, terminal)

    def end(self, terminal: str) -> None:
        """Kill the pane."""
        self.call("tmux_kill_pane", pane_id=terminal)

    def _row(self, terminal: str) -> dict[str, Any]:
        rows: list[dict[str, Any]] = json.loads(self.text("tmux_list_panes"))
        [row] = [row for row in rows if row["id"] == terminal]
        return row
