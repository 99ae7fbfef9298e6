"""The eight stories again, each as the lines of a shell script that calls `tmux-debug`."""

import re
import shlex
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from stories.scripts import first_pid, stories, with_pid
from stories.steps import call_of

from tmux_debug_mcp.verbs.registry import TOOLS
from tmux_debug_mcp.verbs.words import flag_of, parameters_of_tool

from .conftest import Shell


def line_of(tool: str, arguments: Mapping[str, Any]) -> str:
    """Return the line of a shell script that does what a call does."""
    [verb] = [verb for verb in TOOLS if verb.tool == f"tmux_{tool}"]
    required = [one.name for one in parameters_of_tool(verb) if one.is_required]
    flags, words, pipe = [], [], ""
    for name, value in arguments.items():
        values = value if isinstance(value, list) else [value]
        if name == "keys" and arguments.get("secret"):
            pipe = f"{shlex.join(['printf', '%s', *values])} | "
        elif name in required:
            words += [str(one) for one in values]
        elif value is True:
            flags.append(flag_of(name))
        else:
            flags += [flag_of(name), str(value)]
    return pipe + shlex.join(["tmux-debug", verb.name, *flags, "--", *words])


@pytest.mark.parametrize("name", stories())
def test_story_is_debugged_by_a_shell_script(shell: Shell, on_path: Path, name: str) -> None:
    story = stories()[name]
    env = shell.env | {"PATH": f"{on_path}:{shell.env['PATH']}"}
    shell.out("start")
    pid = ""
    for number, move in enumerate(story.moves):
        done = subprocess.run(
            ["sh", "-c", line_of(*call_of(with_pid(move, pid), story.cwd))],
            env=env,
            cwd=shell.cwd,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        text = done.stdout + done.stderr
        pid = pid or first_pid(text)
        assert done.returncode != 125, text
        assert re.search(move.shows, text), (number, text)
        assert re.search(move.says, text), (number, text)


def test_lines_are_what_a_person_would_write() -> None:
    assert line_of("send_keys", {"pane_id": "web", "keys": ["a b", "C-c"], "timeout_s": 0}) == (
        "tmux-debug send --timeout 0 -- web 'a b' C-c"
    )
