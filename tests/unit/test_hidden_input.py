"""Whether a terminal shows a secret that was typed: in whatever way it is drawn."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from tmux_debug_mcp.logs.log import Log
from tmux_debug_mcp.panes.hidden_input import is_shown

LINE = "open sesame-77"
WAYS = {
    "plain": b"open sesame-77\r\n",
    "in a line": b"you typed open sesame-77!\r\n",
    "in colour": b"\033[31mopen ses\033[0mame-77\r\n",
    "each in its colour": b"".join(
        b"\033[3%dm%c" % (n % 8, c) for n, c in enumerate(b"open sesame-77")
    ),
    "cell by cell": b"\033[H"
    + b"".join(b"\033[5;%dH%c" % (n, c) for n, c in enumerate(b"open sesame-77", start=1)),
    "backwards": b"\033[?1049h"
    + b"".join(b"\033[5;%dH%c" % (14 - n, c) for n, c in enumerate(b"open sesame-77"[::-1])),
    "with overwriting": b"open sesxxx\b\b\bame-77\r\n",
    "over two rows": b"\033[?1049h\033[Hopen ses\033[2;1Hame-77",
    "blank at the end of a row": b"\033[?1049h\033[Hopen\033[2;1Hsesame-77",
    "wide blank": b"open   sesame-77\r\n",
}


def log_of(directory: Path, data: bytes) -> Log:
    log = Log.create(directory / "log", "mark")
    log.path.write_bytes(data)
    log.begin(80, 24)
    return log


@pytest.mark.parametrize("way", WAYS)
async def test_secret_is_found_however_it_is_drawn(tmp_path: Path, way: str) -> None:
    log = log_of(tmp_path, b"Password: \r\n" + WAYS[way])
    pane = SimpleNamespace(log=log)
    assert await is_shown(pane, LINE, len(b"Password: \r\n"))  # type: ignore[arg-type]


@pytest.mark.parametrize("printed", [b"got 13\r\n", b"    \r\n", b"open sesame\r\n77\r\n", b""])
async def test_other_output_is_not_taken_for_the_secret(tmp_path: Path, printed: bytes) -> None:
    pane = SimpleNamespace(log=log_of(tmp_path, printed))
    for line in (LINE, "    ", "got"):
        assert not await is_shown(pane, line, 0)  # type: ignore[arg-type]
