"""The examples of docs/harnesses.md: adapters for harnesses, and an evaluation's tool.

The commands are those of bugs that users reported of the harnesses' own sessions. OH is
OpenHands/OpenHands, SDK is OpenHands/software-agent-sdk, REX is SWE-agent/SWE-ReX, and SA is
SWE-agent/SWE-agent. A bug without a number was found in a harness' code, or by trying it.
"""

import ast
import asyncio
import contextlib
import importlib
import os
import re
import shlex
import sys
import threading
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest
from support import PATIENCE_S, Gate, ask_until, wait_until

from .conftest import Shell

if TYPE_CHECKING:
    from docs.examples.shell_session import ShellSession

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
pytestmark = pytest.mark.skipif(not EXAMPLES.exists(), reason="Nix builds without the documents")

# What is run one after the other, what it prints and its exit code.
Commands = Sequence[tuple[str, str, int]]

BUGS: dict[str, Commands] = {
    "REX#54: an empty array hides a failure": [("A=(); false", "", 1)],
    "REX#155: a parser does not know the syntax": [("[[ $a == $a ]]", "", 0)],
    "REX#286: a here document with a long delimiter": [
        ("cat <<'SOUNIQUEEOF'\nq\nSOUNIQUEEOF", "q\n", 0)
    ],
    "REX#146: another prompt": [("PS1='$ '; echo hi", "hi\n", 0), ("echo next", "next\n", 0)],
    "REX#201: line feeds at both ends": [(r"printf '\n\nx\n\n\n'", "\n\nx\n\n\n", 0)],
    "a text without a line feed": [("printf 'no newline'", "no newline", 0)],
    "SA#595: two failures": [("cd /none", "bash: cd: /none: No such file or directory\n", 1)] * 2,
    "SA#984: text like a marker": [
        ("printf EXITCODESTART0EXITCODEEND; (exit 3)", "EXITCODESTART0EXITCODEEND", 3)
    ],
    "SWE-ReX removes its prompt from output": [
        ("echo SHELLPS1PREFIX; echo after; false", "SHELLPS1PREFIX\nafter\n", 1)
    ],
    "SWE-ReX expands history": [("echo !!", "!!\n", 0)],
    "OH#10243: a comment before a command": [("# look\necho seen", "seen\n", 0)],
    "OH#3143: a loop over lines": [("for i in 1 2; do\necho $i\ndone", "1\n2\n", 0)],
    "OH#1607: a quoted line feed": [('echo "a\nb" > f', "", 0), ("cat f", "a\nb\n", 0)],
    "OH#8369: escapes in a comment": [("# 0\\nrm -rf x && echo \\'a\\n\\'", "", 0)],
    "OH#10550: strict mode": [("set -euo pipefail", "", 0), ("echo on", "on\n", 0)],
    "OH#7391: an unclosed backtick": [
        ("echo `x", "bash: command: line 1: unexpected EOF while looking for matching ``'\n", 2),
        ("echo next", "next\n", 0),
    ],
    "SDK#2416: a cleared screen": [(r"printf '\033[2J\033[3J'; (exit 3)", "", 3)],
    "SDK#1277: an exclamation mark": [("echo A!B", "A!B\n", 0)],
    "SDK#2181: a here document of 150 lines": [
        ("cat > f <<'EOF'\n" + "line\n" * 150 + "EOF", "", 0),
        ("wc -l < f", "150\n", 0),
    ],
    "SDK#2244: a question to the terminal": [
        (r"printf '\033[6n'", "", 0),
        ("echo next", "next\n", 0),
    ],
    "OpenHands doubles an escaped semicolon": [
        (r"find . -maxdepth 0 -exec echo {} \; && echo ok", ".\nok\n", 0)
    ],
    "Terminal-Bench's mark is commented out": [("echo hi # note", "hi\n", 0)],
    "Terminal-Bench's mark follows an ampersand": [("true &", "", 0), ("wait", "", 0)],
    "a long line": [(f"echo {'x' * 20_000} | wc -c", "20001\n", 0)],
}
# How a shell ends, and its exit code.
ENDINGS = {
    "exit 3": 3,
    "OH#10821: set -e; false": 1,
    "exec true": 0,
}


def example(name: str) -> ModuleType:
    """Import an example anew, as the modules that it needs may be others."""
    sys.modules.pop(name, None)
    return importlib.import_module(name)


