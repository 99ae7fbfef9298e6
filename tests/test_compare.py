"""The comparison: its page is about what is tried, and what is tried can fail."""

import re
import sys
from pathlib import Path
from unittest.mock import Mock, patch

import pytest
from compare.__main__ import tried, worked
from compare.report import Compared, page, summary
from compare.results import Effort, Outcome, Result
from compare.tasks import tasks
from compare.trial import TOOLS, tool_class
from compare.truths import TRUTHS
from support import PATIENCE_S

_ROOT = Path(__file__).parents[1]


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
        ("tmux", "when the tool is killed", Outcome.BROKEN),
        ("tmux", "which lock a program waits for", Outcome.HOLDS),
        ("tmux", "that sleeps isn't said to wait", Outcome.NOT_OFFERED),
    ],
)
def test_truth_is_tried(tool: str, words: str, outcome: Outcome) -> None:
    grace_s = PATIENCE_S if outcome is Outcome.HOLDS else 0.5
    result, version = tried(tool, "", _number(words), PATIENCE_S, grace_s)

    assert result.outcome is outcome, result
    assert version or "killed" in words
    assert "not started" not in result.seen
