"""`tmux-debug config`: what it shows, writes and removes, in files of every shape.

test_real_clients.py asks the clients themselves.
"""

import json
import os
import re
import shlex
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tmux_debug_mcp.clients.table import CLIENTS

from .conftest import PROGRAM, Shell

BESIDE = Path(sys.executable).with_name("tmux-debug-mcp")
USER_FILES = {
    "claude-code": ".claude/agents/tmux-debug.md",
    "codex": ".codex/config.toml",
    "gemini": ".gemini/settings.json",
    "opencode": ".config/opencode/opencode.json",
    "vscode": ".config/Code/User/mcp.json",
    "cursor": ".cursor/mcp.json",
    "zed": ".config/zed/settings.json",
    "goose": ".config/goose/config.yaml",
}
UNMOVED = ("XDG_CONFIG_HOME", "CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME")
BY_HAND = 3
# What a client's file may look like that config doesn't change, and why.
LEFT = [
    (b'{\n  "mcpServers": {\n', ":3:1 is not JSON: Expecting property name"),
    (b'{"tmux-debug": 1} x', ":1:19 is not JSON: Extra data"),
    (b'["tmux-debug"]\n', ":1:1 is not a JSON object"),
    (b'{"mcpServers": ["tmux-debug"]}', " has no object at 'mcpServers'"),
    (b'{"mcpServers": null, "a": "tmux-debug"}', " has null at 'mcpServers'"),
    (b'{"tmux-debug": "\x1b]0;x\x07"}', ":1:17 is not JSON: Invalid control character."),
    (b"{\n  // tmux-debug\n}", ":2:3 has comments"),
    (b'{"mcpServers": {"a": 1}, "mcpServers": {}}', ' has "mcpServers" twice'),
    (b'{"mcpServers": {"tmux-debug": {"command": "tmux-debug"}}}', " has an entry of this name"),
]
NOT_TEXT = [b"{}\n\xff", "{}".encode("utf-16")]
SHAPES = [
    b"",
    b"{}",
    b'{"a":1}',
    b'{\n\t"a": 1\n}\n',
    b'{\r\n  "a": [1,\r\n 2]\r\n}\r\n',
    b'\xef\xbb\xbf{"a": 1}\r\n',  # with a byte order mark
    b'{\n   "mcpServers": {\n      "other":   {"command": "x", "args": ["-y"]}\n   }\n}',
]


@pytest.fixture
def home(shell: Shell, tmp_path: Path) -> Path:
    """Return an empty home directory, in which `tmux-debug-mcp` is on the PATH."""
    home = tmp_path / "home"
    home.mkdir()
    programs = tmp_path / "programs"
    programs.mkdir()
    program = programs / "tmux-debug-mcp"
    command = [sys.executable, "-m", "tmux_debug_mcp"]
    program.write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n')
    program.chmod(0o755)
    for name in UNMOVED:
        shell.env.pop(name, None)
    shell.env.update(HOME=str(home), PATH=f"{programs}:{shell.env['PATH']}")
    return home


@pytest.fixture
def project(shell: Shell, tmp_path: Path) -> Path:
    """Return the current directory, which does not have the home directory in it."""
    shell.cwd = tmp_path / "project"
    shell.cwd.mkdir()
    return shell.cwd


@pytest.fixture
def config(shell: Shell, home: Path) -> Callable[..., str]:
    """Return what runs `tmux-debug config`, and gives what it prints."""
    assert home.is_dir()
    return lambda *words: shell.out("config", *words)


def left_to_the_person(shell: Shell, *words: str) -> tuple[str, str]:
    """Return what is printed to do, and why config doesn't do it."""
    done = shell.run("config", *words)
    assert done.returncode == BY_HAND, done
    assert done.stderr.startswith("tmux-debug: ")
    assert done.stderr.endswith(" Nothing was changed.\n")
    return done.stdout, done.stderr


def refusal(shell: Shell, *words: str) -> str:
    """Return why a command line is refused."""
    done = shell.run("config", *words)
    assert (done.returncode, done.stdout) == (125, "")
    return done.stderr


def state(shell: Shell) -> Path:
    """Return the directory for files that outlive the program."""
    return Path(shell.env["HOME"]) / ".local/state/tmux-debug-mcp"


