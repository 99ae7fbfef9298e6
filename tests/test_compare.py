"""The comparison: its page is about what is tried, and what is tried can fail."""

import os
import re
import signal
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from unittest.mock import Mock, patch

import pytest
from compare.__main__ import main, tried, worked
from compare.report import Compared, page, summary
from compare.results import Effort, Outcome, Result
from compare.tasks import tasks
from compare.tmux_by_hand import TmuxByHand
from compare.tools import Ran, until
from compare.trial import TOOLS, result_of, tool_class
from compare.truths import TRUTHS
from support import PATIENCE_S

_ROOT = Path(__file__).parents[1]


# The truths that an agent without care finds broken, and what is seen instead then.
CARELESS = {
    "text box": "commit\n\n",
    "what it left running": "of another terminal: ",
    "row by row": "main: bash",
    "in the order of printing": "right 3\nright 4",
    "behind ssh": "(exit 7)",
}


class Careless(TmuxByHand):
    """tmux in the hands of an agent without care."""

    def submit(self, terminal: str, line: str) -> None:
        """Write the line and Enter at once, and Enter again when that was a line feed."""
        self.type(terminal, f"{line}\r")
        assert until(lambda: f"{line}|" in self.read(terminal), PATIENCE_S)
        time.sleep(0.5)  # the box tells that from a paste
        self.press(terminal, "Enter")

    def screen(self, terminal: str) -> str:
        """Read the history, too."""
        assert until(lambda: "quit" in self.read(terminal), PATIENCE_S)
        return self.read(terminal)

    def together(self, commands: Sequence[str], is_over: Callable[[], bool]) -> str:
        """Read one after the other."""
        terminals = [self.open(command) for command in commands]
        assert until(is_over, PATIENCE_S)
        return "\n".join(map(self.read, terminals))

    def left_by(self, command: str) -> str:
        """List all processes."""
        self.open(command)

        def processes() -> str:
            return self.run("ps -e -o pid,args").output

        assert until(lambda: "sleep 600" in processes(), PATIENCE_S)
        return processes()

    def run_elsewhere(self, command: str, terminal: str) -> Ran:
        """Take the whole screen for the output."""
        self.enter(terminal, command)
        assert until(lambda: "\ntwo\n" in self.read(terminal), PATIENCE_S)
        return Ran(self.read(terminal), 7)


def _number(words: str) -> int:
    [number] = [number for number, truth in enumerate(TRUTHS) if words in truth.sentence]
    return number


@pytest.fixture
def titles() -> list[str]:
    """Return the titles of all tools, without the libraries that two of them need."""
    with patch.dict(sys.modules, libtmux=Mock(), pexpect=Mock()):
        return [tool_class(word).title for word in TOOLS]


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the names of all tasks; those of mini_nightmare, which are downloaded, are numbers."""
    monkeypatch.setattr("compare.tasks._has_gdb", lambda: True)
    return [*tasks(None), *(f"mini_nightmare: {number}" for number in range(9))]


def _compared(title: str, names: list[str]) -> Compared:
    """Return a tool with which each truth holds, and each task is solved."""
    results = {number: Result(Outcome.HOLDS) for number in range(len(TRUTHS))}
    return Compared(title, "1.0", results, {name: Effort(2, 1000, 1.0) for name in names})


def _table(text: str, corner: str) -> dict[str, list[str]]:
    """Return the cells of a table's rows, by the first of each row."""
    lines = text[text.index(f"\n| {corner} |") + 1 :].partition("\n\n")[0].splitlines()
    head, _, *body = [line.strip("| ").split(" | ") for line in lines]
    return {first: cells for first, *cells in (head, *body)}


def test_all_rows_have_each_truth_and_task_once(names: list[str]) -> None:
    text = page([_compared("one", names), _compared("other", names)])
    rows = re.findall(r"^\| ([A-Z0-9][^|]+\.) \| yes \| yes \|$", text, re.MULTILINE)

    assert sorted(rows) == sorted(truth.sentence for truth in TRUTHS)
    assert re.findall(r"^\| (.+) \| 2, 1\.0 \| 2, 1\.0 \|$", text, re.MULTILINE) == names


def test_what_fails_is_shown(names: list[str]) -> None:
    whole, other = _compared("whole", names), _compared("other", names)
    broken, missing = _number("ends with a semicolon"), _number("which lock a program waits for")
    other.results[broken] = Result(Outcome.BROKEN, "echo a\n")
    other.results[missing] = Result(Outcome.NOT_OFFERED)
    other.efforts[names[0]] = Effort(9, 9000, 1.0, "nothing was shown", wrong=1)
    text = page([whole, other])

    assert f"| {TRUTHS[broken].sentence} | yes | **no** |" in text
    assert f"| {TRUTHS[missing].sentence} | yes | not offered |" in text
    assert text.endswith(f"**other**\n\n- {TRUTHS[broken].sentence} `echo a\\n`\n")
    assert f"| {names[0]} | 2, 1.0 | 1 unsolved |" in text
    held = _table(text, "holds")
    lost = {"typing": 1, "state": 1, "all": 2, "not offered": -1}
    for size, one, less in zip(held["holds"], held["whole"], held["other"], strict=True):
        assert int(one) - int(less) == lost.get(size.partition(" (")[0], 0), size
    solved, *_, wrong, of_stories = _table(text, "tasks")["other"][:6]
    assert (solved, wrong) == (f"{len(names) - 1} of {len(names)}", "1")
    assert of_stories.endswith(", 1 unsolved")


