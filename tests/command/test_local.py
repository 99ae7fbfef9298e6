"""Each verb's help and completion, and what `tmux-debug` does without a server."""

import json
import re
import shlex
import shutil
import socket
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import sessions
from support import ask_until, marked, records
from wire import SERVER, Server

from tmux_debug_mcp import __version__
from tmux_debug_mcp.command import listing
from tmux_debug_mcp.options import parse_all
from tmux_debug_mcp.sockets.choosing import HIDDEN_INPUT
from tmux_debug_mcp.verbs import help as texts
from tmux_debug_mcp.verbs.parsing import parser_of
from tmux_debug_mcp.verbs.registry import TOOLS, VERBS
from tmux_debug_mcp.verbs.words import flag_of, parameters_of_tool

from .conftest import PROGRAM, Shell

DOCS = Path(__file__).parents[2] / "docs"
documented = pytest.mark.skipif(not DOCS.exists(), reason="Nix builds without the documents")

ALL = list(VERBS)


@pytest.mark.parametrize("words", [["--help"], ["-h"], ["help"]])
def test_help_names_every_verb_and_every_exit_status(shell: Shell, words: list[str]) -> None:
    text = shell.out(*words)

    for verb in ALL:
        assert f"\n  {verb} " in text
    for status in ("0 done", "1 the stop pattern matched", "124", "125", "126"):
        assert status in text
    assert max(map(len, text.splitlines())) <= 100


def test_without_words_the_help_is_on_standard_error(shell: Shell) -> None:
    done = shell.run()

    assert (done.returncode, done.stdout) == (125, "")
    assert done.stderr == texts.overview()


@pytest.mark.parametrize("words", [["create", "--help"], ["help", "wait"], ["call", "-h"]])
def test_help_of_a_verb_starts_no_server(shell: Shell, words: list[str]) -> None:
    assert shell.out(*words).startswith("usage: tmux-debug ")
    assert shell.left() == []


def test_help_among_the_words_of_a_command_is_the_commands(shell: Shell) -> None:
    for dashes in ([], ["--"]):
        assert "Usage: ls" in shell.out("run", *dashes, "ls", "--help")


def test_help_imports_neither_the_sdk_nor_anyio(shell: Shell) -> None:
    words = ["-X", "importtime", *PROGRAM[1:], "wait", "--help"]
    done = subprocess.run(
        [PROGRAM[0], *words], env=shell.env, capture_output=True, text=True, check=True
    )

    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "tmux_debug_mcp.verbs.parsing" in imported
    assert not {"anyio", "mcp", "mcp_types"} & imported


def test_version(shell: Shell) -> None:
    assert shell.out("--version") == f"tmux-debug {__version__}\n"


@pytest.mark.parametrize("name", ALL)
def test_each_verb_has_help_with_an_example_that_it_takes(shell: Shell, name: str) -> None:
    text = shell.out(name, "--help")

    assert text.startswith(f"usage: tmux-debug {name}")
    *_, heading, example = text.splitlines()
    assert heading == "example:"
    program, *words = shlex.split(example)
    words = words[words.index(name) + 1 :]
    assert program == "tmux-debug"
    if name == "start":
        parse_all(words, {})
    elif name == "config":
        parser_of(VERBS[name]).parse_args(words[: words.index("--")])
        parse_all(words[words.index("--") + 1 :], {})
    elif name == "replay":  # which joins `--at` and a time before the end
        parser_of(VERBS[name]).parse_args(shlex.split(shlex.join(words).replace("--at ", "--at=")))
    else:
        parser_of(VERBS[name]).parse_args(words)


