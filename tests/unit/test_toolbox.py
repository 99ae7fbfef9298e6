"""Calls through the toolbox: what is cancelled stays cancelled."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from support import records

from tmux_debug_mcp.audit import AuditLog
from tmux_debug_mcp.panes.caller_session import CallerSession
from tmux_debug_mcp.panes.looking.state import State, ended_state
from tmux_debug_mcp.tools.records import Records
from tmux_debug_mcp.tools.toolbox import Toolbox
from tmux_debug_mcp.tools.toolset import READS, Answer, Outcome, Toolset, started

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
    assert (hung["tool"], hung["failed"], hung["error"]) == ("hang", True, "cancelled")
    assert (answered["tool"], answered["failed"]) == ("answer", False)


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
    assert started(State(is_running=True, runtime_s=0.1, cursor=0)).reason == "started"
    assert started(ended_state(3, 0.1, 0)) == Outcome("exited", exit_code=3)
    assert started(ended_state(139, 0.1, 0)).signal == "SIGSEGV"


@pytest.mark.parametrize(
    ("words", "outcome"),
    [
        ("matched", Outcome("matched")),
        ("idle", Outcome("idle")),
        ("gone", Outcome("gone")),
        ("at rest", Outcome("rest")),
        ("busy", Outcome("busy")),
        ("listens", Outcome("listens")),
        ("awaits input", Outcome("input")),
        ("quiet", Outcome("quiet")),
        ("started", Outcome("started")),
        ("shell started", Outcome("shell_started")),
        ("done", Outcome("done")),
        ("exited 0", Outcome("done", exit_code=0)),
        ("exited 0", Outcome("exited", exit_code=0)),
        ("matched", Outcome("matched", exit_code=0)),
        # To be killed is what was asked for.
        ("killed", Outcome("killed", signal="SIGHUP")),
    ],
)
def test_call_that_came_out_as_it_should(words: str, outcome: Outcome) -> None:
    assert outcome.record.items() >= {"result": words, "failed": False}.items()


@pytest.mark.parametrize(
    ("words", "outcome"),
    [
        ("exited 3", Outcome("done", exit_code=3)),
        ("killed by SIGSEGV", Outcome("done", exit_code=139, signal="SIGSEGV")),
        ("killed by SIGRTMIN+3", Outcome("exited", signal="SIGRTMIN+3")),
        # The program has failed, whatever was waited for.
        ("exited 7", Outcome("matched", exit_code=7)),
        ("timed out", Outcome("timed_out", exit_code=130, signal="SIGINT")),
        ("timed out", Outcome("running")),
        ("timed out", Outcome("shell_interrupted")),
        ("interrupted", Outcome("interrupted", exit_code=130, signal="SIGINT")),
        ("stopped", Outcome("stopped")),
        ("not sent", Outcome("not_sent")),
        ("flooded", Outcome("flooded")),
        ("given up", Outcome("given_up")),
        ("shell ended", Outcome("shell_ended")),
        ("replaced", Outcome("replaced")),
        # What was waited for has not come; or nobody knows how the program ended.
        ("no match", Outcome("input", missed="no match")),
        ("ended early", Outcome("exited", exit_code=0, missed="ended early")),
        ("ended", Outcome("exited")),
    ],
)
def test_call_that_failed(words: str, outcome: Outcome) -> None:
    assert outcome.record.items() >= {"result": words, "failed": True}.items()
