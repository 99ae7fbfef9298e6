"""How the program of a pane ended.

pane.sh writes a mark with the exit code behind the program's output. If something killed pane.sh
first, tmux is asked how that ended.
"""

import signal

from tmux_debug_mcp.clock import Clock
from tmux_debug_mcp.errors import CommandError, TmuxGoneError
from tmux_debug_mcp.linux import processes, terminals
from tmux_debug_mcp.logs.growth import LogEvents
from tmux_debug_mcp.logs.log import Log, Mark

from .looking.state import State, ended_state
from .place import Place

_TMUX_FACTS = "#{pane_id} #{pane_dead} #{pane_dead_status} x#{pane_dead_signal}"


class Ending:
    """How the program of a pane ended, kept once it is known.

    `started_at` is when the pane was made, by the clock.
    """

    def __init__(self, place: Place, log: Log, events: LogEvents, clock: Clock) -> None:
        self._clock = clock
        self.started_at = clock.now()
        self._place = place
        self._log = log
        self._events = events
        self._state: State | None = None

    @property
    def is_known(self) -> bool:
        """Whether it is known that the program has ended."""
        return self._state is not None

    async def find(self) -> State | None:
        """Return how the program ended, None while it runs. Its output is complete then."""
        if self._state is None:
            leader = self._place.living_leader()
            if leader is None or leader.reaped:
                self._state = await self._wait_for_state()
        return self._state

    def record(self, state: State) -> None:
        """Record how the program ended, in place of what was recorded before."""
        self._state = state

    def record_as_gone(self) -> None:
        """Record that the program has ended, since tmux no longer has the pane."""
        if self._state is None:
            mark = self._log.find_mark()
            self._state = self._state_at(mark) if mark else self._state_now(None)

    async def _wait_for_state(self) -> State | None:
        """Return how the program ended, None if that can't be told in `Times.mark_s`."""
        times = self._clock.times
        begin = self._clock.now()
        with self._events.subscribe(self._log) as subscription:
            while True:
                mark = self._log.find_mark()
                if mark:
                    return self._state_at(mark)
                leader = self._place.living_leader()
                if leader is None:
                    state = await self._ask_tmux()
                    if state:
                        return state
                waited_s = self._clock.now() - begin
                if waited_s > times.mark_s:
                    return None
                if leader and waited_s > times.stopped_output_s:
                    terminals.restart_output(leader.pid)
                await subscription.wait(times.poll_s)

    async def _ask_tmux(self) -> State | None:
        """Return how pane.sh ended without writing its mark, None if tmux has not noticed yet."""
        target = self._place.target
        client = self._place.client
        try:
            [[line]] = await client.run(("display-message", "-p", "-t", target, _TMUX_FACTS))
        except (CommandError, TmuxGoneError):
            return self._state_now(None)
        pane_id, _, status, signal_word = line.decode().split(" ")
        if pane_id != target:
            return self._state_now(None)
        if status:
            return self._state_now(int(status))
        number = signal_word.removeprefix("x")
        if number:
            return self._state_now(processes.signal_exit_code(int(number)))
        # tmux 3.3 may miss the SIGCHLD of a child. Another one makes it look.
        processes.send_signals([client.server_pid], signal.SIGCHLD)
        return None

    def _state_at(self, mark: Mark) -> State:
        # The log grew last when the mark was printed.
        runtime_s = self._age_s() - self._log.quiet_s()
        return ended_state(mark.exit_code, max(0.0, runtime_s), mark.offset)

    def _state_now(self, exit_code: int | None) -> State:
        """Return the state of a program that has just ended; lost if its exit code is not known."""
        return ended_state(exit_code, self._age_s(), self._log.size)

    def _age_s(self) -> float:
        return self._clock.now() - self.started_at