@pytest.mark.parametrize("verb", [verb.name for verb in TOOLS])
def test_help_of_a_verb_names_its_flags(shell: Shell, verb: str) -> None:
    text = shell.out(verb, "--help")

    for parameter in parameters_of_tool(VERBS[verb]):
        assert parameter.is_required or flag_of(parameter.name) in text
        assert str(parameter.schema.get("description", ""))[:7] in text


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["craete", "cat"], "Verb 'craete' is unknown. Did you mean create?"),
        (["craete", "--help"], "Verb 'craete' is unknown. Did you mean create?"),
        (["help", "wiat"], "Verb 'wiat' is unknown. Did you mean wait?"),
        (["frobnicate"], "Verb 'frobnicate' is unknown. tmux-debug --help lists all verbs."),
        (
            ["signal", "web", "SIGTERM"],
            "Verb 'signal' is unknown. Use: tmux-debug send PANE SIGTERM",
        ),
        (["--sever", "12", "list"], "Flag '--sever' is unknown. Did you mean --server?"),
        (["--server"], "--server needs a server's process id. tmux-debug ps lists them."),
        (["run", "--tiemout", "3", "true"], "Flag '--tiemout' is unknown. Did you mean --timeout?"),
        (["run", "-la", "ls"], "Put -- before words that aren't tmux-debug's flags."),
        (["run", "make test", "--timeout", "3"], "'--timeout' follows the command 'make test'."),
        (["send", "cat", "x", "--", "-y"], "'--' stands among KEYS"),
        (["ps", "--flow"], "Flag '--flow' is unknown. Did you mean --follow?"),
        (["ls"], "Verb 'ls' is unknown. Use: tmux-debug list\n"),
        (["logs", "web"], "Verb 'logs' is unknown. Use: tmux-debug capture PANE\n"),
        (["tail", "-f", "web"], "Verb 'tail' is unknown. Use: tmux-debug capture --follow PANE\n"),
        (["exec", "ls"], "Verb 'exec' is unknown. Use: tmux-debug run COMMAND\n"),
        (["version"], "Verb 'version' is unknown. Use: tmux-debug --version\n"),
        (["-v"], "Flag '-v' is unknown. Did you mean --version?\n"),
        (["-V"], "Flag '-V' is unknown. Did you mean --version?\n"),
        (["ps", "-a"], "Flag '-a' is unknown. Did you mean --all?\n"),
        (["capture", "-f", "web"], "Flag '-f' is unknown. Did you mean --follow?\n"),
        (["wait", "-p", "x", "web"], "Flag '-p' is unknown.\nusage: "),  # --pattern or --port
        (["start", "web"], "To start a command in a pane: tmux-debug create COMMAND"),
        (["stop", "web"], "To end a pane: tmux-debug kill PANE"),
        (["completion", "tcsh"], "Argument shell: invalid choice: 'tcsh'"),
        (["audit"], "No audit was kept of this directory's servers. Give a FILE"),
        (["audit", "--fialed", "x"], "Flag '--fialed' is unknown. Did you mean --failed?"),
        (["replay", "--pgn", "x"], "Flag '--pgn' is unknown. Did you mean --png?"),
        (["doctor", "--jsno"], "Flag '--jsno' is unknown. Did you mean --json?"),
        (["doctor", "--timeout", "x"], "'x' is not a time. Give more than 0 and at most 600"),
        (["config"], "Give a CLIENT: claude-code, codex, "),
        (["config", "cursor", "--wirte"], "Flag '--wirte' is unknown. Did you mean --write?"),
        (["config", "cursor", "--", "--kep", "1h"], "Did you mean --keep?"),
        (["start", "--kep", "1h"], "Option '--kep' is unknown. Did you mean --keep?"),
        (["demo", "now"], "'now' is one argument too many."),
    ],
    ids=" ".join,
)
def test_wrong_words_start_nothing_and_name_the_nearest(
    shell: Shell, words: list[str], complaint: str
) -> None:
    done = shell.run(*words)

    assert (done.returncode, done.stdout) == (125, "")
    assert done.stderr.startswith("tmux-debug: ")
    assert complaint in done.stderr
    assert shell.left() == []


@pytest.mark.parametrize("words", [["audit", "--fialed"], ["config", "nobody"], ["doctor", "x"]])
def test_verbs_of_the_other_program_are_the_same(shell: Shell, words: list[str]) -> None:
    done = subprocess.run(
        [*SERVER, *words], env=shell.env, capture_output=True, text=True, check=False
    )

    here = shell.run(*words)
    assert (done.returncode, done.stdout) == (125, "")
    assert done.stderr == here.stderr


def test_ps_lists_servers_with_their_panes(shell: Shell, launch: Callable[..., Server]) -> None:
    server = launch()
    server.call("create_pane", command="cat", name="web")
    server.call("create_pane", command="exit 3", name="test")
    server.call("create_pane", command="kill -SEGV $$", name="crash")
    server.call("run", command="true")  # its pane leaves the list at its end

    text = shell.out("ps", "--all")

    # Servers of others on this machine may be there, too.
    assert (
        f"{server.pid}  {Path.cwd()}  (of an MCP client, toolsets debug)  used here: it or its "
        "client started this shell\n"
    ) in text
    lines = [
        r"  \? cat            debug-1 web running \S+ s, foreground cat \(.*\), awaits input\n",
        r"  - exit 3         debug-2 test exited with code 3 after \S+ s\n",
        r"  - kill -SEGV \$\$  debug-3 crash killed by SIGSEGV after \S+ s\n",
    ]
    assert re.search("".join(lines), text)
    own = re.search(rf"^{server.pid}  .*\n((?:  .*\n)*)", text, re.MULTILINE)
    assert own
    assert "debug-4" not in own[1]
    assert shell.out("ps", "--names") == "web\ntest\ncrash\n"
    assert len(json.loads(shell.out("list", "--all"))) == 3
    assert shell.out("capture", "debug-4") == ""


