"""The examples of docs/harnesses.md: a benchmark's terminal and an evaluation's tool."""

import importlib.util
import shlex
import sys
import threading
from pathlib import Path
from types import ModuleType

import pytest
from support import Gate, ask_until, wait_until

from .conftest import Shell

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
pytestmark = pytest.mark.skipif(not EXAMPLES.exists(), reason="Nix builds without the documents")


def example(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(autouse=True)
def here(shell: Shell, on_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the examples call `tmux-debug` of the test."""
    monkeypatch.setenv("PATH", str(on_path), prepend=":")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(shell.runtime))
    monkeypatch.chdir(tmp_path)
    shell.out("start")


def test_terminal_of_a_benchmark(gate: Gate) -> None:
    terminal = example("benchmark_terminal").Terminal("task")

    opening = threading.Thread(target=wait_until, args=[gate.opens])
    opening.start()
    terminal.send_keys([f"cat {gate}; echo slept", "Enter"], block=True)
    opening.join()
    assert "\nslept\n" in terminal.get_incremental_output()

    terminal.send_keys([f"cat {gate}; echo later", "Enter"])
    assert "\nlater\n" not in terminal.get_incremental_output()
    wait_until(gate.opens)
    assert "later" in ask_until(terminal.capture_pane, lambda text: "\nlater\n" in text)

    assert terminal.run("echo out; false") == (1, "out\n")
    with pytest.raises(TimeoutError):
        terminal.send_keys(["sleep 100", "Enter"], block=True, max_timeout_s=0.5)
    terminal.send_keys("C-c", block=True)
    assert "slept" in terminal.capture_pane(capture_entire=True)
    assert terminal.is_session_alive()
    terminal.send_keys(["exit", "Enter"], block=True)
    assert not terminal.is_session_alive()
    terminal.close()


def test_refusal_is_an_error_of_the_terminal() -> None:
    terminal = example("benchmark_terminal").Terminal("task")
    terminal.close()

    with pytest.raises(RuntimeError, match="Pane 'task' not found"):
        terminal.capture_pane()


def test_tool_of_an_evaluation(tmp_path: Path) -> None:
    tool = example("evaluation_tool")
    tool.begin("sample")

    asks = shlex.join([sys.executable, "-c", "input(); open('x', 'w')"])
    assert "awaits input" in tool.terminal("sample", asks)
    assert not tool.passes("other", "true")
    tool.terminal("sample", "yes")
    assert tool.passes("sample", "test -e x")
    assert not tool.passes("sample", "test -e y")
    assert (tmp_path / "x").exists()
    tool.end("sample")