def backups(shell: Shell, path: Path) -> list[bytes]:
    directory = state(shell) / "backups" / path.parent.relative_to("/")
    return [backup.read_bytes() for backup in sorted(directory.glob(f"{path.name}.*"))]


@pytest.mark.parametrize("client", [client for client in CLIENTS if client != "goose"])
def test_file_is_made_and_removed(
    shell: Shell, config: Callable[..., str], home: Path, client: str
) -> None:
    path = home / USER_FILES[client]
    shown = config(client)
    assert not path.exists()

    written = config(client, "--write")
    text = path.read_text()

    assert shown.startswith(f"Put this in {path}")
    assert f":\n\n{text}" in shown
    assert f"tmux-debug config {client} --write\n" in shown
    assert f"+++ {path}\n" in written
    assert f"Restart {CLIENTS[client].title}, then ask it:\n\n" in written
    assert "tmux-debug-mcp" in text
    assert config(client, "--write") == f"{path} already has this entry. Nothing was changed.\n"
    assert path.read_text() == text
    assert config(client, "--remove").startswith(f"Deleted {path}")
    assert not path.exists()
    assert backups(shell, path) == []
    assert config(client, "--remove") == f"{path} has no entry 'tmux-debug'. Nothing was changed.\n"


def test_yaml_is_left_to_the_person(shell: Shell, config: Callable[..., str], home: Path) -> None:
    path = home / USER_FILES["goose"]
    entry = "extensions:\n  tmux-debug:\n    enabled: true\n"
    place = f"Put this in {path}, at extensions.tmux-debug:\n\n"

    shown = config("goose", "--", "--keep", "60m")
    printed, reason = left_to_the_person(shell, "goose", "--write", "--", "--keep", "60m")

    assert printed.startswith(place + entry)
    assert '    args: ["--keep", "60m"]\n' in printed
    assert shown.startswith(printed.rstrip("\n"))
    assert "--write" not in shown
    assert "YAML" in reason
    assert not path.exists()
    assert "Nothing was changed" in config("goose", "--remove")
    path.parent.mkdir(parents=True)
    path.write_text(f"# mine\n{entry}")
    printed, _ = left_to_the_person(shell, "goose", "--remove")
    assert f"remove extensions.tmux-debug from {path}" in printed
    assert path.read_text() == f"# mine\n{entry}"


@pytest.mark.parametrize("shape", SHAPES)
def test_file_of_any_shape_gets_the_entry_and_gets_its_bytes_back(
    shell: Shell, config: Callable[..., str], home: Path, shape: bytes
) -> None:
    path = home / ".claude.json"
    path.write_bytes(shape)
    path.chmod(0o640)

    config("claude-code", "--scope", "user", "--write")
    written = path.read_bytes()
    config("claude-code", "--scope", "user", "--write")

    assert b'"tmux-debug"' in written
    assert path.read_bytes() == written
    assert backups(shell, path) == [shape]
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    config("claude-code", "--scope", "user", "--remove")
    if not shape:
        assert not path.exists()
        return
    assert path.read_bytes() == shape
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_difference_has_only_the_entry(config: Callable[..., str], home: Path) -> None:
    (home / ".claude.json").write_bytes(SHAPES[-1])

    written = config("claude-code", "--scope", "user", "--write", "--", "--keep", "60m")

    diff, _, _ = written.partition("\n\n")
    assert [line for line in diff.splitlines()[3:] if line[0] in "+-"] == [
        '-      "other":   {"command": "x", "args": ["-y"]}',
        '+      "other":   {"command": "x", "args": ["-y"]},',
        '+      "tmux-debug": {',
        '+         "type": "stdio",',
        *[line for line in diff.splitlines() if line.startswith('+         "command": ')],
        '+         "args": ["--keep", "60m"]',
        "+      }",
    ]


@pytest.mark.parametrize(("data", "reason"), LEFT)
def test_file_that_config_does_not_change_stays_as_it_is(
    shell: Shell, home: Path, data: bytes, reason: str
) -> None:
    path = home / ".claude.json"
    path.write_bytes(data)
    words = ("claude-code", "--scope", "user")

    printed, why = left_to_the_person(shell, *words, "--write", "--", "--keep", "60m")

    assert why.startswith(f"tmux-debug: {path}{reason}")
    assert "\x1b" not in why
    place, _, entry = printed.partition(":\n\n")
    assert place == f"Put this in {path}, at mcpServers.tmux-debug"
    assert json.loads(entry)["mcpServers"]["tmux-debug"]["args"] == ["--keep", "60m"]
    if b"tmux-debug" in data:
        printed, why = left_to_the_person(shell, *words, "--remove")
        assert why.startswith(f"tmux-debug: {path}{reason}")
        assert f"remove mcpServers.tmux-debug from {path}" in printed
    assert path.read_bytes() == data
    assert os.listdir(home) == [".claude.json"]


