"""The hook of docs/notifications.md: a client's rules for its shell hold in panes, too."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

HOOK = Path(__file__).parents[2] / "docs" / "examples" / "command_rules.py"
pytestmark = pytest.mark.skipif(not HOOK.exists(), reason="Nix builds without the documents")


@pytest.fixture
def decided(tmp_path: Path) -> Any:  # noqa: ANN401
    """Return what asks the hook about a call, in a project with rules."""
    settings = tmp_path / ".claude" / "settings.json"
    settings.parent.mkdir()
    rules = {"deny": ["Bash(rm -rf *)", "Read(secret)"], "ask": ["Bash(git push:*)"]}
    settings.write_text(json.dumps({"permissions": rules}))

    def decided(event: str = "PreToolUse", *words: str, **values: object) -> dict[str, Any]:
        call = {"hook_event_name": event, "cwd": str(tmp_path), "tool_input": values}
        done = subprocess.run(
            [sys.executable, str(HOOK), *words],
            input=json.dumps(call),
            env={"HOME": "/nonexistent"},
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stderr == ""
        answer: dict[str, Any] = json.loads(done.stdout or "{}")
        return answer

    return decided


@pytest.mark.parametrize(
    "values",
    [
        {"command": "rm -rf build"},
        {"command": "cd /tmp && rm -rf build; echo there"},
        {"command": "FORCE=1 sudo rm -rf build"},
        {"command": "bash -c 'cd /; rm -rf build'"},
        {"command": 'echo "$(rm -rf build)"'},
        {"pane_id": "sh", "keys": "rm -rf build Enter"},
        {"pane_id": "sh", "keys": ["cd /tmp", "Enter", "rm -rf build", "Enter"]},
        {"pane_id": "sh", "keys": ["cd x Enter", "C-u", "rm -rf build", "Enter"]},
        {"command": "for f in a b; do rm -rf build$f; done"},
        {"command": "if ! { rm -rf build; }; then echo; fi"},
        {"command": "/opt/bin/tmux-debug run rm -rf build"},
        {"command": "tmux-debug call tmux_run command='rm -rf build'"},
        {"command": "tmux-debug restart web --command='rm -rf build'"},
        {"command": "tmux-debug run 'rm -rf build'"},
        {"command": "tmux-debug run --timeout 3 rm -rf build"},
        {"command": "tmux-debug create --name q -- 'cd / && rm -rf build' | tail -1"},
        {"command": "tmux-debug send sh 'rm -rf build' Enter"},
    ],
)
def test_command_of_a_rule_is_denied_in_panes(decided: Any, values: dict[str, object]) -> None:  # noqa: ANN401
    output = decided(**values)["hookSpecificOutput"]

    assert (output["hookEventName"], output["permissionDecision"]) == ("PreToolUse", "deny")
    reason = output["permissionDecisionReason"]
    assert reason.startswith("The rule rm -rf * is for panes, too: rm -rf build")


@pytest.mark.parametrize(
    "values",
    [
        {"command": "rm -r build"},
        {"command": "echo rm -rfv"},
        {"command": "grep -rn 'firm -rf x' ."},
        {"command": "git commit -m 'rm -rf build is slow'"},
        {"command": 'grep "git push " docs'},
        {"pane_id": "sh", "keys": "C-c"},
        {"pane_id": "sh"},
        {"command": "tmux-debug capture web --pattern 'it\\'s'"},
    ],
)
def test_others_are_left_to_the_client(decided: Any, values: dict[str, object]) -> None:  # noqa: ANN401
    assert decided(**values) == {}


def test_person_is_asked_where_a_rule_asks(decided: Any) -> None:  # noqa: ANN401
    for command in ("git push", "git push --force"):
        output = decided(command=command)["hookSpecificOutput"]
        assert output["permissionDecision"] == "ask"


def test_gemini_reads_another_answer_and_rules_may_be_arguments(decided: Any) -> None:  # noqa: ANN401
    assert decided("BeforeTool", "shutdown*", command="shutdown -h now") == {
        "decision": "deny",
        "reason": "The rule shutdown* is for panes, too: shutdown -h now",
    }