def test_ps_shows_what_runs_here_first_and_counts_the_rest(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "other" / ".git").mkdir(parents=True)
    other = replace(shell, cwd=tmp_path / "other")
    for place in (shell, other):
        place.out("create", "--name", "ended", "true")
        place.out("create", "--name", "reader", "cat")
    shell.run("create", "--name", "failed", "exit 3")
    shell.out("create", "--name", "sleeper", "sleep 1000")
    other.out("create", "--name", "login", "read -s secret")
    servers = {server.cwd: server for server in shell.servers()}
    here, there = servers[str(tmp_path)], servers[str(other.cwd)]

    folded = shell.out("ps")
    everything = shell.out("ps", "--all")

    assert re.search(
        rf"{here.pid}  .* used here: it serves this directory\n"
        r"  \? cat         debug-2 reader running .*\n"
        r"  \+ sleep 1000  debug-4 sleeper running .*\n    2 ended\n"
        rf"(.*\n)*{there.pid}  .*toolsets debug\)  1 running, 1 ended\n"
        r"  ! read -s secret  debug-3 login running .*\n"
        rf"    type it: .*--server {there.pid} secret debug-3\n"
        r"(.*\n)*.* ps --all lists these panes, too\.\n",
        folded,
    )
    for server, names in (
        (here, ["reader", "sleeper", "ended", "failed"]),
        (there, ["login", "reader", "ended"]),
    ):
        listed = re.search(rf"^{server.pid}  .*\n((  .*\n)+)", everything, re.MULTILINE)
        assert listed
        assert re.findall(r"  debug-\d (\w+)", listed[1]) == names
    assert "lists these panes" not in everything


def test_ps_shows_escape_sequences_and_does_not_send_them(shell: Shell, tmp_path: Path) -> None:
    directory = tmp_path / "\x1b]0;title\a"
    directory.mkdir()
    replace(shell, cwd=directory).out("create", "cat # \x1b[2J\nnext")

    text = shell.out("ps", "--all")

    assert r"]0;title\x07  (detached" in text
    assert r"? cat # \x1b[2J\nnext" in text
    assert "\x1b" not in text + shell.run("--server", "\x1b[2J", "list").stderr


def test_ps_and_completion_are_neither_on_record_nor_a_use_of_the_server(
    shell: Shell, census: str, tmp_path: Path
) -> None:
    audit = tmp_path / "audit.jsonl"
    shell.out("start", "--audit", str(audit))
    shell.out("create", "--name", "web", "cat")
    following = shell.start("ps", "--follow")
    assert shell.out("ps", "--names") == "web\n"

    # `ps --follow` looks more often than that.
    shell.out("start", "--keep", "2s", "--audit", str(audit))

    ask_until(lambda: [*shell.left(), *marked(census)], lambda left: len(left) == 1)
    following.kill()
    following.communicate()
    assert [record["tool"] for record in records(audit)] == ["create_pane"]


def test_board_that_is_cut_keeps_what_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "terminal_size", lambda _fd: (20, 5))
    lines = [(f"pane {number}", listing._PLAIN) for number in range(20)]
    lines[9:9] = [(line, listing._BRIGHT) for line in ("login", "type it: " + "x" * 20)]

    board = re.sub(r"\x1b\[[?0-9;]*[a-zA-Z]", "", listing._board(lines))

    shown = ["login", "type it: xxxxxxxxxx…", "pane 0", "… and 19 more lines", ""]
    assert board.split("\r\n") == shown


def test_board_rings_once_for_each_secret() -> None:
    def board(runtime_s: float, *ids: str) -> list[tuple[str, str]]:
        panes = [{"command": "login", "shown": f"{pane} running {runtime_s} s"} for pane in ids]
        asks = [(f"{listing._TYPE_IT}tmux-debug secret {pane}", listing._BRIGHT) for pane in ids]
        rows = [{"awaits": HIDDEN_INPUT, "status": "running", **pane} for pane in panes]
        return [*((line, listing._BRIGHT) for line in listing.in_lines(rows)), *asks]

    asked = listing._asked(board(1.0, "debug-1"))

    assert len(asked) == 1
    assert listing._asked(board(2.0, "debug-1")) == asked
    assert len(listing._asked(board(2.0, "debug-1", "debug-2")) - asked) == 1


