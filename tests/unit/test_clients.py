"""Files of MCP clients: what is put, kept, brought up to date, removed and refused."""

import contextlib
import difflib
import json
import os
import resource
import tomllib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tmux_debug_mcp.clients import agent_file, json_file, programs, storage, toml_file, yaml_file
from tmux_debug_mcp.clients.editing import EditError, Slot, UneditedError
from tmux_debug_mcp.clients.table import CLIENTS, Homes
from tmux_debug_mcp.errors import StartError
from tmux_debug_mcp.option_checks import checked
from tmux_debug_mcp.options import OptionError, parse_all
from tmux_debug_mcp.sockets.servers import VerbError

ROOT = Path(__file__).parents[2]
PROGRAM = ["/opt/bin/tmux-debug-mcp"]
ENTRY: dict[str, object] = {"command": PROGRAM[0], "args": []}


def shape(words: list[str]) -> dict[str, object]:
    return {"command": words[0], "args": words[1:]}


def typed(words: list[str]) -> dict[str, object]:
    return {"type": "stdio", **shape(words)}


JSON = Slot(json_file, ("mcpServers", "tmux-debug"), shape)
TOML = Slot(toml_file, ("mcp_servers", "tmux-debug"), shape)
YAML = Slot(yaml_file, ("extensions", "tmux-debug"), shape)
AGENT = Slot(agent_file, ("mcpServers", "tmux-debug"), typed)

# Each with what it is after our entry was put and removed, where that is not the same.
FILES = [
    (JSON, ""),
    (JSON, "{}"),
    (JSON, '{"a": 1}'),
    (JSON, '{"a":1,"b":[1,2]}'),
    (JSON, '{"a": 1, "mcpServers": {}}', '{"a": 1}'),
    (JSON, '{\n\t"a": 1\n}\n'),
    (JSON, '{\r\n  "a": [1,\r\n 2]\r\n}\r\n'),
    (
        JSON,
        '{\n   "mcpServers": {\n      "a":   {"args": ["-y", 1e5]}\n   },\n\n   "b": "\\u00e9"\n}',
    ),
    (JSON, '{"mcpServers": {"a": {"command": "x"},\n                "b": {}}}\n'),
    (TOML, ""),
    (TOML, "# mine\n"),
    (TOML, "a = 1  # one\r\n"),
    (TOML, "[mcp_servers]\n"),
    (TOML, "mcp_servers.a.command = 'x'\n"),
    (TOML, "a = 1", "a = 1\n"),
    (TOML, "[mcp_servers.a]\ncommand = 'x'\n\n# of b\n[b]\nlines = '''\n[c]\n'''\n"),
    (AGENT, ""),
]


# As clients write them.
CODEX = """\
model = "gpt-5.5-codex"
notify = ["notify-send", "Codex"]

[projects."/home/me/a.b"]
trust_level = "trusted"

[mcp_servers.docs]
command = "npx"
args = ["-y", "@scope/docs@1.2.3"]

[mcp_servers.docs.env]
TOKEN = "a#b"

[tui]
notifications = true
"""
CLAUDE = json.dumps(
    {
        "numStartups": 7,
        "projects": {"/home/me/é": {"allowedTools": [], "mcpServers": {}, "history": [{"a": "{"}]}},
        "mcpServers": {"docs": {"type": "stdio", "command": "npx", "args": ["-y"], "env": {}}},
        "oauthAccount": None,
    },
    indent=2,
    ensure_ascii=False,
)
VS_CODE = """\
{
\t"servers": {
\t\t"github": {
\t\t\t"url": "https://api.example.com/mcp/",
\t\t\t"type": "http"
\t\t}
\t},
\t"inputs": []
}"""
OF_CLIENTS = {"codex": CODEX, "claude-code": CLAUDE, "gemini": CLAUDE, "vscode": VS_CODE}


@pytest.mark.parametrize("client", OF_CLIENTS)
def test_file_that_a_client_has_written_gets_only_new_lines_and_loses_them_again(
    client: str,
) -> None:
    row, text = CLIENTS[client], OF_CLIENTS[client]
    slot = Slot(row.language, (row.key, "tmux-debug"), lambda words: row.shape("", words))

    after = slot.merged(text, PROGRAM, ["--keep", "60m"])

    changes = difflib.ndiff(text.splitlines(), after.splitlines())
    lost = [change[2:] for change in changes if change.startswith("-")]
    assert all(f"{line}," in after.splitlines() for line in lost)
    assert len(lost) <= 1
    assert slot.removed(slot.merged(after, ["/new/tmux-debug-mcp"], None)) == text