@pytest.mark.parametrize("data", NOT_TEXT)
def test_file_that_is_not_text_is_refused(shell: Shell, home: Path, data: bytes) -> None:
    path = home / ".claude.json"
    path.write_bytes(data)

    for action in ("--write", "--remove"):
        error = refusal(shell, "claude-code", "--scope", "user", action)
        assert error.startswith(f"tmux-debug: {path} is not UTF-8 (line ")
    assert path.read_bytes() == data


@pytest.mark.parametrize("start", ["/*x", "/* ", "[", '{"a":'])
def test_hostile_file_of_a_project_is_answered_at_once(
    shell: Shell, home: Path, project: Path, start: str
) -> None:
    """In proportion to the square of its size, one of these took half an hour."""
    assert home.is_dir()
    data = ("{" + start * (1 << 20))[: 1 << 20]
    (project / ".mcp.json").write_text(data)
    words = ("claude-code", "--scope", "project")

    printed, _ = left_to_the_person(shell, *words, "--write")

    assert '"tmux-debug": {' in printed
    assert (project / ".mcp.json").read_text() == data
    (project / ".mcp.json").write_text(data + " ")
    assert "1 MiB" in refusal(shell, *words, "--write")


def test_link_stays_a_link_and_what_it_leads_to_is_written(
    shell: Shell, config: Callable[..., str], home: Path, tmp_path: Path
) -> None:
    target = tmp_path / "dotfiles" / "codex.toml"
    target.parent.mkdir()
    target.write_text("model = 'x'\n")
    path = home / ".codex/config.toml"
    path.parent.mkdir()
    path.symlink_to(target)

    config("codex", "--write")

    assert path.is_symlink()
    assert "[mcp_servers.tmux-debug]" in target.read_text()
    assert os.listdir(target.parent) == ["codex.toml"]
    assert os.listdir(path.parent) == ["config.toml"]
    assert backups(shell, path) == [b"model = 'x'\n"]
    config("codex", "--remove")
    assert path.is_symlink()
    assert target.read_text() == "model = 'x'\n"


def test_read_only_file_is_refused(shell: Shell, home: Path) -> None:
    path = home / ".cursor/mcp.json"
    path.parent.mkdir()
    path.write_text("{}")
    path.chmod(0o444)

    assert "can't be written: it is read-only" in refusal(shell, "cursor", "--write")
    assert path.read_text() == "{}"
    assert os.listdir(path.parent) == ["mcp.json"]


def test_directory_that_is_a_file_is_refused(shell: Shell, home: Path) -> None:
    (home / ".cursor").write_text("")

    assert "can't be " in refusal(shell, "cursor", "--write")


def test_file_that_is_a_directory_is_refused(shell: Shell, home: Path) -> None:
    (home / ".cursor/mcp.json").mkdir(parents=True)

    assert "can't be read" in refusal(shell, "cursor", "--write")


@pytest.mark.parametrize("kind", ["device", "pipe", "kernel"])
@pytest.mark.parametrize("action", ["--write", "--remove"])
def test_what_is_not_a_file_is_refused_without_reading_it(
    shell: Shell, home: Path, kind: str, action: str
) -> None:
    path = home / ".cursor/mcp.json"
    path.parent.mkdir()
    if kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to({"device": "/dev/zero", "kernel": "/proc/self/mem"}[kind])

    error = refusal(shell, "cursor", action)

    assert error.startswith(f"tmux-debug: {path} can't be read: ")


def test_file_that_is_too_large_is_refused(shell: Shell, home: Path) -> None:
    path = home / ".cursor/mcp.json"
    path.parent.mkdir()
    path.touch()
    os.truncate(path, 1 << 40)

    assert "32 MiB" in refusal(shell, "cursor", "--write")


