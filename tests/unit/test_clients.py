"""Files of MCP clients: what is put, kept, brought up to date, removed and refused."""

import contextlib
import json
import os
import resource
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tmux_debug_mcp.clients import agent_file, files, jsonc, programs, toml_text, yaml_text
from tmux_debug_mcp.clients.formats import FormatError
from tmux_debug_mcp.clients.merging import Slot, merged, removed
from tmux_debug_mcp.clients.table import CLIENTS, Homes
from tmux_debug_mcp.errors import StartError
from tmux_debug_mcp.options import OptionError, checked, parse_all
from tmux_debug_mcp.sockets.servers import CommandError

ROOT = Path(__file__).parents[2]
PROGRAM = ["/opt/bin/tmux-debug-mcp"]
ENTRY: dict[str, object] = {"command": PROGRAM[0], "args": []}


def shape(words: list[str]) -> dict[str, object]:
    return {"command": words[0], "args": words[1:]}


def put(slot: Slot, entry: dict[str, object]) -> str:
    """Return a file that has only an entry."""
    return next(slot.format.put("", slot.path, entry))


JSON = Slot(jsonc, ("mcpServers", "tmux-debug"), shape)
TOML = Slot(toml_text, ("mcp_servers", "tmux-debug"), shape)
YAML = Slot(yaml_text, ("extensions", "tmux-debug"), shape)

# Each with what it is after our entry was put and removed, where that is not the same.
FILES = [
    (JSON, "", None),
    (JSON, "// mine\n", "// mine\n{}\n"),
    (JSON, "{}"),
    (JSON, '{"a": 1}'),
    (JSON, '\ufeff{\r\n\t"mcpServers": {\r\n\t\t"a": {}, // one\r\n\t},\r\n}\r\n'),
    (JSON, '{"a": 1, "mcpServers": {}}', '{"a": 1}'),
    (JSON, '{"a": 1, "mcpServers": { /* mine */ }}'),
    (TOML, "", None),
    (TOML, "# mine\n"),
    (TOML, "\ufeffa = 1  # one\r\n"),
    (TOML, "[mcp_servers]\n"),
    (TOML, "mcp_servers = { a = {command = 'x'}}\n"),
    (TOML, "mcp_servers.a.command = 'x'\n"),
    (TOML, "[mcp_servers.a]\ncommand = 'x'\n\n# of b\n[b]\nlines = '''\n[c]\n'''\n"),
    (YAML, "", None),
    (YAML, "# mine\n"),
    (YAML, "---\na: 1\n"),
    (YAML, "\ufeffa: 1\r\nextensions: # ours\r\n    # one\r\n    b: {c: 1}\r\n# two\r\n"),
    (YAML, "extensions:\nb: 1\n", "b: 1\n"),
    (YAML, "extensions: {}\nb: |\n  text\n", "b: |\n  text\n"),
    (YAML, "extensions:\n  b:\n    c: |\n      text\n\n# end\n"),
    (YAML, "extensions:\n  # mine\nb: 1\n", "  # mine\nb: 1\n"),
    (YAML, '{"a": 1}\n'),
    (YAML, "extensions: {'b': {c: 1}} # mine\n"),
    (YAML, "extensions:\n  b:\n    bundled: null\n    args:\n    - '-y'\n"),
]


@pytest.mark.parametrize("case", FILES)
def test_entry_is_put_once_and_removed_with_what_has_nothing_else(
    case: tuple[Slot, str] | tuple[Slot, str, str | None],
) -> None:
    slot, text = case[:2]
    after = merged(text, slot, PROGRAM, [])

    assert slot.entry(after) == ENTRY
    assert merged(after, slot, PROGRAM, []) == after
    assert removed(after, slot) == case[-1]


@pytest.mark.parametrize(("slot", "text"), [case[:2] for case in FILES])
def test_lines_that_were_there_stay_in_their_order(slot: Slot, text: str) -> None:
    if text.count("\n") < 2:
        return
    after = merged(text, slot, PROGRAM, [])

    lines = iter(after.replace(",", "").splitlines())
    known = [line for line in text.replace(",", "").splitlines() if "extensions: {}" not in line]
    assert all(line in lines for line in known)