@pytest.mark.parametrize("case", FILES)
def test_entry_is_put_once_and_removed_with_what_has_nothing_else(
    case: tuple[Slot, str] | tuple[Slot, str, str],
) -> None:
    slot, text = case[:2]
    after = slot.merged(text, PROGRAM, [])

    assert slot.entry(after) == slot.shape(PROGRAM)
    assert slot.merged(after, PROGRAM, []) == after
    assert slot.removed(after) == case[-1]


@pytest.mark.parametrize(("slot", "text"), [case[:2] for case in FILES])
def test_lines_that_were_there_stay_as_they_are(slot: Slot, text: str) -> None:
    after = slot.merged(text, PROGRAM, [])

    changes = list(difflib.ndiff(text.splitlines(), after.splitlines()))
    lost = [change[2:].rstrip(",") for change in changes if change.startswith("-")]
    if text.count("\n") > 1:  # the line before ours got a comma
        added = [change[2:].rstrip(",") for change in changes if change.startswith("+")]
        assert len(lost) <= 1
        assert all(any(line.startswith(one.rstrip("}")) for line in added) for one in lost)


def test_entry_in_a_file_with_odd_indentation_looks_like_its_neighbours() -> None:
    text = '{\n   "mcpServers": {\n      "a":   {"args": ["-y"]}\n   }\n}'

    assert JSON.merged(text, PROGRAM, ["--keep", "60m"]) == (
        '{\n   "mcpServers": {\n      "a":   {"args": ["-y"]},\n      "tmux-debug": {\n'
        '         "command": "/opt/bin/tmux-debug-mcp",\n         "args": ["--keep", "60m"]\n'
        "      }\n   }\n}"
    )


@pytest.mark.parametrize("slot", [JSON, TOML, AGENT])
def test_entry_of_ours_is_brought_up_to_date_and_keeps_what_a_person_added(slot: Slot) -> None:
    old = slot.shape(["/old/bin/tmux-debug-mcp", "--keep", "60m"])
    added = {} if slot is AGENT else {"enabled": False}
    text = slot.language.put("", slot.keys, old | added)

    updated = slot.merged(text, PROGRAM, None)
    cleared = slot.merged(text, PROGRAM, [])

    assert slot.entry(updated) == slot.shape([*PROGRAM, "--keep", "60m"]) | added
    assert slot.entry(cleared) == slot.shape(PROGRAM) | added
    assert slot.merged(updated, PROGRAM, None) == updated


# Commands that contain our words, and that may do something else than start our server here.
FOREIGN = [
    ["ssh", "host", "tmux-debug-mcp"],
    ["ssh host /opt/tmux-debug-mcp"],
    ["/usr/bin/ssh host /opt/tmux-debug-mcp"],
    ["tmux-debug-sandbox", "/path", "tmux-debug-mcp", "--keep", "60m"],
    ["sudo", "-u", "me", "/opt/bin/tmux-debug-mcp"],
    ["env", "A=1", "tmux-debug-mcp"],
    ["docker", "run", "-i", "tmux-debug-mcp"],
    ["sh", "-c", "tmux-debug-mcp; rm -r /"],
    ["uvx", "--from", "/home/me/tmux-debug-mcp", "other"],
    ["uvx", "--with", "x", "tmux-debug-mcp"],
    ["uvx", "--from", "x\0tmux-debug-mcp"],
    ["uv", "run", "tmux-debug-mcp"],
    ["pipx", "install", "tmux-debug-mcp"],
    ["python3", "-c", "tmux_debug_mcp"],
    ["python3", "/x/y.py", "-m", "tmux_debug_mcp"],
    ["npx", "other"],
]


@pytest.mark.parametrize("slot", [JSON, TOML])
@pytest.mark.parametrize(
    "foreign",
    [*map(shape, FOREIGN), {"url": "http://localhost"}, {}, {"command": 1}, {"args": ["x"]}],
)
def test_entry_that_may_be_somebody_elses_is_refused(
    slot: Slot, foreign: dict[str, object]
) -> None:
    text = slot.language.put("", slot.keys, foreign)

    with pytest.raises(EditError, match="--name"):
        slot.merged(text, PROGRAM, [])
    with pytest.raises(EditError, match="--name"):
        slot.removed(text)


