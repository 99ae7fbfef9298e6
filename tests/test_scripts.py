"""The integration scripts of spec 001, each against the server of this environment."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = sorted((Path(__file__).parent / "tmux-mcp").glob("test_*.sh"))


def test_there_are_nine_scripts() -> None:
    assert len(SCRIPTS) == 9


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_script_passes(script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMUX_MCP_SERVER", str(Path(sys.executable).parent / "tmux-debug-mcp"))
    done = subprocess.run([str(script)], capture_output=True, text=True, timeout=120, check=False)

    assert (done.returncode, done.stderr) == (0, ""), done.stdout
