"""A command runs at most once, whatever is cancelled, killed, stopped or interrupted around it.

And a result claims no more than what has happened: a command that a result says is done has run,
and one that it says was refused has not.
"""

import contextlib
import os
import random
import re
import shlex
import signal
from pathlib import Path
from typing import Any

import anyio
from clocks import with_times
from support import PATIENCE_S, SHELLS, Tools, frozen, texts

from tmux_debug_mcp.linux import processes
from tmux_debug_mcp.panes.pane import Pane

# Short enough that what goes wrong here outlasts many of them.
HASTY = with_times(prompt_s=0.1, take_s=0.2, drain_s=0.1, mark_s=0.1, interrupt_s=0.2)
ROUNDS, CALLS = 2, 6


class Hazard:
    """Calls that run commands in a shell at random, while all kinds of things happen to it."""

    def __init__(self, tools: Tools, directory: Path, seed: int) -> None:
        self._random = random.Random(seed)  # noqa: S311
        self._tools = tools
        self._directory = directory
        self._made = 0
        # A process that has just forked may wait for its child: it could not be frozen, and nothing
        # would thaw the child.
        self._one_is_frozen = anyio.Lock()
        # How often each command may have run, by its number.
        self.allowed: dict[int, tuple[int, ...]] = {}

    def times_run(self, number: int) -> int:
        """Return how often a command has run."""
        path = self._directory / f"ran-{number}"
        return len(path.read_text()) // 2 if path.exists() else 0

    async def work(self) -> None:
        """Run commands in a new pane, and end it."""
        shell = self._random.choice([*SHELLS.values()])
        pane_id = await self._tools.create(shell)
        async with anyio.create_task_group() as tasks:
            for _ in range(CALLS):
                tasks.start_soon(self._run, pane_id)
                for _ in range(self._random.randint(0, 2)):
                    tasks.start_soon(self._harm, pane_id)
                await anyio.sleep(self._random.random() * 0.3)
        await self._tools.call("kill_pane", pane_id=pane_id)
        # Nothing runs there any more, so that each command has run as often as it ever will.
        for number, allowed in self.allowed.items():
            assert self.times_run(number) in allowed, (number, shell)

    def _command(self) -> tuple[int, str]:
        self._made += 1
        ran = shlex.quote(str(self._directory / f"ran-{self._made}"))
        choose = self._random
        before = choose.choice(["", "sleep 0.05; ", "true\n", "# a comment\n"])
        after = choose.choice(["", "; sleep 0.05", "; sleep 1000", "; sh -c 'exit 3'", "\ntrue"])
        return self._made, f"{before}echo x >>{ran}; echo out {self._made}{after}"

    async def _run(self, pane_id: str) -> None:
        number, command = self._command()
        choose = self._random
        self.allowed[number] = (0, 1)
        timeout_s = choose.choice([0.01, 0.2, 0.5, 2])
        cancel_s = choose.random() * 0.3 if choose.random() < 0.3 else None
        with anyio.move_on_after(cancel_s):
            result = await self._tools.call(
                "run", pane_id=pane_id, command=command, timeout_s=timeout_s
            )
            text = "\n".join(texts(result))
            if result.is_error:
                self.allowed[number] = (0, 1) if "The command may have run" in text else (0,)
                return
            facts: Any = result.meta
            is_done = facts["reason"] == "done" and facts.get("exit_code") in (0, 3)
            if is_done:
                self.allowed[number] = (1,)
            # The output may have an echo of what others typed, and nothing of other commands.
            told = [int(one) for one in re.findall(r"out (\d+)\n", text)]
            most = self.times_run(number)
            assert told == [number] * most or not (is_done or told), (facts, text)

    async def _harm(self, pane_id: str) -> None:
        """Do something that a command, or the call that runs it, may suffer from."""
        await anyio.sleep(self._random.random() * 0.3)
        panes = {str(pane.id): pane for pane in self._tools.engine.panes}
        pane = panes.get(pane_id)
        if pane is None or pane.has_exited:
            return
        harm = self._random.choice(
            ["C-c", "C-c", "text", "C-z", "stop", "writer", "tmux", "reads", "shell", "kill"]
        )
        if harm in ("C-c", "C-z"):
            await self._tools.call("send_keys", pane_id=pane_id, keys=harm, timeout_s=0)
        elif harm == "text":
            await self._tools.call("send_keys", pane_id=pane_id, keys="ech", timeout_s=0)
        elif harm == "reads":
            await self._tools.call("wait", pane_id=pane_id, pattern="never", timeout_s=0.1)
            await self._tools.call("capture_pane", pane_id=pane_id, since=0)
        elif harm in ("stop", "writer", "tmux"):
            await self._freeze(harm, pane)
        elif self._random.random() < 0.3:
            if harm == "kill":
                await self._tools.call("kill_pane", pane_id=pane_id)
            else:
                for pid in processes.descendants(pane.leader.pid)[:1]:
                    os.kill(pid, signal.SIGKILL)

    async def _freeze(self, what: str, pane: Pane) -> None:
        """Freeze a process of a pane, the writer of its log, or tmux for a moment."""
        tmux = pane.client.server_pid
        pids = {
            "stop": processes.descendants(pane.leader.pid),
            "writer": [
                pid for pid in processes.children(tmux) if pane.log.is_at(f"/proc/{pid}/fd/1")
            ],
            "tmux": [tmux],
        }[what]
        for pid in self._random.sample(pids, k=min(1, len(pids))):
            # It may have ended, or be frozen already.
            async with self._one_is_frozen:
                with contextlib.suppress(AssertionError, ChildProcessError), frozen(pid):
                    await anyio.sleep(0.2)


@HASTY
async def test_command_runs_at_most_once_whatever_happens_around_it(
    tools: Tools, tmp_path: Path, random_seed: int
) -> None:
    hazard = Hazard(tools, tmp_path, random_seed)
    with anyio.fail_after(PATIENCE_S):
        for _ in range(ROUNDS):
            await hazard.work()
    assert 1 in map(hazard.times_run, hazard.allowed)