def test_ps_follows(shell: Shell, server: Server) -> None:
    following = shell.start("ps", "--follow")
    assert following.stdout
    following.stdout.readline()
    server.call("create_pane", command="cat", name="web")

    for line in following.stdout:
        if "web running" in line:
            break
    following.kill()
    following.communicate()


BASH = """
COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
[[ ${{COMP_WORDS[COMP_CWORD]}} == _ ]] && COMP_WORDS[COMP_CWORD]=
_tmux_debug; echo "${{COMPREPLY[@]}}"
"""


def completes(shell: Shell, on_path: Path, program: str, words: str) -> set[str]:
    """Return what is completed for somebody who has named the server, if there is one."""
    script = shell.out("completion", program)
    if program == "fish":
        line = words.removesuffix("_")
        script += f"\ncomplete -C '{line}' | string split -f 1 \\t; true"
        command = ["fish", "-c", script]  # its own functions are part of its configuration
    elif program == "zsh":
        # zsh completes through the functions that are written for bash.
        script = "autoload -Uz compinit && compinit -D\n" + script + "\nemulate -R bash\n"
        command = ["zsh", "-f", "-c", script + "print ${_comps[tmux-debug]}"]
    else:
        command = ["bash", "-c", script + BASH.format(words=words)]
    env = shell.naming_env if shell.servers() else shell.env
    env = env | {"PATH": f"{on_path}:{shell.env['PATH']}"}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return set(done.stdout.split())


@pytest.mark.parametrize("program", ["bash", "fish"])
def test_verbs_flags_and_panes_are_completed(
    shell: Shell, server: Server, on_path: Path, program: str
) -> None:
    server.call("create_pane", command="cat", name="web")
    server.call("create_pane", command="cat", name="worker")

    assert set(ALL) <= completes(shell, on_path, program, "tmux-debug _")
    assert completes(shell, on_path, program, "tmux-debug ca") == {"call", "capture"}
    assert {"--pattern", "--follow", "--timeout"} <= completes(
        shell, on_path, program, "tmux-debug wait --"
    )
    assert completes(shell, on_path, program, "tmux-debug send w") == {"web", "worker"}
    assert completes(shell, on_path, program, "tmux-debug completion _") == {"bash", "zsh", "fish"}
    assert completes(shell, on_path, program, "tmux-debug config cu") == {"cursor"}


@pytest.mark.parametrize("program", ["bash", "fish"])
def test_name_of_a_pane_is_completed_and_not_run(
    shell: Shell, server: Server, on_path: Path, program: str
) -> None:
    mark = shell.runtime / "ran"
    server.call("create_pane", command="cat", name=f"web$(touch {mark})")

    assert completes(shell, on_path, program, "tmux-debug send web")
    assert not mark.exists()


@pytest.mark.skipif(
    subprocess.run(["zsh", "-fc", "autoload +X compinit"], check=False).returncode != 0,
    reason="this zsh has no functions for completion",
)
def test_completion_is_known_to_zsh(shell: Shell, on_path: Path) -> None:
    assert completes(shell, on_path, "zsh", "") == {"_bash_complete", "-F", "_tmux_debug"}


@pytest.mark.skipif(shutil.which("shellcheck") is None, reason="./dev check needs it as well")
def test_completion_for_bash_is_clean(shell: Shell, tmp_path: Path) -> None:
    script = tmp_path / "completion.bash"
    script.write_text(shell.out("completion", "bash"))

    subprocess.run(["shellcheck", "-s", "bash", "-e", "SC2207", str(script)], check=True)


def test_rows_of_ps_are_those_of_the_list(shell: Shell, server: Server) -> None:
    server.call("create_pane", command="cat", name="web")

    [row] = json.loads(shell.out("list"))

    assert f"{row['id']} {row['name']}" in shell.out("ps")


@documented
def test_skill_is_short_and_its_words_are_verbs() -> None:
    skill = (DOCS / "skills/tmux-debug/SKILL.md").read_text()

    assert len(skill.encode()) <= 1400
    for verb in set(re.findall(r"tmux-debug (\w+)", skill)) - {"VERB"}:
        assert verb in ALL
    for flag in re.findall(r"(?<!-)--[a-z][a-z-]*", skill):
        assert any(flag in parser_of(verb).flags for verb in TOOLS)


