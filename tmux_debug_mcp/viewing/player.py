"""Plays a log in a person's terminal. Keys pause it, change its speed, skip to its end, or leave.

The keys that tmux doesn't take reach the program in the replay's pane, which passes them on.
"""

import os
import re
from collections.abc import Mapping

import anyio

from tmux_debug_mcp.errors import CommandError, TmuxGoneError
from tmux_debug_mcp.panes.people import PersonsSession

from .replaying import Replay

# These fit into 80 columns with the time and a short name.
_KEYS = "Space: pause, + -: speed, e: end, q: leave"
_KEYS_WHILE_PAUSED = "Space: continue, e: end, q: leave"
_KEYS_AT_END = "q: leave"
_LEAVING = "q\x03"
_FACTORS: Mapping[str, float] = {"+": 2.0, "=": 2.0, "-": 0.5}
_MIN_SPEED, _MAX_SPEED = 1 / 64, 1024.0
# Interval at which the time is shown.
_SHOW_S = 0.2
_READ_BYTES = 4096
# Answers of terminals, and keys of more than one character; and the beginning of either.
_SEQUENCE = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[]P_^X][^\x07\x1b]*(?:\x07|\x1b\\)|O.|[^]\[P_^XO])"
)
_BEGUN = re.compile(r"\x1b(?:\[[0-?]*[ -/]*|[]P_^X][^\x07\x1b]*\x1b?|O)?$")


class Player:
    """Plays a replay in the terminal of a person who is attached to its pane.

    Args:
        replay: The replay, at its beginning.
        session: The person's session.
        name: What is played.
        speed: How many times the original speed.
        idle_s: The longest pause to keep, in seconds of the log.
    """

    def __init__(
        self, replay: Replay, session: PersonsSession, name: str, speed: float, idle_s: float
    ) -> None:
        self._replay = replay
        self._session = session
        self._name = name
        self._speed = speed
        self._idle_s = idle_s
        # Seconds of the log up to what is shown, and up to its end.
        self._at_s = 0.0
        self._end_s = 0.0
        self._is_paused = False
        self._is_ending = False
        self._has_ended = False
        self._pressed = anyio.Event()

    async def play(self, cursors: Mapping[int, float]) -> None:
        """Play until the person leaves: show each cursor at its time, in seconds of the log."""
        self._end_s = max(cursors.values(), default=0.0)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._show_line)
            tasks.start_soon(self._follow_keys, tasks.cancel_scope)
            for cursor, at_s in cursors.items():
                await self._rest(at_s)
                await self._replay.advance(cursor)
            self._has_ended = True

    async def _rest(self, until_s: float) -> None:
        """Let the log's time pass, but skip part of a long pause."""
        self._at_s = max(self._at_s, until_s - self._idle_s)
        while self._at_s < until_s and not self._is_ending:
            pressed = self._pressed
            if self._is_paused:
                await pressed.wait()
                continue
            began, speed = anyio.current_time(), self._speed
            with anyio.move_on_after(min(_SHOW_S, (until_s - self._at_s) / speed)):
                await pressed.wait()
            self._at_s += (anyio.current_time() - began) * speed
        self._at_s = until_s

    async def _show_line(self) -> None:
        try:
            while True:
                await self._session.show(*self._line())
                await anyio.sleep(_SHOW_S)
        except (CommandError, TmuxGoneError):
            return  # the person has left

    def _line(self) -> tuple[str, str]:
        """Return the line at the bottom of the terminal, and what replaces it after C-b."""
        if self._has_ended:
            return f"{self._name}: {_clock(self._end_s)}, the end; {_KEYS_AT_END}", _KEYS_AT_END
        does, keys = f"{self._speed:g}x", _KEYS
        if self._is_paused:
            does, keys = "paused", _KEYS_WHILE_PAUSED
        moment = f"{_clock(min(self._at_s, self._end_s))} of {_clock(self._end_s)}"
        return f"{self._name}: {moment}, {does}; {keys}", keys

    async def _follow_keys(self, scope: anyio.CancelScope) -> None:
        """Do what the person's keys say, including leaving.

        tmux's answers to requests in the log arrive here, too.
        """
        typed = ""
        while True:
            await anyio.wait_readable(self._replay.keys)
            typed += os.read(self._replay.keys, _READ_BYTES).decode(errors="replace")
            keys = _SEQUENCE.sub("", typed)
            begun = _BEGUN.search(keys)
            typed = begun[0] if begun else ""
            for key in keys.removesuffix(typed):
                if key in _LEAVING:
                    await self._session.end()
                    scope.cancel()
                self._press(key)

    def _press(self, key: str) -> None:
        if key == " ":
            self._is_paused = not self._is_paused
        elif key == "e":
            self._is_ending, self._is_paused = True, False
        elif key in _FACTORS:
            speed = self._speed * _FACTORS[key]
            self._speed = min(max(speed, _MIN_SPEED), _MAX_SPEED)
        else:
            return
        self._pressed.set()
        self._pressed = anyio.Event()


def _clock(seconds: float) -> str:
    minutes, rest_s = divmod(int(seconds), 60)
    return f"{minutes}:{rest_s:02}"
