#!/usr/bin/env python3
"""A hook of Claude Code, Codex or Gemini CLI: what may not run in its shell may not run in a pane.

The rules are those of Claude Code's settings, such as "Bash(rm -rf *)" in `permissions.deny` and in
`permissions.ask`, and the arguments, such as 'rm -rf *', which are denied. They are compared with
the text of each command in a call of tmux-debug's tools, or of `tmux-debug` in a shell: what a
script, a variable, or keys in several calls make of it is not seen.
"""

import json
import os
import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

# The parameters that contain commands.
_TYPED = ("command", "keys", "text", "input")
_KEYS = re.compile(
    r"(?:^|(?<=\s))(?:Enter|Return|[CM]-\S|Escape|Tab|BSpace|Up|Down|Left|Right|Home|End)(?=\s|$)"
)
_BETWEEN = re.compile(r"[;&|\n`]+|\$?\(|\)")
_BEFORE = re.compile(
    r"(?:(?:\w+=\S*|sudo|exec|env|nohup|time|if|then|else|elif|while|until|do|!|\{)\s+)*"
)
_SHELLS = ("sh", "bash", "dash", "zsh", "fish", "eval", "ssh", "xargs")
_OURS = "tmux-debug"
_SETTINGS = ("settings.json", "settings.local.json")
# Gemini's name for what Claude Code and Codex call PreToolUse.
_GEMINI = "BeforeTool"


def main() -> None:
    """Read a call from standard input; say what is decided, or nothing where no rule matches."""
    call = json.load(sys.stdin)
    project = Path(os.environ.get("CLAUDE_PROJECT_DIR", call["cwd"]))
    commands = [command for text in typed(call["tool_input"]) for command in commands_in(text)]
    for decision in ("deny", "ask"):
        rules = rules_of(decision, Path.home(), project)
        if decision == "deny":
            rules += sys.argv[1:]
        for command in commands:
            for rule in rules:
                if matches(rule, command):
                    answer(call, decision, f"The rule {rule} is for panes, too: {command[:100]}")
                    return


def typed(values: dict[str, Any]) -> Iterator[str]:
    """Yield the texts of a call's arguments that a shell may get to read."""
    for name in _TYPED:
        value = values.get(name, "")
        text = " ".join(map(str, value)) if isinstance(value, list) else str(value)
        yield _KEYS.sub("\n", text) if name == "keys" else text


def commands_in(text: str) -> Iterator[str]:
    """Yield each simple command of a text, and those in words of shells and of `tmux-debug`."""
    for part in _BETWEEN.split(text):
        command = _BEFORE.sub("", part.strip(), count=1)
        yield command
        try:
            words = shlex.split(command)
        except ValueError:  # a quoted word has been split
            words = command.split()
        program = os.path.basename(words[0]) if words else ""
        if program not in (*_SHELLS, _OURS):
            continue
        for place, word in enumerate(words):
            if " " in word:  # it may be the value of `command=` or of `--command=`
                yield from commands_in(re.sub(r"^(?:--)?\w+=", "", word))
            elif program == _OURS:
                yield " ".join(words[place:])


def rules_of(decision: str, *directories: Path) -> list[str]:
    """Return the commands of Claude Code's rules for its shell, as patterns."""
    rules = []
    for directory in directories:
        for name in _SETTINGS:
            try:
                settings = json.loads((directory / ".claude" / name).read_text())
            except (OSError, ValueError):
                continue
            rules += settings.get("permissions", {}).get(decision, [])
    return [rule[len("Bash(") : -1] for rule in rules if re.fullmatch(r"(?s)Bash\(.*\)", rule)]


def matches(rule: str, command: str) -> bool:
    """Tell whether a rule covers a command: `rm *` and `rm:*` cover `rm`, with or without more."""
    beginning = re.sub(r"(?::| )\*$", "", rule)
    if beginning != rule and command == beginning:
        return True
    pattern = re.sub(r":\*$", " *", rule)
    return bool(re.fullmatch("(?s:.*)".join(map(re.escape, pattern.split("*"))), command))


def answer(call: dict[str, Any], decision: str, reason: str) -> None:
    """Print a decision as the client reads it."""
    if call["hook_event_name"] == _GEMINI:
        sys.stdout.write(json.dumps({"decision": decision, "reason": reason}))
        return
    said = {"permissionDecision": decision, "permissionDecisionReason": reason}
    output = {"hookSpecificOutput": {"hookEventName": call["hook_event_name"], **said}}
    sys.stdout.write(json.dumps(output))


if __name__ == "__main__":
    main()