@pytest.mark.parametrize("action", ["--write", "--remove"])
@pytest.mark.parametrize("is_there", [True, False])
def test_link_that_leaves_the_project_is_refused(
    shell: Shell, home: Path, project: Path, action: str, *, is_there: bool
) -> None:
    secret = home / ".claude.json"
    if is_there:
        secret.write_text('{"mcpServers": {"a": {"env": {"TOKEN": "x"}}}}')
    (project / ".mcp.json").symlink_to(secret)
    before = sorted(os.listdir(project))

    error = refusal(shell, "claude-code", "--scope", "project", action)

    assert error.startswith(
        f"tmux-debug: {project}/.mcp.json leads through a link to {secret}, outside"
    )
    assert secret.exists() is is_there
    assert sorted(os.listdir(project)) == before
    assert not state(shell).exists()


def test_directory_that_leaves_the_project_is_refused(
    shell: Shell, home: Path, project: Path
) -> None:
    (home / ".codex").mkdir()
    (project / ".codex").symlink_to(home / ".codex")

    assert "outside" in refusal(shell, "codex", "--scope", "project", "--write")
    assert os.listdir(home / ".codex") == []


def test_terminal_is_not_sent_the_name_that_a_link_leads_to(
    shell: Shell, home: Path, project: Path
) -> None:
    (project / ".mcp.json").symlink_to(home / "\x1b]0;x\x07")

    assert "\x1b" not in refusal(shell, "claude-code", "--scope", "project", "--write")


def test_link_within_the_project_is_followed(config: Callable[..., str], project: Path) -> None:
    target = project / "shared.json"
    target.write_text("{}")
    (project / ".mcp.json").symlink_to("shared.json")

    config("claude-code", "--scope", "project", "--write")

    assert "tmux-debug" in target.read_text()
    assert (project / ".mcp.json").is_symlink()


def test_backup_is_only_for_its_owner_and_outside_the_project(
    shell: Shell, config: Callable[..., str], project: Path
) -> None:
    path = project / ".mcp.json"
    path.write_text("{}")
    path.chmod(0o644)
    before = sorted(os.listdir(project))

    written = config("claude-code", "--scope", "project", "--write")

    [backup] = [Path(found) for found in re.findall(r"is in (\S+)\.\n", written)]
    assert backup.read_text() == "{}"
    assert stat.S_IMODE(backup.stat().st_mode) == 0o600
    assert stat.S_IMODE(backup.parent.stat().st_mode) == 0o700
    assert backup.is_relative_to(state(shell) / "backups")
    assert sorted(os.listdir(project)) == before


def test_options_are_passed_on_word_by_word(config: Callable[..., str], home: Path) -> None:
    options = ["--env", "A='b c' D=$HOME", "--toolsets", "debug,terminal"]

    shown = config("codex", "--", *options)
    config("cursor", "--write", "--", *options)
    config("cursor", "--write")

    line = shown.rstrip().splitlines()[-1]
    assert shlex.split(line) == ["tmux-debug", "config", "codex", "--write", "--", *options]
    server = json.loads((home / ".cursor/mcp.json").read_text())["mcpServers"]["tmux-debug"]
    assert server["args"] == options
    config("cursor", "--write", "--")
    server = json.loads((home / ".cursor/mcp.json").read_text())["mcpServers"]["tmux-debug"]
    assert server["args"] == []


@pytest.mark.parametrize(
    "entry",
    [
        {"command": "other"},
        {"command": "ssh", "args": ["host", "tmux-debug-mcp"]},
        {"command": "tmux-debug-sandbox", "args": ["/path", "tmux-debug-mcp", "--keep", "60m"]},
    ],
)
def test_entry_of_somebody_else_stays(
    shell: Shell, config: Callable[..., str], home: Path, entry: dict[str, object]
) -> None:
    path = home / ".gemini/settings.json"
    path.parent.mkdir()
    text = json.dumps({"mcpServers": {"tmux-debug": entry}})
    path.write_text(text)

    for action in ("--write", "--remove"):
        printed, reason = left_to_the_person(shell, "gemini", action)
        assert "--name" in reason
        assert ("keep them." in printed) is (action == "--write")
    assert path.read_text() == text
    config("gemini", "--name", "terminals", "--write")
    servers = json.loads(path.read_text())["mcpServers"]
    assert list(servers) == ["tmux-debug", "terminals"]
    config("gemini", "--name", "terminals", "--remove")
    assert path.read_text() == text


