"""Commands of all kinds in every shell: exact output, true exit code, and a usable prompt."""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from support import SHELLS, Tools, run

# Random bytes may choose another character set, in which the next output is drawn.
FONT = Path(__file__).parents[2] / "tmux_debug_mcp" / "pictures" / "fonts" / "DejaVuSansMono.ttf"


@dataclass(frozen=True)
class Case:
    """A command, with its output and exit code; `elsewhere` has those of shells that differ.

    The output is None where shells word it in their own way.
    """

    name: str
    command: str
    output: str | None = ""
    exit_code: int = 0
    elsewhere: Mapping[str, tuple[str | None, int]] | None = None

    def expected(self, shell: str) -> tuple[str | None, int]:
        """Return the output and the exit code in a shell."""
        return (self.elsewhere or {}).get(shell, (self.output, self.exit_code))


CASES = [
    Case("line", "echo hello", "hello\n"),
    Case("no final line feed", "printf hello", "hello"),
    Case("no output", "true"),
    Case("exact blanks and tabs", r"printf '  a\tb  \n\n\n'", "  a\tb  \n\n\n"),
    Case("characters", "echo 'Grüße 世界 🎉'", "Grüße 世界 🎉\n"),
    Case("standard error", "echo out; echo err >&2", "out\nerr\n"),
    Case("colours", r"printf '\033[31mred\033[0m\n'", "red\n"),
    Case("progress", r"printf '10%%\r50%%\rdone\033[K\n'", "done\n"),
    Case("longer than the terminal is wide", "seq -s, 1 500",
        ",".join(map(str, range(1, 501))) + "\n"),
    Case("several lines", "echo one\necho two\n\necho three", "one\ntwo\nthree\n"),
    Case("carriage returns in it", "echo one\r\necho two", None, 0),
    Case("comment", "# nothing"),
    Case("comment behind it", "echo one # two", "one\n"),
    Case("trailing backslash", "echo one \\", "one\n"),
    Case("trailing semicolon and blanks", "echo one ;  ", "one\n"),
    Case("leading blank and dash", " echo -n one", "one"),
    Case("exclamation mark", "echo one!two '!!' \"!x\"", "one!two !! !x\n"),
    Case("history signs", "echo '!!'", "!!\n"),
    Case("here document", "cat <<'END'\n$one `two`\nEND", "$one `two`\n", 0, {"fish": (None, 1)}),
    Case("unfinished here document", "cat <<END\none", None, 0, {"fish": (None, 1)}),
    Case("unbalanced quote", "echo 'one", None, 2, {"zsh": (None, 126), "fish": (None, 1)}),
    Case("unfinished substitution", "echo $(one", None, 2, {"zsh": (None, 126), "fish": (None, 1)}),
    Case("syntax error", "echo one; )", None, 2, {"zsh": (None, 126), "fish": (None, 1)}),
    Case("unknown command", "no-such-command", None, 127),
    Case("exit code", "sh -c 'exit 3'", "", 3),
    Case("exit code of a pipe", "echo one | sh -c 'cat; exit 4'", "one\n", 4),
    Case("killed by a signal", "sh -c 'kill -TERM $$'", None, 143),
    Case("false behind an error switch", "(set -e; false)", "", 1, {"fish": (None, 1)}),
    Case("alias", "alias two='echo three'\ntwo", None, 0, {"dash": (None, 0)}),
    Case("binary", f"head -c 20000 {shlex.quote(str(FONT))}", None, 0),
    Case("questions to the terminal", r"printf '\033[c\033[>c\033[6n'", None, 0),
    Case("question amid noise", r"printf '\033\377[\001\272c'", None, 0),
    Case("escape that is left open", r"printf 'one\033]0;title'", "one"),
    Case("mark of another run", r"printf 'a\033]7777;0123456789abcdef;0\ab\n'", "ab\n"),
    Case("status of the command before", "sh -c 'exit 5'; echo $?", "5\n", 0, {"fish": (None, 1)}),
    Case("variable that is not set", "echo ${no_such_variable?}", None, 1, {
        "dash": (None, 2), "busybox": (None, 2), "fish": (None, 1), "zsh": (None, 126)}),
    Case("interrupted by itself", "kill -INT $$; sleep 1", None, 130, {"fish": (None, 1)}),
]  # fmt: skip


@pytest.mark.parametrize("shell", SHELLS)
async def test_each_command_returns_its_output_and_code_and_the_next_one_runs(
    tools: Tools, shell: str
) -> None:
    pane_id = await tools.create(SHELLS[shell])
    for case in CASES:
        output, code = case.expected(shell)
        text, meta, _ = await run(tools, case.command, pane_id)

        assert meta["exit_code"] == code, (case, text)
        assert output is None or text == output, case
        if output is None:  # else the next case tells that the shell is as it was
            assert (await run(tools, "echo again", pane_id))[0] == "again\n", case