CLONE = "/home/me/tmux-debug-mcp"
LAUNCHED = [
    ["uvx", "--from", CLONE, "tmux-debug-mcp"],
    ["/home/me/.local/bin/uvx", f"--from={CLONE}", "tmux-debug-mcp"],
    ["uv", "tool", "run", "--from", CLONE, "tmux-debug-mcp"],
    ["pipx", "run", "--spec", CLONE, "tmux-debug-mcp"],
    ["uvx", "tmux-debug-mcp"],
]


@pytest.mark.parametrize("slot", [JSON, TOML, AGENT])
@pytest.mark.parametrize("command", LAUNCHED)
def test_command_that_names_a_clone_of_our_name_keeps_all_its_words(
    slot: Slot, command: list[str]
) -> None:
    text = slot.language.put("", slot.keys, slot.shape([*command, "--keep", "60m"]))

    assert slot.merged(text, command, None) == text
    assert slot.entry(slot.merged(text, PROGRAM, None)) == slot.shape([*PROGRAM, "--keep", "60m"])


OURS = "[mcp_servers.tmux-debug]\ncommand = '/old/tmux-debug-mcp'\n"


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (f"{OURS}# of b\n[b]\n", "# of b\n[b]\n"),
        (f"a = 1\n\n{OURS}\n# of b\n[b]\n", "a = 1\n\n# of b\n[b]\n"),
        (f"[b]\nc = 1 # of c\n{OURS}\n\n", "[b]\nc = 1 # of c\n\n\n"),
        # As Codex writes it.
        (f"{OURS}\n[mcp_servers.tmux-debug.env]\nA = '1'\n\n# of b\n[b]\n", "\n# of b\n[b]\n"),
        (f"{OURS}env = {{A = '1'}}\n# of b\n", "# of b\n"),
    ],
)
def test_comments_around_our_table_stay(text: str, left: str) -> None:
    assert TOML.removed(text) == left


@pytest.mark.parametrize(
    "text",
    [
        f"{OURS}args = ['''\n[mcp_servers.tmux-debug]\n''']\n# of b\n[b]\n",
        f"[b]\nlines = '''\n{OURS}'''\n# ours\n{OURS}",
        f"{OURS}# mine\nargs = []\n",
        f"{OURS}args = [] # mine\n",
        f"{OURS}[mcp_servers.tmux-debug.env]\nA = '1' # mine\n",
        f"{OURS}\n[mcp_servers.tmux-debug.env]\n# of A\nA = '1'\n",
        "mcp_servers.tmux-debug.command = '/old/tmux-debug-mcp'\n",
        "mcp_servers.tmux-debug = {command = '/old/tmux-debug-mcp'}\n",
    ],
)
def test_table_in_another_form_is_left_to_the_person(text: str) -> None:
    assert TOML.entry(text)
    with pytest.raises(EditError, match=r"form|alone"):
        TOML.removed(text)


def test_table_whose_last_line_has_no_end_is_brought_up_to_date() -> None:
    before = "a = 'x\u2028y'\n"
    text = f'{before}[mcp_servers.tmux-debug]\ncommand = "{PROGRAM[0]}"'

    assert TOML.merged(text, PROGRAM, ["--keep", "1h"]) == (
        f'{before}[mcp_servers.tmux-debug]\ncommand = "{PROGRAM[0]}"\nargs = ["--keep", "1h"]\n'
    )


def test_table_with_one_line_in_another_form_is_brought_up_to_date() -> None:
    text = f"{OURS}env = {{A = '1'}} # mine\n# of b\n[b]\n"

    assert TOML.merged(text, PROGRAM, ["--keep", "1h"]) == (
        f'[mcp_servers.tmux-debug]\ncommand = "{PROGRAM[0]}"\nargs = ["--keep", "1h"]\n'
        "env = {A = '1'} # mine\n# of b\n[b]\n"
    )