def test_subagent_of_somebody_else_stays(shell: Shell, home: Path) -> None:
    path = home / ".claude/agents/tmux-debug.md"
    path.parent.mkdir(parents=True)
    path.write_text("---\nname: tmux-debug\n---\nMine.\n")

    printed, reason = left_to_the_person(shell, "claude-code", "--write")

    assert "--name" in reason
    assert printed.startswith(f"Put this in {path}:\n\n---\nname: tmux-debug\n")
    assert path.read_text() == "---\nname: tmux-debug\n---\nMine.\n"


def test_prompt_that_a_person_has_changed_is_kept(
    shell: Shell, config: Callable[..., str], home: Path
) -> None:
    path = home / ".claude/agents/tmux-debug.md"
    config("claude-code", "--write")
    edited = path.read_text() + "Be brief.\n"
    path.write_text(edited)

    assert "already" in config("claude-code", "--write")
    config("claude-code", "--remove")

    assert not path.exists()
    assert backups(shell, path) == [edited.encode()]


@pytest.mark.parametrize("options", [["--toolsets", "tmux"], ["--toolsets=terminal,tabs"]])
def test_prompt_of_a_subagent_names_no_tools_that_it_lacks(
    config: Callable[..., str], home: Path, options: list[str]
) -> None:
    path = home / ".claude/agents/tmux-debug.md"
    config("claude-code", "--write")
    assert "tmux_create_pane" in path.read_text()

    shown = config("claude-code", "--", *options)
    config("claude-code", "--write", "--", *options)

    assert "tmux_" not in shown
    assert "tmux_" not in path.read_text()
    config("claude-code", "--write", "--")
    assert "tmux_create_pane" in path.read_text()


def test_project_scope_is_the_current_directory(config: Callable[..., str], shell: Shell) -> None:
    config("claude-code", "--scope", "project", "--write")
    config("opencode", "--scope", "project", "--write")

    server = json.loads((shell.cwd / ".mcp.json").read_text())["mcpServers"]["tmux-debug"]
    assert server["type"] == "stdio"
    opencode = json.loads((shell.cwd / "opencode.json").read_text())
    assert opencode["mcp"]["tmux-debug"]["type"] == "local"


def test_file_with_comments_of_opencode_is_the_one_that_is_named(shell: Shell, home: Path) -> None:
    path = home / ".config/opencode/opencode.jsonc"
    path.parent.mkdir(parents=True)
    path.write_text('{\n  // mine\n  "model": "a/b",\n}\n')

    printed, reason = left_to_the_person(shell, "opencode", "--write")

    assert printed.startswith(f"Put this in {path}, at mcp.tmux-debug:\n\n")
    assert f"{path}:2:3 has comments" in reason
    assert not path.with_suffix(".json").exists()


def test_line_for_claude_code_and_the_file_that_it_rewrites(
    shell: Shell, config: Callable[..., str]
) -> None:
    line = config("claude-code", "--scope", "command", "--", "--env", "A='b c'")

    words = shlex.split(line)
    assert words[:7] == ["claude", "mcp", "add", "--scope", "user", "tmux-debug", "--"]
    assert Path(words[7]).is_file()
    assert words[8:] == ["--env", "A='b c'"]
    shown = config("claude-code", "--scope", "user")
    assert "claude mcp add --scope user" in shown
    assert "run" in refusal(shell, "claude-code", "--scope", "command", "--write").lower()


@pytest.mark.parametrize(
    "words",
    [
        ["zed", "--scope", "project"],
        ["codex", "--scope", "subagent"],
        ["codex", "--name", "a b"],
        ["codex", "--name", "../x"],
        ["codex", "--command", "/none"],
        ["codex", "--command", "sh"],
        ["codex", "--", "--kep"],
        ["nix", "--write"],
    ],
)
def test_what_can_not_be_done_is_refused(shell: Shell, home: Path, words: list[str]) -> None:
    refusal(shell, *words)
    assert os.listdir(home) == []


@pytest.mark.parametrize("words", [["emacs"], ["codex", "--write", "--remove"]])
def test_wrong_command_line_shows_the_usage(shell: Shell, words: list[str]) -> None:
    done = shell.run("config", *words)

    assert done.returncode == 125
    assert "\nusage: tmux-debug config CLIENT" in done.stderr