def test_page_has_each_group_and_tool(titles: list[str], names: list[str]) -> None:
    text = (_ROOT / "docs/comparison.md").read_text()
    made = summary([_compared(title, names) for title in titles])

    assert re.findall(r"\n- ([^:]+): .", text.partition("\n## ")[0]) == titles
    for corner in ("holds", "tasks"):
        table, made_table = _table(text, corner), _table(made, corner)
        assert sorted(table[corner]) == sorted(made_table[corner])
        assert list(table) == list(made_table) == [corner, *titles]


def test_numbers_of_the_page_add_up(titles: list[str], names: list[str]) -> None:
    text = (_ROOT / "docs/comparison.md").read_text()
    held, taken = _table(text, "holds"), _table(text, "tasks")
    *sizes, count = [int(size) for size in re.findall(r"\((\d+)\)", " ".join(held["holds"]))]

    assert sum(sizes) == count == len(TRUTHS)
    for title in titles:
        *of_kinds, of_all, not_offered = map(int, held[title])
        assert all(of_kind <= size for of_kind, size in zip(of_kinds, sizes, strict=True))
        assert sum(of_kinds) == of_all <= count - not_offered
        unsolved = sum(map(int, re.findall(r"(\d+) unsolved", " ".join(taken[title]))))
        assert taken[title][0] == f"{len(names) - unsolved} of {len(names)}"


def test_pages_say_how_many_there_are(names: list[str]) -> None:
    others = {9: "nine"}[len(TOOLS) - 1]
    pages = (_ROOT / "README.md", _ROOT / "docs/comparison.md")
    readme, text = (" ".join(path.read_text().split()) for path in pages)

    assert f"tries {len(TRUTHS)} things with {others} other tools" in readme
    assert f"{others} other tools: how many of {len(TRUTHS)} things" in text
    assert f"what {len(names)} tasks take" in text


@pytest.mark.parametrize("tool", ["ours", "tmux"])
def test_task_is_worked_on(tool: str) -> None:
    effort = worked(tool, "", "stories: pdb on a crash", None)

    assert not effort.missed
    assert effort.turns >= 2
    assert effort.bytes > 500
    assert not effort.wrong


@pytest.mark.parametrize(
    ("tool", "words", "outcome"),
    [
        ("ours", "ends with a semicolon", Outcome.HOLDS),
        ("ours", "text box", Outcome.HOLDS),
        ("ours", "what it left running", Outcome.HOLDS),
        ("ours", "row by row", Outcome.HOLDS),
        ("ours", "behind ssh", Outcome.HOLDS),
        ("pty", "in the order of printing", Outcome.NOT_OFFERED),
        ("tmux", "when the tool is killed", Outcome.BROKEN),
        ("tmux", "which lock a program waits for", Outcome.HOLDS),
        ("tmux", "that sleeps isn't said to wait", Outcome.NOT_OFFERED),
    ],
)
def test_truth_is_tried(tool: str, words: str, outcome: Outcome) -> None:
    if why_not := TRUTHS[_number(words)].why_not():
        pytest.skip(why_not)
    grace_s = PATIENCE_S if outcome is Outcome.HOLDS else 0.5
    result, version = tried(tool, "", _number(words), PATIENCE_S, grace_s)

    assert result.outcome is outcome, result
    assert version or "killed" in words
    assert "not started" not in result.seen


@pytest.mark.parametrize("words", CARELESS)
def test_truth_is_broken_by_an_agent_without_care(
    words: str, short_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if why_not := TRUTHS[_number(words)].why_not():
        pytest.skip(why_not)
    # What is read here doesn't become right later.
    monkeypatch.setattr("compare.truths._PATIENCE_S", 0.0 if "row" in words else PATIENCE_S)
    tool = Careless("", short_path, os.environ | {"TMUX_TMPDIR": str(short_path)})
    result = result_of(tool, short_path, _number(words))
    tool.finish()
    if (left := short_path / "pid").exists():
        os.kill(int(left.read_text()), signal.SIGKILL)

    assert result.outcome is Outcome.BROKEN
    assert CARELESS[words] in result.seen


def test_truth_that_cannot_be_tried_here_is_left_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("compare.__main__.downloaded_nightmares", lambda: None)
    monkeypatch.setattr(sys, "argv", ["compare", "--tools", "", "--only", "behind ssh"])
    monkeypatch.setenv("PATH", "/nonexistent")
    with patch("hosts.shutil.which", return_value=None):
        main()

    left_out = "left out: In a shell behind ssh, you learn a command's output and exit code. "
    assert f"{left_out}ssh or sshd is missing.\n" in capsys.readouterr().err
