"""Harbor's TmuxSession on `tmux-debug`.

harbor.agents.terminus_2.terminus_2.TmuxSession = harbor_session.TmuxSession
"""

import asyncio
from collections.abc import Sequence
from typing import Any

import terminal_bench_session


class TmuxSession:
    """A shell whose keys, screen and output an agent sees.

    Of the arguments that Terminus gives, only the name is used: `command` calls `tmux-debug` in its
    environment.
    """

    command: Sequence[str] = ("tmux-debug",)

    def __init__(self, session_name: str, *_: Any, **__: Any) -> None:  # noqa: ANN401
        self._session = terminal_bench_session.TmuxSession(session_name, self.command)

    async def start(self) -> None:
        """Start the shell."""
        await asyncio.to_thread(self._session.start)

    async def stop(self) -> None:
        """End the shell and everything that it started."""
        await asyncio.to_thread(self._session.stop)

    async def send_keys(
        self,
        keys: str | list[str],
        block: bool = False,  # noqa: FBT001, FBT002
        min_timeout_sec: float = 0.0,
        max_timeout_sec: float = 180.0,
    ) -> None:
        """Type text and press keys."""
        send = self._session.send_keys
        await asyncio.to_thread(send, keys, block, min_timeout_sec, max_timeout_sec)

    async def capture_pane(self, capture_entire: bool = False) -> str:  # noqa: FBT001, FBT002
        """Return what the screen shows."""
        return await asyncio.to_thread(self._session.capture_pane, capture_entire)

    async def get_incremental_output(self) -> str:
        """Return what was printed since the last call."""
        return await asyncio.to_thread(self._session.get_incremental_output)

    async def is_session_alive(self) -> bool:
        """Tell whether the shell still runs."""
        return await asyncio.to_thread(self._session.is_session_alive)
