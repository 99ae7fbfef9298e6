"""Calls through the toolbox: what is cancelled stays cancelled."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from support import records

from tmux_debug_mcp.audit import AuditLog
from tmux_debug_mcp.panes.looking.state import State, ended_state
from tmux_debug_mcp.panes.sessions import CallerSession
from tmux_debug_mcp.tools.records import Records
from tmux_debug_mcp.tools.toolbox import Toolbox
from tmux_debug_mcp.tools.toolset import READS, Answer, Toolset, started

_TOOLSET: Toolset[Any] = Toolset("test", lambda _engine: None, "")


@_TOOLSET.tool("answer", "", READS)
async def answer(_opened: object) -> Answer:
    return Answer(["done"])


@_TOOLSET.tool("fail", "", READS)
async def fail(_opened: object) -> Answer:
    raise RuntimeError("a bug")


@_TOOLSET.tool("hang", "", READS)
async def hang(_opened: object) -> Answer:
    await anyio.sleep_forever()
    return Answer([])


async def _report(_seconds: float) -> None:
    """Report nothing."""


class _Audited:
    """A toolbox with an audit that can't be written while a directory is in its place."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._audit = AuditLog(path, None)
        engine: Any = None  # none of these tools needs one
        self.toolbox = Toolbox([_TOOLSET], engine, Records(self._audit, "20260130T101546-4711"))

    def break_audit(self) -> None:
        self._path.rename(self._path.with_suffix(".1"))
        self._path.mkdir()

    def mend_audit(self) -> None:
        self._path.rmdir()

    def close(self) -> None:
        self._audit.close()


@pytest.fixture
def audited(tmp_path: Path) -> Iterator[_Audited]:
    audited = _Audited(tmp_path / "audit.log")
    yield audited
    audited.close()


async def test_cancelled_call_stays_cancelled_when_it_can_not_be_put_on_record(
    audited: _Audited, tmp_path: Path
) -> None:
    results = []

    async def call() -> None:
        results.append(await audited.toolbox.call("hang", {}, _report, CallerSession()))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(call)
        await anyio.wait_all_tasks_blocked()
        audited.break_audit()
        tasks.cancel_scope.cancel()
    assert results == []
    assert audited.toolbox.running == 0

    audited.mend_audit()
    await audited.toolbox.call("answer", {}, _report, CallerSession())
    hung, answered = records(tmp_path / "audit.log")
    assert (hung["tool"], hung["ok"], hung["error"]) == ("hang", False, "cancelled")
    assert (answered["tool"], answered["ok"]) == ("answer", True)


@pytest.mark.parametrize("tool", ["answer", "fail"])
async def test_call_that_ends_says_that_it_can_not_be_put_on_record(
    audited: _Audited, tool: str
) -> None:
    audited.break_audit()

    result = await audited.toolbox.call(tool, {}, _report, CallerSession())
    assert result.is_error
    assert "The call was made, but the audit can't be written" in str(result.content)


@pytest.mark.parametrize(
    ("state", "text"),
    [
        (ended_state(3, 0.1, 0), "exited with code 3 after 0.1 s"),
        (ended_state(129, 0.1, 0), "killed by SIGHUP after 0.1 s"),
        (ended_state(130, 0.1, 0), "exited with code 130 (SIGINT) after 0.1 s"),
        (ended_state(139, 0.1, 0), "killed by SIGSEGV after 0.1 s"),
        (ended_state(143, 0.1, 0), "exited with code 143 (SIGTERM) after 0.1 s"),
        (ended_state(162, 0.1, 0), "killed by SIGRTMIN after 0.1 s"),
        (ended_state(165, 0.1, 0), "killed by SIGRTMIN+3 after 0.1 s"),
        (ended_state(255, 0.1, 0), "exited with code 255 after 0.1 s"),
        (State(is_running=False, runtime_s=0.1, cursor=0, is_lost=True), "was lost after 0.1 s"),
    ],
)
def test_how_a_program_ended_is_said_as_far_as_it_is_known(state: State, text: str) -> None:
    assert str(state) == text


def test_pane_that_has_ended_at_once_was_not_only_started() -> None:
    assert started(State(is_running=True, runtime_s=0.1, cursor=0))["reason"] == "started"
    assert started(ended_state(3, 0.1, 0)) == {"reason": "exited", "exit_code": 3, "signal": None}
    assert started(ended_state(139, 0.1, 0))["signal"] == "SIGSEGV"
