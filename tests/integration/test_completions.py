"""Completions that a package installs work at the first Tab, in a shell that has just started."""

import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from support import Tools

SHARE = Path(__file__).parents[2] / "data" / "share"
ZSH = SHARE / "zsh" / "site-functions"
BASH = SHARE / "bash-completion" / "completions" / "tmux-debug"
FISH = SHARE / "fish" / "vendor_completions.d" / "tmux-debug.fish"

# What each shell does at its start with the files that packages install.
STARTS = {
    "bash": f"source {shlex.quote(str(BASH))}",
    "zsh": f"fpath=({shlex.quote(str(ZSH))} $fpath); autoload -Uz compinit && compinit -D",
    "fish": f"source {shlex.quote(str(FISH))}",
}
SHELLS = {"bash": "bash --norc -i", "zsh": "zsh -f -i", "fish": "fish --no-config -i"}


def completes(shell: str) -> bool:
    """Tell whether a shell is installed with what it completes by."""
    if shutil.which(shell) is None:
        return False
    command = ["zsh", "-fc", "autoload +X compinit bashcompinit"]
    return shell != "zsh" or subprocess.run(command, check=False).returncode == 0


@pytest.mark.skipif(not SHARE.exists(), reason="the package is built without what it installs")
@pytest.mark.parametrize("shell", SHELLS)
async def test_first_tab_completes_a_verb(tools: Tools, shell: str) -> None:
    if not completes(shell):
        pytest.skip(f"{shell} is not installed, or without its functions for completion")
    pane = await tools.create(SHELLS[shell])
    await tools.send(pane, [STARTS[shell], "Enter", "echo start''ed", "Enter"], wait_for="^started")
    await tools.send(pane, ["tmux-debug captu", "Tab"])

    assert "tmux-debug capture" in await tools.shows(pane, "tmux-debug capture")
