"""Terminal-Bench's TmuxSession on `tmux-debug`, which its agents get in `perform_task`."""

import time
from collections.abc import Sequence

from shell_session import MAX_S, TIMED_OUT, ShellSession

# With one of these at the end, a blocking call waits until the shell is back.
_ENTERS = ("Enter", "C-m", "KPEnter", "C-j", "^M", "^J")


class TmuxSession:
    """A shell whose keys, screen and output an agent sees.

    Args:
        session_name: The name of the pane.
        command: How `tmux-debug` is called in the container, such as
            `["docker", "exec", CONTAINER, "tmux-debug"]`.
    """

    def __init__(self, session_name: str, command: Sequence[str] = ("tmux-debug",)) -> None:
        self._session = ShellSession(session_name, command)
        self._cursor = 0

    def start(self) -> None:
        """Start the shell."""
        self._session.start()

    def stop(self) -> None:
        """End the shell and everything that it started."""
        self._session.close()

    def send_keys(
        self,
        keys: str | list[str],
        block: bool = False,  # noqa: FBT001, FBT002
        min_timeout_sec: float = 0.0,
        max_timeout_sec: float = 180.0,
    ) -> None:
        """Type text and press keys.

        With `block` and Enter at the end, wait until the shell or a program awaits something.

        Raises:
            TimeoutError: It does not within `max_timeout_sec`.
        """
        begun = time.monotonic()
        words = [keys] if isinstance(keys, str) else list(keys)
        for word in words:  # in one call, each would wait for the program, which `0` forbids
            self._session.call("send", "--timeout", "0", self._session.name, "--", word)
        if block and words and (words[-1] in _ENTERS or words[-1].endswith(("\n", "\r"))):
            most = str(min(max_timeout_sec, MAX_S))
            done, _ = self._session.call("wait", "--timeout", most, self._session.name)
            if done == TIMED_OUT:
                raise TimeoutError(f"{words} took more than {max_timeout_sec} s")
        time.sleep(max(0.0, begun + min_timeout_sec - time.monotonic()))

    def capture_pane(self, capture_entire: bool = False) -> str:  # noqa: FBT001, FBT002
        """Return what the screen shows, or with `capture_entire` the last 1,000 lines."""
        lines = "1000" if capture_entire else "50"
        _, result = self._session.call("capture", "--lines", lines, self._session.name)
        return str(result["content"][0]["text"])

    def get_incremental_output(self) -> str:
        """Return what was printed since the last call, each line once."""
        name = self._session.name
        _, result = self._session.call("capture", "--since", str(self._cursor), name)
        self._cursor = result["_meta"]["cursor"]
        return f"New Terminal Output:\n{result['content'][0]['text']}"

    def is_session_alive(self) -> bool:
        """Tell whether the shell still runs."""
        return self._session.is_alive()