@pytest.mark.parametrize("slot", [JSON, TOML, YAML])
def test_entry_of_ours_is_brought_up_to_date_and_keeps_what_a_person_added(slot: Slot) -> None:
    old: dict[str, object] = {"command": "uvx", "args": ["tmux-debug-mcp", "--keep", "60m"]}
    text = put(slot, old | {"enabled": False})

    updated = merged(text, slot, PROGRAM, None)
    cleared = merged(text, slot, PROGRAM, [])

    assert slot.entry(updated) == {
        "command": PROGRAM[0],
        "args": ["--keep", "60m"],
        "enabled": False,
    }
    assert slot.entry(cleared) == ENTRY | {"enabled": False}


@pytest.mark.parametrize("slot", [JSON, TOML, YAML])
@pytest.mark.parametrize(
    "foreign", [{"command": "other", "args": []}, {"url": "http://localhost"}, {}]
)
def test_entry_of_somebody_else_is_refused(slot: Slot, foreign: dict[str, object]) -> None:
    text = put(slot, foreign)

    with pytest.raises(CommandError, match="--name"):
        merged(text, slot, PROGRAM, [])
    with pytest.raises(CommandError, match="--name"):
        removed(text, slot)


def test_entry_that_is_there_several_times_is_removed_whole() -> None:
    text = json.dumps(ENTRY)
    text = f'{{"mcpServers": {{"tmux-debug": {text}, "a": 1, "tmux-debug": {text}}}}}'

    assert removed(text, JSON) == '{"mcpServers": { "a": 1}}'


OURS = '{"command": "/old/tmux-debug-mcp"}'


@pytest.mark.parametrize(
    ("slot", "text", "left"),
    [
        (TOML, "mcp_servers.tmux-debug.command = '/old/tmux-debug-mcp'\n", ""),
        (TOML, "mcp_servers.tmux-debug = {command = '/old/tmux-debug-mcp'}\n", ""),
        (TOML, "[mcp_servers.tmux-debug]\ncommand = '/old/tmux-debug-mcp'\n", ""),
        (JSON, '{"mcpServers": {"a": {}}, "mcpServers": {}}', None),
        (JSON, f'{{"mcpServers": {{"tmux-debug": {{}}, "tmux-debug": {OURS}}}}}', None),
        (JSON, f'{{"mcpServers": {{"tmux-debug": {OURS}, "tmux-debug": {OURS}}}}}', "{}"),
    ],
)
def test_entry_that_was_put_over_another_is_removed(
    slot: Slot, text: str, left: str | None
) -> None:
    after = merged(text, slot, PROGRAM, None)

    without = removed(after, slot) or ""

    assert PROGRAM[0] not in without
    if left is not None:
        assert slot.format.load(without) in (slot.format.load(left), {slot.path[0]: {}})


def test_table_that_others_have_left_is_removed_with_our_entry() -> None:
    before = "[mcp_servers.a]\ncommand = 'x'\n"
    after = merged(before, TOML, PROGRAM, [])

    assert removed(after.replace(before, ""), TOML) == ""


def test_comment_behind_our_table_stays() -> None:
    ours = "[mcp_servers.tmux-debug]\ncommand = '/bin/tmux-debug-mcp'\n"
    text = f"a = 1\n\n{ours}\n[mcp_servers.tmux-debug.env]\nA = '1'\n\n# of b\n[b]\n"

    assert removed(text, TOML) == "a = 1\n\n# of b\n[b]\n"


@pytest.mark.parametrize(
    ("slot", "text", "reason", "line"),
    [
        (JSON, '{\n"a"}', "is not JSON", 2),
        (JSON, "[]", "is not a settings object", 1),
        (JSON, '{"mcpServers": 1}', "has no object at 'mcpServers'", 0),
        (TOML, "a = 1\nb =\n", "is not TOML", 2),
        (TOML, f"a = {'1' * 5000}\n", "has an integer that is too long", 0),
        (TOML, f"a = {'[' * 5000}{']' * 5000}\n", "is nested too deeply", 0),
        (TOML, "mcp_servers = 1\n", "has no object at 'mcp_servers'", 0),
        (TOML, "[[mcp_servers]]\na = 1\n", "has no object at 'mcp_servers'", 0),
        (YAML, "a: 1\n  b: 2\n", "is not YAML", 2),
        (YAML, "- a\n", "is not a settings object", 1),
        (YAML, "extensions: [a]\n", "has no object at 'extensions'", 0),
        (YAML, "a: 1\na: 2\n", "duplicate key", 2),
        (YAML, "a: 1\n---\nb: 1\n", "another document", 2),
        (YAML, "a: &x {b: 1}\nextensions: *x\n", "losing something", 0),
    ],
)
def test_what_can_not_be_changed_is_refused(slot: Slot, text: str, reason: str, line: int) -> None:
    with pytest.raises(FormatError, match=reason) as caught:
        merged(text, slot, PROGRAM, [])

    assert caught.value.line == line


