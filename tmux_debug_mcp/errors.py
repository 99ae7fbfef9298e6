"""Every exception of the package.

::

    TmuxDebugError
    ├── StartError              the server can't start: a sentence on stderr, exit status 1
    └── ToolError               a call failed, and a better call may succeed: the model reads it
        ├── ArgumentError           an argument is missing, of the wrong type or out of range
        │   └── CursorError             the pane has not reached this cursor yet
        ├── KeysError               `keys` can neither be pressed nor typed
        │   └── MixedKeysError          it mixes key names and text
        ├── SignalError             a signal can't be sent to the foreground
        ├── LimitReachedError       a limit of the server is reached
        │   └── PaneLimitError          there are 512 panes, and each is running or in use
        ├── PaneNotFoundError       no pane has this id or name
        ├── NameTakenError          a running pane has this name
        ├── AmbiguousNameError      several running panes have this name
        ├── TargetNotFoundError     a tmux target matches nothing
        ├── AmbiguousTargetError    a tmux target matches several windows
        ├── KillNotAllowedError     a kill on the user's own tmux server was not allowed
        ├── PaneExitedError         the pane's program has ended
        ├── PaneLostError           the pane has vanished from tmux
        ├── BusyError               an earlier call still uses the pane
        ├── KeyboardHeldError       a person has the keyboard of the pane
        ├── NotAtPromptError        a program is in the foreground, not a shell
        ├── ShellNotReadyError      the shell in the foreground does not come to its prompt
        ├── ForeignShellError       the shell in the foreground can't read our files
        ├── JobNotTakenError        a shell did not read what was typed
        ├── LogLostError            a command was run, but its log had no room
        ├── UnknownToolError        no tool has this name
        ├── CommandError            tmux refused a command
        ├── TmuxGoneError           the tmux server ended during a call
        ├── TmuxStuckError          a tmux server does not answer
        ├── OutOfFilesError         no more files can be opened
        ├── TmuxStartError          tmux did not start
        ├── StorageError            a file of ours can't be written
        └── AuditError              a call can't be put on record (in `audit`)

A class owns its sentence; call sites pass the facts. A sentence says what is wrong and which call
comes next. The sentences here name the tools of `debug`; other toolsets replace them by their own.
Any other exception is a bug.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

_MAX_SHOWN_CHARACTERS = 80


class TmuxDebugError(Exception):
    """The base of every exception raised on purpose."""


class StartError(TmuxDebugError):
    """Raised when the server can't start here."""


class ToolError(TmuxDebugError):
    """Raised when a call fails and a better call may succeed. The model reads its text.

    Attributes:
        sentence: The text, with the names of its facts in braces.
    """

    sentence: ClassVar[str] = "{text}"

    def __init__(self, text: str = "", **facts: object) -> None:
        self._facts = {"text": text, **facts}
        super().__init__(self.sentence.format_map(self._facts))

    def text_for(
        self, sentences: Mapping[type["ToolError"], str], arguments: Mapping[str, Any]
    ) -> str:
        """Return its text in the words of a toolset.

        Args:
            sentences: The toolset's own sentences. They may name the call's arguments in braces,
                besides the error's facts.
            arguments: The call's arguments.
        """
        sentence = sentences.get(type(self))
        if sentence is None:
            return str(self)
        facts = {name: _shown(str(value)) for name, value in arguments.items()}
        return sentence.format_map(facts | self._facts)


class ArgumentError(ToolError):
    """Raised when an argument is missing, of the wrong type or out of range."""


class CursorError(ArgumentError):
    """Raised when a pane has not reached the given cursor yet."""

    sentence = (
        "Parameter 'since' is {given}, and the pane's cursor is {cursor}. Give a cursor of at most "
        "{cursor}."
    )

    def __init__(self, given: int, cursor: int) -> None:
        super().__init__(given=given, cursor=cursor)


class KeysError(ToolError):
    """Raised when `keys` can neither be pressed nor typed."""


class MixedKeysError(KeysError):
    """Raised when a `keys` string mixes key names and text. An array of steps would be clear."""

    sentence = (
        "'{key}' is a key's name, and keys do not mix with text. Give an array of steps: {steps}; "
        "or set literal to type all of it as text."
    )

    def __init__(self, key: str, steps: str) -> None:
        super().__init__(key=_shown(key), steps=steps)