@pytest.mark.parametrize(
    ("slot", "text", "reason", "line"),
    [
        (JSON, '{\n"a"}', "is not JSON", 2),
        (JSON, '{"a": NaN}', "is not JSON: NaN", 0),
        (JSON, '\ufeff{"a": 1}', "is not JSON", 1),
        (JSON, f'{{"a": {"1" * 5000}}}', "^has a number of too many digits$", 0),
        (JSON, '{"a": "', "^is not JSON: Unterminated string \\(", 1),
        (JSON, "[]", "is not a JSON object", 1),
        (JSON, '{"mcpServers": 1}', "has no object at 'mcpServers'", 0),
        (JSON, '{"mcpServers": null}', "has null at 'mcpServers'", 0),
        (JSON, '{"mcpServers": {"a": 1}, "mcpServers": {}}', "twice", 0),
        (JSON, '{"a": {}, "a": 1}', "twice", 0),
        (JSON, f'{{"a": {"[" * 100_000}{"]" * 100_000}}}', "is nested too deeply", 0),
        (TOML, "a = 1\nb =\n", "is not TOML: .*line 2", 0),
        (TOML, f"a = {'1' * 5000}\n", "^has a number of too many digits$", 0),
        (TOML, f"a = {'[' * 5000}{']' * 5000}\n", "is nested too deeply", 0),
        (TOML, "mcp_servers = 1\n", "has no object at 'mcp_servers'", 0),
        (TOML, "[[mcp_servers]]\na = 1\n", "has no object at 'mcp_servers'", 0),
        (TOML, "mcp_servers = {a = {command = 'x'}}\n", "can change this entry alone", 0),
        (TOML, "#\n" * (1 << 18), "has more than 256 KiB", 0),
        (TOML, f"a = 1\n{'.'.join('a' * 2000)} = 1\n", "dots in a line", 2),
    ],
)
def test_what_can_not_be_changed_is_refused(slot: Slot, text: str, reason: str, line: int) -> None:
    with pytest.raises(EditError, match=reason) as caught:
        slot.merged(text, PROGRAM, [])

    assert caught.value.line == line


@pytest.mark.parametrize(
    ("slot", "text", "line"),
    [
        (JSON, "// mine\n{}", 1),
        (JSON, '{"a": 1\n, // one\n}', 2),
        (JSON, '{"a": 1} /* two */', 1),
        (YAML, "a: 1\n", 0),
        (YAML, "", 0),
        (AGENT, "---\nname: tmux-debug\n---\nMine.\n", 0),
    ],
)
def test_language_that_only_people_edit_is_not_an_error_of_the_file(
    slot: Slot, text: str, line: int
) -> None:
    with pytest.raises(UneditedError) as caught:
        slot.merged(text, PROGRAM, [])

    assert caught.value.line == line