def test_key_of_thousands_of_parts_is_kept_or_refused() -> None:
    text = f"{'.'.join('a' * 2000)} = 1\n"
    with contextlib.suppress(FormatError):  # how deep is too deep depends on Python
        assert merged(text, TOML, PROGRAM, []).startswith(text)


SCALARS = st.one_of(st.booleans(), st.integers(-9, 9), st.text("ab\"'\\#: -é\n", max_size=6))
MAPPINGS = st.dictionaries(
    st.sampled_from(["a", "b", "extensions", "mcp_servers"]),
    st.dictionaries(st.sampled_from(["a", "b c"]), SCALARS, max_size=2),
    max_size=3,
)


@given(MAPPINGS, st.sampled_from([TOML, YAML]))
def test_any_file_has_what_it_had_and_our_entry(
    value: dict[str, dict[str, object]], slot: Slot
) -> None:
    text = _toml(value) if slot is TOML else yaml_text.dump(dict(value))
    assert slot.format.load(text) == value

    after = merged(text, slot, PROGRAM, [])

    parent = str(slot.path[0])
    assert slot.format.load(after) == value | {
        parent: value.get(parent, {}) | {"tmux-debug": ENTRY}
    }
    without = slot.format.load(removed(after, slot) or "")
    assert isinstance(without, dict)
    assert without | {parent: without.get(parent, {})} == value | {parent: value.get(parent, {})}


def _toml(value: dict[str, dict[str, object]]) -> str:
    tables = []
    for name, table in value.items():
        lines = [f"{json.dumps(key)} = {json.dumps(member)}" for key, member in table.items()]
        tables.append("\n".join([f"[{name}]", *lines, ""]))
    return "\n".join(tables)


@given(st.text())
def test_any_scalar_is_written_as_text(text: str) -> None:
    assert yaml_text.load(yaml_text.dump({"a": text, "b": [text]})) == {"a": text, "b": [text]}


@pytest.mark.parametrize(
    ("toolsets", "prompt"),
    [
        ("debug", "subagent.md"),
        ("terminal, debug", "subagent.md"),
        ("tmux", "subagent-other.md"),
        ("tabs,terminal", "subagent-other.md"),
    ],
)
def test_subagent_has_the_prompt_that_nix_gives_it(toolsets: str, prompt: str) -> None:
    of_nix = ROOT / "lib/mcp/tmux" / prompt
    if not of_nix.exists():
        pytest.skip("Nix builds without its own files")
    entry = ENTRY | {"args": ["--toolsets", toolsets]}
    text = next(agent_file.put("", ("mcpServers", 0, "tmux-debug"), entry))

    assert text.endswith(f"---\n{of_nix.read_text()}")
    front = agent_file.load(text)
    assert isinstance(front, dict)
    assert front["mcpServers"] == [{"tmux-debug": entry}]
    assert front["description"] in (ROOT / "lib/mcp/tmux/default.nix").read_text()


def test_prompt_of_a_subagent_stays_when_its_command_changes() -> None:
    slot = Slot(agent_file, ("mcpServers", 0, "debug"), shape)
    text = put(slot, ENTRY).replace("Report:", "Report --- in French:")

    after = merged(text, slot, ["/new/tmux-debug-mcp"], ["--keep", "60m"])

    assert after == text.replace("/opt/bin/", "/new/").replace("[]", '["--keep", "60m"]')


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"HOME": "/h"}, "/h/.config"),
        ({"HOME": "/h", "XDG_CONFIG_HOME": "/x"}, "/x"),
        ({"HOME": "/h", "XDG_CONFIG_HOME": "relative"}, "/h/.config"),
    ],
)
def test_configuration_directory(environ: dict[str, str], expected: str) -> None:
    assert str(Homes(environ, Path("/p")).config) == expected