class SignalError(ToolError):
    """Raised when a signal can't be sent to the foreground process group."""

    sentence = "{signal} was not sent: {reason}. Set literal to type it as text."

    def __init__(self, signal: str, reason: str) -> None:
        super().__init__(signal=signal, reason=reason)


class LimitReachedError(ToolError):
    """Raised when a limit of the server is reached."""


class PaneLimitError(LimitReachedError):
    """Raised when there are 512 panes and none can be removed to make room.

    Each one is running, or has ended while a call still subscribes to its log.
    """

    sentence = (
        "There are {most} panes and all are running. Use tmux_kill_pane to end those that are no "
        "longer needed."
    )

    def __init__(self, most: int) -> None:
        super().__init__(most=most)


class PaneNotFoundError(ToolError):
    """Raised when no pane has the given id or name."""

    sentence = "Pane '{target}' not found. Use tmux_list_panes to see active panes."

    def __init__(self, target: str) -> None:
        super().__init__(target=_shown(target))


class NameTakenError(ToolError):
    """Raised when a new pane is given the name of a running one."""

    sentence = (
        "Name '{name}' is that of the running pane {id}. Use that pane, kill it first, or give "
        "another name."
    )

    def __init__(self, name: str, pane_id: str) -> None:
        super().__init__(name=name, id=pane_id)


class AmbiguousNameError(ToolError):
    """Raised when two or more running panes have the given name."""

    sentence = "Name '{name}' is that of {count} running panes: {ids}. Give an id."

    def __init__(self, name: str, ids: Sequence[str]) -> None:
        super().__init__(name=name, count=len(ids), ids=", ".join(ids))


class TargetNotFoundError(ToolError):
    """Raised when a tmux target matches nothing."""

    sentence = "Target '{target}' not found: {reason}. Use tmux_list_panes to see what is there."

    def __init__(self, target: str, reason: str) -> None:
        super().__init__(target=_shown(target), reason=_shown(reason))


class AmbiguousTargetError(ToolError):
    """Raised when a tmux target matches several windows."""

    sentence = "Target '{target}' means {count} windows: {ids}. Give an id."

    def __init__(self, target: str, ids: Sequence[str]) -> None:
        super().__init__(target=_shown(target), count=len(ids), ids=", ".join(ids))


class KillNotAllowedError(ToolError):
    """Raised when a kill on the user's own tmux server was not allowed."""

    sentence = (
        "Nothing was killed: this tmux server is the user's own, and the MCP server was started "
        "without --allow-kill. Ask the user to do it."
    )


class PaneExitedError(ToolError):
    """Raised when keys are sent to a pane whose program has ended."""

    sentence = (
        "Pane '{pane_id}' {ending}: nothing there reads keys. "
        "Use tmux_capture_pane to read its last output or tmux_create_pane to start anew."
    )

    def __init__(self, pane_id: str, ending: str) -> None:
        super().__init__(pane_id=pane_id, ending=ending)


class PaneLostError(ToolError):
    """Raised when a pane has vanished from tmux without a call of ours that killed it."""

    sentence = (
        "Pane '{pane_id}' was lost: its tmux window or server ended from outside. "
        "Use tmux_create_pane to start it again."
    )

    def __init__(self, pane_id: str) -> None:
        super().__init__(pane_id=pane_id)


class BusyError(ToolError):
    """Raised when an earlier call still uses the pane."""

    sentence = (
        "Pane '{pane_id}' is busy: {running}, {runtime_s:.0f} s. Use tmux_wait to wait for it, "
        "tmux_send_keys with C-c to interrupt it, or tmux_run without pane_id."
    )

    def __init__(self, pane_id: str, command: str, runtime_s: float) -> None:
        super().__init__(pane_id=pane_id, running=_shown(command), runtime_s=runtime_s)


class KeyboardHeldError(ToolError):
    """Raised when something is to be typed, run or signalled in a pane that a person works in."""

    sentence = (
        "{person} has the keyboard of pane '{pane_id}'. Nothing can be typed, run or signalled "
        "there until they let go. Wait, or work in another pane."
    )

    def __init__(self, person: str, pane_id: str) -> None:
        super().__init__(person=person, pane_id=pane_id)


class NotAtPromptError(ToolError):
    """Raised when a command can't run in a pane because a program is in the foreground."""

    sentence = (
        "Pane '{pane_id}' runs {foreground}, not a shell at its prompt. Use tmux_send_keys there, "
        "or tmux_run without pane_id. Shells can be bash, zsh, dash, fish and busybox sh."
    )

    def __init__(self, pane_id: str, foreground: str | None) -> None:
        super().__init__(pane_id=pane_id, foreground=foreground or "a program")