@documented
def test_page_has_every_verb() -> None:
    page = (DOCS / "command-line.md").read_text()

    for verb in ALL:
        assert f"`{verb}" in page


@documented
def test_session_on_the_page_is_what_happens(shell: Shell, on_path: Path, tmp_path: Path) -> None:
    page = (DOCS / "command-line.md").read_text()
    shutil.copy(DOCS / "examples" / "shop.py", tmp_path)
    path = f"{on_path}:{Path(PROGRAM[0]).parent}:{shell.env['PATH']}"
    [session] = sessions.fenced(page, "console")

    facts: dict[str, str] = {}
    for part in re.split(r"^\$ ", session, flags=re.MULTILINE)[1:]:
        line, shown = part.split("\n", 1)
        for name, value in facts.items():
            line = line.replace(f":{name}", f":{value}")
        done = shell.by_sh(f"{line} 2>&1", PATH=path)
        found = sessions.facts_of(shown, done.stdout)
        assert found is not None, done.stdout
        facts |= found


@documented
@pytest.mark.skipif(not shutil.which("curl"), reason="needs curl")
def test_commands_of_the_readme_do_what_they_say(shell: Shell, on_path: Path) -> None:
    *_, block = sessions.fenced((DOCS.parent / "README.md").read_text(), "console")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = str(server.getsockname()[1])
    # The first leads to the program, and a person needs a terminal.
    words = ("export PATH=", "tmux-debug attach")
    lines = [line for line in block.splitlines() if not line.startswith(words)]
    assert [line.split()[1] for line in lines] == ["create", "run", "capture", "stop"]

    path = f"{on_path}:{Path(PROGRAM[0]).parent}:{shell.env['PATH']}"

    def said(line: str) -> str:
        done = shell.by_sh(line.replace("8000", port), PATH=path)
        assert done.returncode == 0, done
        return done.stdout

    create, run, capture, stop = lines
    assert said(create).startswith(f"Serving HTTP on 0.0.0.0 port {port} ")
    assert "<p>Error code: 404</p>" in said(run)
    ask_until(lambda: said(capture), lambda text: '"GET /nothing HTTP/1.1" 404 -\n' in text)
    assert re.search(r"^Stopped server \d+ of .*, and everything in its panes: web\.", said(stop))
    assert shell.servers() == []


@pytest.mark.parametrize("closed", ["<&- 2>&-", "<&- >&- 2>&-", ">&- 2>&-"])
def test_server_starts_where_standard_streams_are_closed(shell: Shell, closed: str) -> None:
    shell.by_sh(f"{shlex.join(PROGRAM)} start {closed}")

    [server] = shell.servers()
    assert shell.out("run", "echo on") == "on\n"
    assert f"Server {server.pid} is already running" in shell.out("start")


@pytest.fixture(scope="module")
def with_dev(shared: Shell) -> Shell:
    """Return a shell whose server has an audit, and a pane `dev` that has printed a line."""
    shared.out("start", "--audit", f"{shared.cwd}/audit")
    shared.out("dev", "--", "echo up; exec cat")
    return shared


STREAMS = {">&-": "Bad file descriptor", ">/dev/full": "No space left on device"}
PRINTING = (
    *("--version", "list --help", "list", "ps", "dev", "replay dev --at -0s"),
    *("replay dev --cast -", "capture dev --at -0s", "audit audit", "config cursor", "demo"),
)
# Pairs, not the product: each line with each stream, and each of both with and without a buffer.
UNWRITABLE = [
    (line, stream, "1" * ((PRINTING.index(line) + at) % 2))
    for line in PRINTING
    for at, stream in enumerate(STREAMS)
]


@pytest.mark.parametrize(("line", "stream", "unbuffered"), UNWRITABLE)
def test_output_that_can_not_be_written_is_an_error(
    with_dev: Shell, line: str, stream: str, unbuffered: str
) -> None:
    words = f"{shlex.join(PROGRAM)} {line} {stream}"
    done = with_dev.by_sh(words, PYTHONUNBUFFERED=unbuffered)
    assert done.returncode == 125, done
    assert done.stderr.endswith(f"tmux-debug: The output can't be written: {STREAMS[stream]}.\n")
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("stream", ["2>&-", "2>/dev/full"])
@pytest.mark.parametrize("line", ["run echo up", "replay dev --at -0s"])
def test_complaints_that_can_not_be_written_are_lost(
    with_dev: Shell, line: str, stream: str
) -> None:
    done = with_dev.by_sh(f"{shlex.join(PROGRAM)} {line} {stream}")
    assert (done.returncode, done.stdout) == (0, "up\n")