# Texts of a size, which took some parser time in proportion to the size's square.
HOSTILE: dict[str, tuple[Slot, Callable[[int], str]]] = {
    "open comments": (JSON, lambda size: "{" + "/*x" * (size // 3)),
    "comments": (JSON, lambda size: "{" + "/* " * (size // 3)),
    "open objects": (JSON, lambda size: '{"a":' * (size // 5)),
    "members": (JSON, lambda size: "{" + '"a":1,' * (size // 6) + '"b":1}'),
    "quotes": (JSON, lambda size: '{"a": "' + '\\"' * (size // 2)),
    "blanks": (JSON, lambda size: "{" + " " * size),
    "digits": (JSON, lambda size: '{"a": 1.' + "1" * size + "}"),
    "parts of a key": (TOML, lambda size: ".".join("a" * (size // 2)) + "=1\n"),
    "parts of keys": (TOML, lambda size: f"{'.'.join('a' * 256)}=1\n" * (size // 514)),
    "keys of one table": (
        TOML,
        lambda size: "[x]\n" + "".join(f"a.b{number}=1\n" for number in range(size // 10)),
    ),
    "nesting in a text": (TOML, lambda size: f"{OURS}a = '''\na = {'[' * (size - 99)}\n'''\n"),
    "headers of ours": (TOML, lambda size: "#\n[mcp_servers.tmux-debug]\n" * (size // 26)),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_file_is_read_in_proportion_to_its_size(kind: str) -> None:
    """Each text is as large as may be; in proportion to the square, this would take hours."""
    slot, text = HOSTILE[kind]
    size = 1 << 18 if slot is TOML else 1 << 20

    for action in (lambda one: slot.merged(one, PROGRAM, None), slot.removed):
        with contextlib.suppress(EditError):
            action(text(size))


@pytest.mark.parametrize("slot", [JSON, TOML])
def test_nesting_of_any_depth_is_changed_or_refused(slot: Slot) -> None:
    """How deep is too deep depends on Python, and on how deep its stack is already."""
    for depth in (*range(300, 1100, 7), *range(880, 1000)):
        value = "[" * depth + "]" * depth
        text = f'{{"a": {value}}}' if slot is JSON else f"a = {value}\n"
        with contextlib.suppress(EditError):
            after = slot.merged(text, PROGRAM, [])
            assert slot.entry(after) == slot.shape(PROGRAM)
            slot.removed(after)


@pytest.mark.parametrize("text", ["a = nan\n", "a = [inf, {b = -nan}]\n", "a = 0x" + "f" * 5000])
def test_numbers_of_any_kind_stay(text: str) -> None:
    assert TOML.merged(text, PROGRAM, []).startswith(text)


SCALARS = st.one_of(st.booleans(), st.integers(-9, 9), st.text("ab\"'\\#: -é\n", max_size=6))
MAPPINGS = st.dictionaries(
    st.sampled_from(["a", "b", "mcpServers", "mcp_servers"]),
    st.dictionaries(st.sampled_from(["a", "b c"]), SCALARS, max_size=2),
    max_size=3,
)
INDENTS = st.sampled_from([None, 0, 1, 3, 4, "\t"])


@given(MAPPINGS, st.sampled_from([JSON, TOML]), INDENTS)
def test_any_file_has_what_it_had_and_our_entry(
    value: dict[str, dict[str, object]], slot: Slot, indent: int | str | None
) -> None:
    text = _toml(value) if slot is TOML else json.dumps(value, indent=indent)
    assert slot.language.load(text) == value

    after = slot.merged(text, PROGRAM, [])

    parent = slot.keys[0]
    assert slot.language.load(after) == value | {
        parent: value.get(parent, {}) | {"tmux-debug": ENTRY}
    }
    without = slot.language.load(slot.removed(after))
    assert without | {parent: without.get(parent, {})} == value | {parent: value.get(parent, {})}


def _toml(value: dict[str, dict[str, object]]) -> str:
    tables = []
    for name, table in value.items():
        lines = [f"{json.dumps(key)} = {json.dumps(member)}" for key, member in table.items()]
        tables.append("\n".join([f"[{name}]", *lines, ""]))
    return "\n".join(tables)


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
    definition = (ROOT / "lib/mcp/tmux/default.nix").read_text()
    for keep in ([], ["--keep", "2h"]):
        options = ["--toolsets", toolsets, *keep]

        text = AGENT.merged("", PROGRAM, options)

        assert AGENT.entry(text) == typed([*PROGRAM, *options])
        front, prompt_given = text.split("---\n", 2)[1:]
        assert prompt_given.startswith(of_nix.read_text())
        said = prompt_given.removeprefix(of_nix.read_text())
        [description] = [line for line in front.splitlines() if line.startswith("description: ")]
        first, _, last = json.loads(description.removeprefix("description: ")).rpartition("What ")
        for sentence in (first, f"What {last}", said):
            assert sentence.replace("2h", "${keepOf config}") in definition
        assert ("2h" in said) is ("2h" in last) is bool(keep)


def test_programs_of_a_new_subagent_outlive_it() -> None:
    slot = replace(AGENT, defaults=agent_file.OPTIONS)

    assert slot.entry(slot.merged("", PROGRAM, None)) == typed([*PROGRAM, "--keep", "30m"])
    assert slot.entry(slot.merged("", PROGRAM, [])) == typed(PROGRAM)
    old = slot.merged("", PROGRAM, ["--audit", "a"])
    assert slot.merged(old, PROGRAM, None) == old


def test_prompt_of_a_subagent_stays_when_its_command_changes() -> None:
    text = AGENT.merged("", PROGRAM, []).replace("Report:", "Report --- in French:")

    after = AGENT.merged(text, ["/new/tmux-debug-mcp"], ["--keep", "60m"])

    assert after == (
        text.replace("/opt/bin/", "/new/")
        .replace("[]", '["--keep", "60m"]')
        .replace(agent_file._ENDS, agent_file._KEPT.format("60m"))
    )


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


@pytest.mark.parametrize("path", ["environments-v2/ab/bin", "archive-v0/ab/bin"])
@pytest.mark.parametrize("is_cache", [True, False])
def test_program_in_a_cache_of_uv_is_started_by_uvx(
    tmp_path: Path, path: str, *, is_cache: bool
) -> None:
    cached = program(tmp_path / path / "tmux-debug-mcp")
    if is_cache:
        (tmp_path / "CACHEDIR.TAG").touch()

    found = programs.find(str(cached.with_name("tmux-debug")), "python3", {})

    assert (found.words[0] == "uvx") is is_cache
    assert os.path.basename(found.words[-1]) == "tmux-debug-mcp"


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
    with pytest.raises(VerbError, match="--command"):
        programs.find(str(tmp_path / "tmux-debug"), str(tmp_path / "python3"), {"PATH": "/none"})


@pytest.mark.parametrize(
    ("words", "length", "is_direct"),
    [
        (["/bin/tmux-debug-mcp", "--keep", "1h"], 1, True),
        (["tmux-debug-mcp", "tmux-debug-mcp"], 1, True),
        (["/usr/bin/python3.12", "-m", "tmux_debug_mcp", "--size"], 3, True),
        (["/usr/bin/python3.12", "-P", "-m", "tmux_debug_mcp", "--size"], 4, True),
        *((words, len(words), False) for words in LAUNCHED),
        (["uvx", "--from", CLONE, "tmux-debug-mcp", "--allow-kill"], 4, False),
        *((words, 0, False) for words in FOREIGN),
        (["uvx"], 0, False),
        (["uvx", "--from"], 0, False),
        ([], 0, False),
    ],
)
def test_command_is_divided_into_what_starts_the_server_and_its_options(
    words: list[str], length: int, *, is_direct: bool
) -> None:
    parts = programs.split(words)

    assert parts == ((words[:length], words[length:]) if length else None)
    assert bool(parts and programs.is_direct(parts[0])) is is_direct


def test_program_whose_path_has_blanks_is_ours_if_it_is_there(tmp_path: Path) -> None:
    path = tmp_path / "my programs/tmux-debug-mcp"
    assert programs.split([str(path)]) is None

    assert programs.split([str(program(path))]) == ([str(path)], [])


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
    file = storage.read(path)
    path.write_text('{"a": 1}')

    with pytest.raises(VerbError, match="Another program"):
        storage.write(file, "{}\n", tmp_path / "backups")

    assert path.read_text() == '{"a": 1}'
    assert backups_in(tmp_path) == []


def test_backups_of_one_second_are_all_kept_in_their_order(tmp_path: Path) -> None:
    path = tmp_path / "a[b].json"
    for number in range(12):
        path.write_text(str(number))
        storage.write(storage.read(path), "x", tmp_path / "backups")

    assert backups_in(tmp_path) == [str(number) for number in range(12)]


def test_nothing_is_left_where_writing_fails(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text("{}")
    file = storage.read(path)
    path.unlink()
    path.mkdir()

    with pytest.raises(VerbError):
        storage.write(file, "{}\n", tmp_path / "backups")

    assert [one for one in os.listdir(tmp_path) if one.endswith(".tmp")] == []
    assert backups_in(tmp_path) == []


def test_no_part_of_a_backup_is_left_where_the_disk_is_full(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text("a" * 100)
    file = storage.read(path)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, limits[1]))

    try:
        with pytest.raises(VerbError, match="can't be written: File too large"):
            storage.write(file, "{}\n", tmp_path / "backups")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)

    assert path.read_text() == "a" * 100
    assert backups_in(tmp_path) == []


def test_terminal_is_not_sent_what_it_would_act_on() -> None:
    text = storage.diff(Path("a"), "", f"\x1b]0;x\x07\x9b1m\u202e\r\n{'y' * 1000}\n")

    assert not any(ord(one) < 32 and one != "\n" for one in text)
    assert "\x9b" not in text
    assert "\u202e" not in text
    assert max(map(len, text.splitlines())) <= 251


def test_new_subagent_is_shown_whole() -> None:
    text = AGENT.merged("", PROGRAM, list(agent_file.OPTIONS))
    [_, _, _, *shown] = storage.diff(Path("a"), "", text).splitlines()

    assert shown == [f"+{line}" for line in text.splitlines()]


def test_path_in_a_difference_is_whole() -> None:
    path = Path("/", "long " * 50, "settings.json")

    assert f"+++ {path}\n" in storage.diff(path, "", "a")


def test_toml_that_is_written_is_what_python_reads() -> None:
    text = TOML.merged("", ['/odd-"path"\\é/tmux-debug-mcp'], ["--env", "A='b c' D=\t"])

    assert tomllib.loads(text)["mcp_servers"]["tmux-debug"] == {
        "command": '/odd-"path"\\é/tmux-debug-mcp',
        "args": ["--env", "A='b c' D=\t"],
    }