def test_places() -> None:
    homes = Homes({"HOME": "/h"}, Path("/p"))
    found = {
        (name, scope): str(place(homes))
        for name, client in CLIENTS.items()
        for scope, place in client.places.items()
    }

    assert found == {
        ("claude-code", "user"): "/h/.claude.json",
        ("claude-code", "project"): "/p/.mcp.json",
        ("codex", "user"): "/h/.codex/config.toml",
        ("codex", "project"): "/p/.codex/config.toml",
        ("gemini", "user"): "/h/.gemini/settings.json",
        ("gemini", "project"): "/p/.gemini/settings.json",
        ("opencode", "user"): "/h/.config/opencode/opencode.json",
        ("opencode", "project"): "/p/opencode.json",
        ("vscode", "user"): "/h/.config/Code/User/mcp.json",
        ("vscode", "project"): "/p/.vscode/mcp.json",
        ("cursor", "user"): "/h/.cursor/mcp.json",
        ("cursor", "project"): "/p/.cursor/mcp.json",
        ("zed", "user"): "/h/.config/zed/settings.json",
        ("goose", "user"): "/h/.config/goose/config.yaml",
    }
    moved = Homes({"HOME": "/h", "CODEX_HOME": "/c"}, Path("/p"))
    assert str(CLIENTS["codex"].places["user"](moved)) == "/c/config.toml"