class ShellNotReadyError(ToolError):
    """Raised when the shell in a pane does not come to its prompt in time."""

    sentence = (
        "Pane '{pane_id}': {shell} is not at its prompt; it is at work, or asks for something. "
        "Nothing was run. Use tmux_capture_pane to see what it shows, and tmux_send_keys to "
        "answer or to interrupt it with C-c."
    )

    def __init__(self, pane_id: str, shell: str) -> None:
        super().__init__(pane_id=pane_id, shell=shell)


class ForeignShellError(ToolError):
    """Raised when the shell in a pane is another user's or runs in a container."""

    sentence = (
        "Pane '{pane_id}' has a {shell} of another user or in a container, which can't read the "
        "command's file. Use tmux_send_keys with wait_for to type the command there."
    )

    def __init__(self, pane_id: str, shell: str) -> None:
        super().__init__(pane_id=pane_id, shell=shell)


class JobNotTakenError(ToolError):
    """Raised when a shell does not read the line that was typed at its prompt."""

    sentence = (
        "Pane '{pane_id}': {shell} did not take the command, and nothing was run. "
        "Use tmux_capture_pane to see what it is doing."
    )

    def __init__(self, pane_id: str, shell: str) -> None:
        super().__init__(pane_id=pane_id, shell=shell)


class LogLostError(ToolError):
    """Raised when a command was run, but its output had no room in the log."""

    sentence = (
        "Pane '{pane_id}': what it printed could not be written to {path}. The command was run; "
        "how it ended is lost. Make room there. Use tmux_capture_pane to see the screen."
    )

    def __init__(self, pane_id: str, path: str) -> None:
        super().__init__(pane_id=pane_id, path=path)


class UnknownToolError(ToolError):
    """Raised when no tool has the called name."""

    sentence = "Unknown tool '{name}'. Use one of: {known}."

    def __init__(self, name: str, known: Sequence[str]) -> None:
        super().__init__(name=_shown(name), known=", ".join(known))


class CommandError(ToolError):
    """Raised when tmux answers a command with an error.

    Attributes:
        reason: What tmux said, without its final line feed.
    """

    sentence = "tmux {tmux_command} failed: {reason}. Use tmux_list_panes to see what is there."

    def __init__(self, command: str, reason: str) -> None:
        super().__init__(tmux_command=command, reason=reason)
        self.reason = reason


class TmuxGoneError(ToolError):
    """Raised when the tmux server ends during a call."""

    sentence = (
        "The tmux server has ended and its panes with it. The next tmux_create_pane starts a new "
        "one."
    )

    def __init__(self) -> None:
        super().__init__()


class OutOfFilesError(ToolError):
    """Raised when no more files can be opened, so that processes can't be looked at."""

    sentence = (
        "Too many files are open, and the call failed, maybe halfway. Wait until other calls have "
        "returned, or kill panes that you no longer need, and call again."
    )


class TmuxStuckError(ToolError):
    """Raised when a tmux server does not answer."""

    sentence = "The tmux server at {socket} does not answer ({reason}). Ask the user to look at it."

    def __init__(self, socket: str, reason: str) -> None:
        super().__init__(socket=socket, reason=reason)


class TmuxStartError(ToolError):
    """Raised when tmux does not start."""

    sentence = (
        "tmux did not start: {last_words}. No pane was made. Ask the user to check that tmux works."
    )

    def __init__(self, last_words: str) -> None:
        super().__init__(last_words=last_words or "it said nothing")


class StorageError(ToolError):
    """Raised when a file of ours can't be written."""

    sentence = (
        "The server can't write {path} ({reason}). Make room or allow writing there, and call "
        "again."
    )

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(path=path, reason=reason)


def _shown(value: str) -> str:
    """Return the head of a value, which may have a million characters."""
    if len(value) <= _MAX_SHOWN_CHARACTERS:
        return value
    return value[:_MAX_SHOWN_CHARACTERS] + "…"


def nearest(word: str, known: Iterable[str]) -> str:
    """Return which known word a wrong one is nearly, "" if it is none of them."""
    import difflib  # noqa: PLC0415  only errors need it

    near = difflib.get_close_matches(word, list(known), n=1, cutoff=0.7)
    return near[0] if near else ""


def first_of(error: BaseException) -> BaseException:
    """Return the first error of a group, such as that of a task group; else the error itself."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
