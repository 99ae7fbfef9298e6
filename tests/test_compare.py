"""The comparison: its page is about what is tried, and what is tried can fail."""

import re
from pathlib import Path

import pytest
from compare.__main__ import tried, worked
from compare.results import Outcome
from compare.tasks import tasks
from compare.truths import TRUTHS
from support import PATIENCE_S

_ROOT = Path(__file__).parents[1]
_PAGE = _ROOT / "docs/comparison.md"


def _number(words: str) -> int:
    [number] = [number for number, truth in enumerate(TRUTHS) if words in truth.sentence]
    return number


def test_page_has_each_truth_once() -> None:
    rows = re.findall(r"^\| ([A-Z0-9][^|]+\.) \|", _PAGE.read_text(), re.MULTILINE)

    assert sorted(rows) == sorted(truth.sentence for truth in TRUTHS)
    assert f"tries {len(TRUTHS)} things" in " ".join((_ROOT / "README.md").read_text().split())


def test_page_has_each_task() -> None:
    page = _PAGE.read_text()

    assert [name for name in tasks(None) if f"\n| {name} |" not in page] == []


@pytest.mark.parametrize("tool", ["ours", "tmux"])
def test_task_is_worked_on(tool: str) -> None:
    effort = worked(tool, "", "pdb on a crash", None)

    assert not effort.missed
    assert effort.turns >= 2
    assert effort.bytes > 500
    assert not effort.wrong


@pytest.mark.parametrize(
    ("tool", "words", "outcome"),
    [
        ("ours", "ends with a semicolon", Outcome.HOLDS),
        ("tmux", "ends with a semicolon", Outcome.BROKEN),
        ("ours", "when the tool is killed", Outcome.HOLDS),
        ("tmux", "when the tool is killed", Outcome.BROKEN),
        ("tmux", "which lock a program waits for", Outcome.NOT_OFFERED),
    ],
)
def test_truth_is_tried(tool: str, words: str, outcome: Outcome) -> None:
    grace_s = PATIENCE_S if outcome is Outcome.HOLDS else 0.5
    result, version = tried(tool, "", _number(words), PATIENCE_S, grace_s)

    assert result.outcome is outcome, result
    assert version or "killed" in words
    assert "not started" not in result.seen