def program(path: Path) -> Path:
    """Make a program."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def test_program_beside_the_one_that_runs_is_found(tmp_path: Path) -> None:
    installed = program(tmp_path / "bin/tmux-debug-mcp")

    found = programs.find(str(tmp_path / "bin/tmux-debug"), "/usr/bin/python3", {"PATH": "/bin"})

    assert found.words == (str(installed),)


def test_program_is_found_by_the_python_that_runs(tmp_path: Path) -> None:
    installed = program(tmp_path / "venv/bin/tmux-debug-mcp")

    found = programs.find("-c", str(installed.with_name("python3")), {"PATH": "/bin"})

    assert found.words == (str(installed),)


@pytest.mark.parametrize("path", [".cache/uv/environments-v2/ab/bin", "cache/archive-v0/ab/bin"])
def test_program_in_a_cache_of_uv_is_started_by_uvx(tmp_path: Path, path: str) -> None:
    cached = program(tmp_path / path / "tmux-debug-mcp")

    found = programs.find(str(cached.with_name("tmux-debug")), "python3", {})

    assert found.words[0] == "uvx"
    assert found.words[-1] == "tmux-debug-mcp"


def test_program_of_a_profile_of_nix_is_preferred(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = tmp_path / "profile/bin/tmux-debug-mcp"
    link.parent.mkdir(parents=True)
    link.symlink_to("/nix/store/ab-tmux-debug-mcp/bin/tmux-debug-mcp")
    monkeypatch.setattr("os.access", lambda *_: True)
    store = "/nix/store/ab-tmux-debug-mcp/bin/tmux-debug"

    found = programs.find(store, "python3", {"PATH": f"/bin:{link.parent}"})
    temporary = programs.find(store, "python3", {"PATH": "/none"})

    assert found.words == (str(link),)
    assert temporary.words == ("/nix/store/ab-tmux-debug-mcp/bin/tmux-debug-mcp",)
    assert "garbage" in temporary.note


def test_no_program_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="--command"):
        programs.find(str(tmp_path / "tmux-debug"), str(tmp_path / "python3"), {"PATH": "/none"})


@pytest.mark.parametrize(
    ("words", "length", "is_direct"),
    [
        (["/bin/tmux-debug-mcp", "--keep", "1h"], 1, True),
        (["/usr/bin/python3.12", "-m", "tmux_debug_mcp", "--size"], 3, True),
        (["python3", "-c", "tmux_debug_mcp"], 3, False),
        (["uvx", "--from", "/clone", "tmux-debug-mcp", "--allow-kill"], 4, False),
        (["podman", "run", "tmux-debug-mcp"], 3, False),
        (["sh", "-c", "exec tmux-debug-mcp"], 0, False),
        (["sh", "-c", "tmux-debug-mcp; rm -r /"], 0, False),
        (["npx", "other"], 0, False),
        ([], 0, False),
    ],
)
def test_command_is_divided_into_what_starts_the_server_and_its_options(
    words: list[str], length: int, *, is_direct: bool
) -> None:
    parts = programs.split(words)

    assert parts == ((words[:length], words[length:]) if length else None)
    assert bool(parts and programs.is_direct(parts[0])) is is_direct


@pytest.mark.parametrize(
    "words",
    [
        ["--keep", "60m"],
        ["--toolsets=debug,terminal", "--size", "100x30"],
        ["--socket", "default", "--toolsets", "tmux", "--allow-kill"],
    ],
)
def test_options_that_the_server_takes(words: list[str]) -> None:
    checked(parse_all(words, {}), {})


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--kep", "60m"], "Option '--kep' is unknown. Did you mean --keep?"),
        (["--keep"], "Option --keep needs a value. Give --keep=TIME."),
        (["--audit", "--keep", "60m"], "Option --audit needs a value. Give --audit=FILE."),
        (["--allow-kill=0"], "Option --allow-kill takes no value. Remove '=0'."),
        (["--toolsets", ""], "No toolset is chosen."),
        (["--toolsets", "debug,tmux"], "both have a tool"),
        (["--keep", "long"], "Give a time"),
        (["--toolsets", "debgu"], "no toolset 'debgu'"),
        (["--size", "1x1"], "Give columns and rows"),
        (["--size", "80x24"], "--toolsets"),
        (["--allow-kill"], "--socket"),
        (["--socket", "default"], "--toolsets"),
        (["--cwd", "/none"], "--cwd"),
        (["--version"], "Option '--version' is unknown."),
        (["demo"], "Option 'demo' is unknown. tmux-debug-mcp --help lists all options."),
    ],
)
def test_options_that_the_server_does_not_take(words: list[str], reason: str) -> None:
    with pytest.raises((OptionError, StartError)) as raised:
        checked(parse_all(words, {}), {})

    assert reason in str(raised.value)


def backups_in(directory: Path) -> list[str]:
    """Return the backups below a directory, the oldest first."""
    found = sorted((directory / "backups").rglob("*"))
    return [path.read_text() for path in found if path.is_file()]


def test_file_that_changes_meanwhile_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text("{}")
    file = files.read(path)
    path.write_text('{"a": 1}')

    with pytest.raises(CommandError, match="Another program"):
        files.write(file, "{}\n", tmp_path / "backups")

    assert path.read_text() == '{"a": 1}'
    assert backups_in(tmp_path) == []


def test_backups_of_one_second_are_all_kept_in_their_order(tmp_path: Path) -> None:
    path = tmp_path / "a[b].json"
    for number in range(12):
        path.write_text(str(number))
        files.write(files.read(path), "x", tmp_path / "backups")

    assert backups_in(tmp_path) == [str(number) for number in range(12)]


def test_nothing_is_left_where_writing_fails(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text("{}")
    file = files.read(path)
    path.unlink()
    path.mkdir()

    with pytest.raises(CommandError):
        files.write(file, "{}\n", tmp_path / "backups")

    assert [one for one in os.listdir(tmp_path) if one.endswith(".tmp")] == []
    assert backups_in(tmp_path) == []


def test_no_part_of_a_backup_is_left_where_the_disk_is_full(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text("a" * 100)
    file = files.read(path)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, limits[1]))

    try:
        with pytest.raises(CommandError, match="can't be written: File too large"):
            files.write(file, "{}\n", tmp_path / "backups")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)

    assert path.read_text() == "a" * 100
    assert backups_in(tmp_path) == []


def test_terminal_is_not_sent_what_it_would_act_on() -> None:
    text = files.diff(Path("a"), "", f"\x1b]0;x\x07\x9b1m\u202e\r\n{'y' * 1000}\n")

    assert not any(ord(one) < 32 and one != "\n" for one in text)
    assert "\x9b" not in text
    assert "\u202e" not in text
    assert max(map(len, text.splitlines())) <= 201


def test_path_in_a_difference_is_whole() -> None:
    path = Path("/", "long " * 50, "settings.json")

    assert f"+++ {path}\n" in files.diff(path, "", "a")


def test_toml_that_tomlkit_writes_is_what_python_reads() -> None:
    text = merged("", TOML, ['/odd "path"\\é/tmux-debug-mcp'], ["--env", "A='b c' D=\t"])

    assert tomllib.loads(text)["mcp_servers"]["tmux-debug"] == {
        "command": '/odd "path"\\é/tmux-debug-mcp',
        "args": ["--env", "A='b c' D=\t"],
    }