def test_both_programs_have_the_verb(shell: Shell, config: Callable[..., str]) -> None:
    other = [sys.executable, "-c", "from tmux_debug_mcp.command.serve import main; main()"]
    path = f"{Path(sys.executable).parent}:{shell.env['PATH']}"
    done = subprocess.run(
        [*other, "config", "codex"],
        env=shell.env | {"PATH": path},
        cwd=shell.cwd,
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stdout) == (0, config("codex"))


def test_line_to_write_names_a_command_that_is_there(
    shell: Shell, home: Path, on_path: Path
) -> None:
    assert home.is_dir()
    bin_directory = Path(sys.executable).parent
    in_venv = os.path.relpath(bin_directory, shell.cwd) + "/tmux-debug"
    path = f"{bin_directory}:{shell.env['PATH']}"
    for program, env, typed in (
        (in_venv, {"PATH": "/usr/bin:/bin"}, in_venv),
        (in_venv, {"PATH": f"{on_path}:/usr/bin:/bin"}, in_venv),  # another one
        ("tmux-debug", {"PATH": path}, "tmux-debug"),
    ):
        shown = subprocess.check_output(
            [program, "config", "codex"], env=shell.env | env, cwd=shell.cwd, text=True
        )
        assert shown.endswith(f"\n\n{shlex.quote(typed)} config codex --write\n")


def test_line_to_write_uses_the_launcher_that_started_us(shell: Shell, home: Path) -> None:
    cached = home / "cache/archive-v0/ab/bin"
    cached.mkdir(parents=True)
    (home / "cache/CACHEDIR.TAG").touch()
    program = cached / "tmux-debug-mcp"
    # A path with blanks can't stand behind #!; this is what pip writes then.
    program.write_text(
        f"#!/bin/sh\n'''exec' \"{sys.executable}\" \"$0\" \"$@\"\n' '''\n"
        "from tmux_debug_mcp.command.serve import main\nmain()\n"
    )
    program.chmod(0o755)

    def out(*words: str) -> str:
        return subprocess.check_output([program, "config", *words], env=shell.env, text=True)

    shown = out("cursor")

    line = shlex.split(shown.split("let config write it:\n\n")[1].splitlines()[0])
    assert line[0] == "uvx"
    assert line[-4:] == ["tmux-debug-mcp", "config", "cursor", "--write"]
    assert '"command": "uvx"' in shown
    out("cursor", "--write", "--", "--keep", "60m")
    written = (home / ".cursor/mcp.json").read_text()
    assert out("cursor", "--write").endswith("Nothing was changed.\n")
    assert out("cursor", "--write", "--", "--keep", "60m").endswith("Nothing was changed.\n")
    assert (home / ".cursor/mcp.json").read_text() == written


def test_nix_has_lines_to_copy(config: Callable[..., str]) -> None:
    text = config("nix")

    assert "mcpConfig { tmux-debug = { }; }" in text
    assert "mkSandbox {" in text


def test_command_that_is_written_starts_the_server(
    config: Callable[..., str], shell: Shell, home: Path
) -> None:
    config("cursor", "--write", "--command", "tmux-debug-mcp")
    server = json.loads((home / ".cursor/mcp.json").read_text())["mcpServers"]["tmux-debug"]

    done = subprocess.run(
        [server["command"], *server["args"], "--version"],
        env=shell.env,
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout.startswith("tmux-debug-mcp ")


@pytest.mark.skipif(not BESIDE.exists(), reason="tmux-debug-mcp is not beside this Python")
def test_program_of_this_installation_is_written(config: Callable[..., str], home: Path) -> None:
    assert PROGRAM[0] == sys.executable
    config("cursor", "--write")

    server = json.loads((home / ".cursor/mcp.json").read_text())["mcpServers"]["tmux-debug"]
    assert server["command"] == str(BESIDE)


@pytest.mark.parametrize("client", ["claude-code", "codex", "gemini", "opencode", "cursor"])
def test_what_is_written_last_is_how_to_allow_the_tools(
    config: Callable[..., str], client: str
) -> None:
    [*_, permission] = config(client, "--name", "terminals", "--write").splitlines()

    assert re.search(r"\bterminals\b|mcp__terminals\b", permission)
    assert permission.endswith("To check the entry: tmux-debug doctor")