@pytest.fixture(autouse=True)
def here(shell: Shell, on_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the examples call `tmux-debug` of the test."""
    monkeypatch.setenv("PATH", str(on_path), prepend=":")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(shell.runtime))
    monkeypatch.syspath_prepend(EXAMPLES)
    monkeypatch.chdir(tmp_path)
    shell.out("start")


@contextlib.contextmanager
def shell_session() -> "Iterator[ShellSession]":
    session: ShellSession = example("shell_session").ShellSession()
    session.start()
    yield session
    session.close()


@pytest.fixture
def session() -> "Iterator[ShellSession]":
    with shell_session() as session:
        yield session


def test_reported_bug_is_none() -> None:
    for bug, commands in BUGS.items():
        with shell_session() as session:
            for command, output, code in commands:
                outcome = session.run(command, PATIENCE_S)

                assert _of_commands(outcome.output) == output, bug
                assert outcome.exit_code == code, bug
                assert outcome.is_over, bug


def _of_commands(output: str) -> str:
    """Leave out what a shell says of its jobs, and the echo of what the terminal answers."""
    return re.sub(r"^\[1\].*\n|\^\[\[\d+;\d+R", "", output, flags=re.MULTILINE)


@pytest.mark.parametrize("ending", ENDINGS)
def test_end_of_the_shell_is_told(session: "ShellSession", ending: str) -> None:
    outcome = session.run(ending.rpartition(": ")[2], PATIENCE_S)

    assert outcome.exit_code == ENDINGS[ending]
    assert not outcome.is_alive
    with pytest.raises(sys.modules["shell_session"].RefusedError, match="exited with code"):
        session.run("echo next", PATIENCE_S)


def test_output_before_the_timeout_is_shown_once(session: "ShellSession", gate: Gate) -> None:
    """REX#29 and OH#8097. Afterwards C-c (OH#6245) and another command (OH#6607)."""
    early = session.run(f"echo early; cat {gate}; echo later; sleep 1000", 0.0)
    while "early" not in early.output:
        early = session.wait(0.2)
    wait_until(gate.opens)
    later = session.wait(0.2)
    while "later" not in later.output:
        later = session.wait(0.2)
    stopped = session.interrupt(PATIENCE_S)

    assert [early.output, later.output] == ["early\n", "later\n"]
    assert not early.is_over
    assert (stopped.output, stopped.exit_code) == ("^C\n", 130)
    assert session.run("echo next", PATIENCE_S).output == "next\n"


@pytest.mark.parametrize(
    "command", ["read x", "cat > f", shlex.join([sys.executable, "-c", "input()"])]
)
def test_command_that_reads_is_no_success(session: "ShellSession", command: str) -> None:
    """REX#281 and SA#630; SWE-ReX has the next command swallowed, and reports that it ended."""
    outcome = session.run(command, PATIENCE_S)

    assert (outcome.is_over, outcome.awaits) == (False, "input")
    with pytest.raises(sys.modules["shell_session"].RefusedError, match="is busy"):
        session.run("echo next", PATIENCE_S)
    answered = session.send("yes\n", timeout_s=PATIENCE_S)
    if not answered.is_over:
        answered = session.send("C-d", timeout_s=PATIENCE_S)
    assert (answered.is_over, answered.exit_code) == (True, 0)
    assert session.run("echo next", PATIENCE_S).output == "next\n"


def test_pager_awaits_keys(session: "ShellSession", tmp_path: Path) -> None:
    """SDK#3660."""
    tmp_path.joinpath("many").write_text("line\n" * 1000)
    outcome = session.run("less many", PATIENCE_S)

    assert (outcome.is_over, outcome.awaits) == (False, "keys")
    assert session.send("q", timeout_s=PATIENCE_S).is_over
    assert session.run("echo next", PATIENCE_S).output == "next\n"


def test_noise_of_a_background_job_is_no_exit_code(session: "ShellSession") -> None:
    """OH#4158."""
    started = session.run("(while :; do echo noise; sleep .1; done) & false", PATIENCE_S)
    done = session.run("sleep 0.3; (exit 4)", PATIENCE_S)

    assert (started.exit_code, done.exit_code) == (1, 4)


def test_session_of_terminal_bench(gate: Gate) -> None:
    session = example("terminal_bench_session").TmuxSession("task")
    session.start()

    opening = threading.Thread(target=wait_until, args=[gate.opens])
    opening.start()
    session.send_keys([f"cat {gate}; echo slept", "Enter"], block=True)
    opening.join()
    assert "\nslept\n" in session.get_incremental_output()

    session.send_keys([f"cat {gate}; echo later", "Enter"])
    assert "\nlater\n" not in session.get_incremental_output()
    wait_until(gate.opens)
    assert "later" in ask_until(session.capture_pane, lambda text: "\nlater\n" in text)
    assert session.get_incremental_output().count("later") == 1  # what was typed was shown before

    with pytest.raises(TimeoutError):
        session.send_keys(["sleep 100", "Enter"], block=True, max_timeout_sec=0.5)
    session.send_keys("C-c", block=True)
    session.send_keys(["cat <<EOF\n", "a;\n", "-l\n", "EOF\n"], block=True)
    assert "\na;\n-l\n" in session.get_incremental_output()
    session.send_keys(["x=", "y", "; echo $x", "Enter"], block=True)
    assert "\ny\n" in session.get_incremental_output()
    assert "slept" in session.capture_pane(capture_entire=True)
    assert session.is_session_alive()
    session.send_keys(["exit", "Enter"], block=True)
    assert not session.is_session_alive()
    session.stop()


def test_session_of_harbor() -> None:
    async def work() -> tuple[bool, str, str]:
        session = example("harbor_session").TmuxSession("task", None, None, None, None, 160, 40)
        await session.start()
        await session.send_keys(["echo $((6 * 7))", "Enter"], block=True)
        seen = (
            await session.is_session_alive(),
            await session.get_incremental_output(),
            await session.capture_pane(),
        )
        await session.stop()
        return seen

    is_alive, output, screen = asyncio.run(work())

    assert is_alive
    assert "\n42\n" in output
    assert "\n42\n" in screen


@dataclass
class _Action:
    """OpenHands' TerminalAction, which needs Python 3.12 and some hundred packages."""

    command: str
    is_input: bool = False
    timeout: float | None = None
    reset: bool = False


@dataclass
class _Observation:
    """Its TerminalObservation."""

    text: str
    command: str
    exit_code: int
    metadata: Any
    is_error: bool

    @classmethod
    def from_text(cls, **fields: Any) -> "_Observation":  # noqa: ANN401
        return cls(**fields)


@dataclass
class _Metadata:
    exit_code: int = field(default=-1)


@pytest.fixture
def openhands(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The adapter, with stand-ins for OpenHands' own types."""
    definition = ModuleType("openhands.tools.terminal.definition")
    metadata = ModuleType("openhands.tools.terminal.metadata")
    vars(definition).update(TerminalAction=_Action, TerminalObservation=_Observation)
    vars(metadata).update(CmdOutputMetadata=_Metadata)
    for name in ("openhands", "openhands.tools", "openhands.tools.terminal"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    for module in (definition, metadata):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    return example("openhands_session")


def test_session_of_openhands(openhands: ModuleType, tmp_path: Path) -> None:
    session = openhands.Session(str(tmp_path), None, 60)
    session.initialize()

    def ask(command: str, **how: Any) -> tuple[str, int]:  # noqa: ANN401
        observation = session.execute(_Action(command, **how))
        assert observation.metadata.exit_code == observation.exit_code
        return observation.text, observation.exit_code

    assert ask("pwd; false") == (f"{tmp_path}\n", 1)
    text, code = ask("echo asks; read x; echo got $x")
    assert code == -1
    assert text.startswith("asks\n\n[The command awaits input.")
    assert session.is_running()
    text, code = ask("yes", is_input=True)
    assert "got yes" in text
    assert code == 0
    assert not session.is_running()
    text, code = ask("sleep 1000", timeout=0.3)
    assert (code, "still running" in text) == (-1, True)
    assert ask("", timeout=0.3)[1] == -1
    assert session.interrupt()
    text, code = ask("exit 3")
    assert code == 3
    assert "The shell has ended" in text
    session.close()


@pytest.fixture
def swe_rex() -> ModuleType:
    """The adapter, where SWE-ReX is installed, as `./dev test-harnesses` does."""
    pytest.importorskip("swerex")
    return example("swe_rex_session")


def test_session_of_swe_rex(swe_rex: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have SWE-ReX' own runtime use the adapter."""
    from swerex import exceptions  # noqa: PLC0415
    from swerex.runtime import abstract, local  # noqa: PLC0415

    monkeypatch.setattr(local, "BashSession", swe_rex.Session)

    async def work() -> None:
        runtime = local.LocalRuntime()
        await runtime.create_session(abstract.CreateBashSessionRequest())

        async def run(command: str, **how: Any) -> Any:  # noqa: ANN401
            return await runtime.run_in_session(abstract.BashAction(command=command, **how))

        for commands in BUGS.values():
            for command, output, code in commands:
                done = await run(command, check="silent")
                assert (_of_commands(done.output), done.exit_code) == (output, code)
            await run("set +euo pipefail", check="ignore")
        with pytest.raises(exceptions.NonZeroExitCodeError):
            await run("false")
        with pytest.raises(exceptions.CommandTimeoutError, match="early"):
            await run("echo early; sleep 1000", timeout=0.5)
        await runtime.run_in_session(abstract.BashInterruptAction())
        with pytest.raises(exceptions.NoExitCodeError, match="awaits input"):
            await run("read x")
        await run("yes", is_interactive_command=True)
        assert (await run("echo $x")).output == "yes\n"
        await run("exit 3", check="ignore")
        await runtime.close()

    asyncio.run(work())


_OF_AGENTS = ["send_keys", "capture_pane", "get_incremental_output", "is_session_alive"]
# The file of each harness' wheel whose class an adapter stands for, and its methods.
INTERFACES = {
    "terminal_bench_session.TmuxSession": (
        "terminal_bench/terminal/tmux_session.py:TmuxSession",
        _OF_AGENTS,
    ),
    "harbor_session.TmuxSession": (
        "harbor/agents/terminus_2/tmux_session.py:TmuxSession",
        [
            "start",
            "stop",
            "send_keys",
            "capture_pane",
            "get_incremental_output",
            "is_session_alive",
        ],
    ),
    "openhands_session.Session": (
        "openhands/tools/terminal/terminal/interface.py:TerminalSessionBase",
        ["__init__", "initialize", "execute", "close", "interrupt", "is_running"],
    ),
    "swe_rex_session.Session": (
        "swerex/runtime/local.py:Session",
        ["start", "run", "close"],
    ),
}


@pytest.mark.skipif(
    "HARNESS_WHEELS" not in os.environ, reason="./dev test-harnesses downloads the wheels"
)
@pytest.mark.parametrize("adapter", INTERFACES)
def test_adapter_has_the_methods_of_the_harness(adapter: str) -> None:
    """Compare the parameters, their defaults, and which methods are coroutines."""
    place, names = INTERFACES[adapter]
    path, _, theirs = place.partition(":")
    module, _, ours = adapter.partition(".")
    interface = _methods(_in_wheels(path), theirs)
    own = _methods((EXAMPLES / f"{module}.py").read_text(), ours)

    assert {name: own[name][: len(interface[name])] for name in names} == {
        name: interface[name] for name in names
    }


def _in_wheels(path: str) -> str:
    """Return the text of a file in the only wheel that has it."""
    texts = []
    for wheel in Path(os.environ["HARNESS_WHEELS"]).glob("*.whl"):
        with zipfile.ZipFile(wheel) as files:
            if path in files.namelist():
                texts.append(files.read(path).decode())
    [text] = texts
    return text


def _methods(source: str, name: str) -> dict[str, list[str]]:
    """Return the parameters of a class' methods, each with its default; first `async` or `def`."""
    [found] = [
        node
        for node in ast.parse(source).body
        if isinstance(node, ast.ClassDef) and node.name == name
    ]
    methods = {}
    for node in found.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            arguments = [*node.args.posonlyargs, *node.args.args]
            defaults = [ast.unparse(default) for default in node.args.defaults]
            values = [""] * (len(arguments) - len(defaults)) + defaults
            kind = "async" if isinstance(node, ast.AsyncFunctionDef) else "def"
            pairs = zip(arguments, values, strict=True)
            methods[node.name] = [kind, *(f"{one.arg}={value}" for one, value in pairs)]
    return methods


def test_tool_of_an_evaluation(tmp_path: Path) -> None:
    tool = example("evaluation_tool")
    tool.begin("sample")

    asks = shlex.join([sys.executable, "-c", "open('x', 'w').write(input())"])
    assert "awaits input" in tool.terminal("sample", asks)
    assert not tool.passes("other", "true")
    tool.terminal("sample", "--help")
    assert tool.passes("sample", "test -e x")
    assert not tool.passes("sample", "test -e y")
    assert (tmp_path / "x").read_text() == "--help"
    tool.end("sample")
