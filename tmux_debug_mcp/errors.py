"""Why a server can't start, and why calls fail.

::

    StartError
    ToolError
    ├── ArgumentError
    │   ├── CursorError
    │   ├── PatternError
    │   └── SizeError
    ├── KeysError
    │   ├── MixedKeysError
    │   └── NoKeyCodeError
    ├── LimitReachedError
    │   └── PaneLimitError
    └── all others, including AuditError of `audit`

A SentenceError owns its sentence; call sites pass the facts. A sentence says what is wrong and
which call comes next, in the `Words` of a toolset. Classes without a sentence are raised with one.
Any other exception is a bug.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from string import Formatter
from typing import Any, ClassVar, dataclass_transform

_MAX_SHOWN_CHARACTERS = 80


class StartError(Exception):
    """Raised when the server can't start here: a sentence on stderr, exit status 1."""


@dataclass(frozen=True, kw_only=True)
class Words:
    """What a toolset calls its panes and its tools, in the sentences of errors.

    Attributes:
        pane: A pane.
        argument: The argument that names a pane.
        default: The pane of a call without that argument.
        list: The tool that lists panes; `create`, `read`, `send` and `kill` are others.
        interrupt: How to interrupt a program.
        if_busy: What to do about a pane where another call's command runs.
        if_running: What to do about a pane where a program runs that is no shell.
        own: Sentences that the toolset says in another way, by the errors' classes.
    """

    pane: str
    argument: str
    default: str = "it"
    list: str
    create: str
    read: str
    send: str
    kill: str
    interrupt: str
    if_busy: str
    if_running: str
    own: Mapping[type["ToolError"], str] = field(default_factory=dict)

    def fill(self, sentence: str) -> str:
        """Return a sentence with these words in it."""
        for name, word in {**vars(self), "Pane": self.pane.capitalize()}.items():
            sentence = sentence.replace(f"{{{name}}}", str(word))
        return sentence


DEBUG = Words(
    pane="pane",
    argument="pane_id",
    list="tmux_list_panes",
    create="tmux_create_pane",
    read="tmux_capture_pane",
    send="tmux_send_keys",
    kill="tmux_kill_pane",
    interrupt="tmux_send_keys with C-c",
    if_busy=(
        "Use tmux_wait to wait for it, tmux_send_keys with C-c to interrupt it, or tmux_run "
        "without pane_id."
    ),
    if_running="Use tmux_send_keys there, or tmux_run without pane_id.",
)


class ToolError(Exception):
    """Raised when a call fails and a better call may succeed. The model reads its text."""

    sentence: ClassVar[str] = ""

    def text_for(
        self,
        names: Mapping[str, str],
        words: Words = DEBUG,
        arguments: Mapping[str, Any] | None = None,
    ) -> str:
        """Return its text in the words of a toolset.

        `names` has the names that the call gave panes, by their ids. Where the words are not those
        of `debug`, the `arguments` of the call name the pane.
        """
        sentence = words.own.get(type(self), self.sentence)
        if not sentence:
            return str(self)
        facts = dict(vars(self))
        pane_id = facts.get("pane_id", "")
        facts["pane_id"] = names.get(pane_id, pane_id)
        if words is not DEBUG:
            named = (arguments or {}).get(words.argument)
            facts["pane_id"] = head(named or words.default)
            facts["target"] = named or facts.get("target")
        return _said(words.fill(sentence), facts)

    def without_arguments(self) -> "ToolError":
        """Return the error without what it repeats of the call's arguments."""
        return self


@dataclass_transform(eq_default=False)
class SentenceError(ToolError):
    """The base of errors that own their sentence. Their fields are the facts, in order.

    A sentence names facts and `Words` in braces; `{target:head}` is a value's head. The facts in
    `repeats` repeat an argument of the call.
    """

    repeats: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, *facts: object) -> None:
        vars(self).update(zip(type(self).__annotations__, facts, strict=True))
        super().__init__(_said(DEBUG.fill(self.sentence), vars(self)))

    def without_arguments(self) -> "ToolError":
        """Return the error with "…" for each fact that repeats an argument."""
        names = type(self).__annotations__
        return type(self)(*("…" if name in self.repeats else vars(self)[name] for name in names))


class _Sentences(Formatter):
    def format_field(self, value: object, format_spec: str) -> str:
        return head(value) if format_spec == "head" else format(value, format_spec)


def _said(sentence: str, facts: Mapping[str, object]) -> str:
    return _Sentences().vformat(sentence, (), facts)


def head(value: object, most: int = _MAX_SHOWN_CHARACTERS) -> str:
    """Return the first characters of a value's text, with "…" if there are more."""
    text = str(value)
    return text if len(text) <= most else text[:most] + "…"


class ArgumentError(ToolError):
    """Raised when an argument is missing, of the wrong type or out of range."""


class PatternError(SentenceError, ArgumentError):
    """Raised when a regular expression is invalid."""

    name: str
    reason: str
    repeats = frozenset({"reason"})
    sentence = (
        "Parameter '{name}' is not an RE2 regular expression ({reason}). Escape literal "
        "characters; look-around and back references are not supported."
    )


class SizeError(SentenceError, ArgumentError):
    """Raised when a size is not one or is too large."""

    size: str
    most: str
    repeats = frozenset({"size"})
    sentence = (
        "Parameter 'size' is '{size}'. Give columns and rows, such as 80x24, of at most {most}."
    )


class CursorError(SentenceError, ArgumentError):
    """Raised when a pane has not reached the given cursor yet."""

    given: int
    cursor: int
    sentence = (
        "Parameter 'since' is {given}, but the pane's cursor is {cursor}. Give at most {cursor}."
    )


class KeysError(ToolError):
    """Raised when `keys` can neither be pressed nor typed."""


class NoKeyCodeError(SentenceError, KeysError):
    """Raised when a program would take a key for another one."""

    key: str
    plain: str
    sentence = (
        "'{key}' would reach the program as '{plain}': the program is not known to have asked its "
        "terminal to tell them apart. Send '{plain}' if you want that; many text boxes take "
        "'M-Enter' or 'C-j' for a new line."
    )


class MixedKeysError(SentenceError, KeysError):
    """Raised when a `keys` string mixes key names and text. An array of steps would be clear."""

    key: str
    steps: str
    sentence = (
        "'{key:head}' is a key name, which can't be mixed with text. Give an array of steps: "
        "{steps}; or set literal to type all of it as text."
    )


class SignalError(SentenceError):
    """Raised when a signal can't be sent to the foreground process group."""

    signal: str
    reason: str
    sentence = "{signal} was not sent: {reason}. Set literal to type it as text."


class LimitReachedError(ToolError):
    """Raised when a limit of the server is reached."""


class PaneLimitError(SentenceError, LimitReachedError):
    """Raised when there are 512 panes, each running or still being read by a call."""

    most: int
    sentence = "All {most} {pane}s are running. Use {kill} to end those you no longer need."


class PaneNotFoundError(SentenceError):
    """Raised when no pane has the given id or name."""

    target: str
    repeats = frozenset({"target"})
    sentence = "{Pane} '{target:head}' not found. Use {list} to see active {pane}s."


class NameTakenError(SentenceError):
    """Raised when a new pane is given the name of a running one."""

    name: str
    pane_id: str
    sentence = (
        "Name '{name}' belongs to the running pane {pane_id}. Use that pane, kill it first, or "
        "give another name."
    )


class AmbiguousNameError(SentenceError):
    """Raised when two or more running panes have the given name."""

    name: str
    count: int
    ids: str
    sentence = "{count} running {pane}s are named '{name}': {ids}. Give an id."


class TargetNotFoundError(SentenceError):
    """Raised when a tmux target matches nothing."""

    target: str
    reason: str
    sentence = "Target '{target:head}' not found: {reason:head}. Use {list} to see all panes."


class AmbiguousTargetError(SentenceError):
    """Raised when a tmux target matches several windows."""

    target: str
    count: int
    ids: str
    sentence = "Target '{target:head}' matches {count} windows: {ids}. Give an id."


class KillNotAllowedError(SentenceError):
    """Raised when a kill on the user's own tmux server is not allowed."""

    sentence = (
        "Nothing was killed: this tmux server is the user's own, and the MCP server was started "
        "without --allow-kill. Ask the user to do it."
    )


class PaneExitedError(SentenceError):
    """Raised when keys are sent to a pane whose program has ended."""

    pane_id: str
    ending: str
    sentence = (
        "{Pane} '{pane_id}' {ending}: nothing there reads keys. Use {read} to read its last output "
        "or {create} to start again."
    )


class PaneLostError(SentenceError):
    """Raised when a pane has vanished from tmux though no call killed it."""

    pane_id: str
    sentence = (
        "{Pane} '{pane_id}' was lost: something else ended its tmux window or server. Use {create} "
        "to start it again."
    )


class BusyError(SentenceError):
    """Raised when an earlier call still uses the pane."""

    pane_id: str
    running: str
    runtime_s: float
    sentence = "{Pane} '{pane_id}' is busy: {running:head}, {runtime_s:.0f} s. {if_busy}"


class KeyboardHeldError(SentenceError):
    """Raised when a call would type, run or signal in a pane that a person works in."""

    person: str
    pane_id: str
    sentence = (
        "{person} has the keyboard of {pane} '{pane_id}'. Nothing can be typed, run or signalled "
        "there until they let go. Wait, or work in another {pane}."
    )


class HiddenInputError(SentenceError):
    """Raised when a call would type where hidden input is awaited, and only people may.

    Attributes:
        how: How a person types it, after a colon; "" if that needs no words.
    """

    pane_id: str
    how: str
    sentence = (
        "{Pane} '{pane_id}' awaits hidden input, which only a person may type here{how}. Nothing "
        "was typed. Wait for the person, or use {interrupt} to interrupt the program."
    )


class NotAwaitedError(SentenceError):
    """Raised when a secret is to be typed where none is awaited."""

    pane_id: str
    sentence = (
        "{Pane} '{pane_id}' does not await hidden input, so a secret could be shown there. Nothing "
        "was typed."
    )


class OtherReaderError(SentenceError):
    """Raised when a secret would go to another program than the one that it was meant for."""

    pane_id: str
    readers: str
    sentence = (
        "{Pane} '{pane_id}': another program awaits hidden input now, {readers}. Nothing was "
        "typed. If the secret is meant for that program, give it again."
    )


class SecretNotAwaitedError(SentenceError):
    """Raised when secret keys can't be typed because no hidden input is awaited."""

    pane_id: str
    why: str
    sentence = (
        "{Pane} '{pane_id}' does not await hidden input: {why}. Nothing was typed, since a secret "
        "could be shown or run as a command there. To type it anyway, omit parameter 'secret'; it "
        "is then on record."
    )


class NotAtPromptError(SentenceError):
    """Raised when a command can't run in a pane because a program is in the foreground."""

    pane_id: str
    foreground: str
    sentence = (
        "{Pane} '{pane_id}' is running {foreground}, not a shell at its prompt. {if_running} "
        "Supported shells: bash, zsh, dash, fish and busybox sh."
    )


class ShellNotReadyError(SentenceError):
    """Raised when the shell in a pane does not reach its prompt in time."""

    pane_id: str
    shell: str
    sentence = (
        "{Pane} '{pane_id}': {shell} is not at its prompt; it is busy or asking for something. "
        "Nothing was run. Use {read} to see what it shows, {send} to answer, or {interrupt} to "
        "interrupt it."
    )


class ElsewhereError(SentenceError):
    """Raised when a command can't run in a pane that leads elsewhere, by ssh or a container."""

    pane_id: str
    door: str
    why: str
    sentence = (
        "{Pane} '{pane_id}' leads elsewhere, by {door}, and nothing was run: {why}. Use {send} "
        "there."
    )


class JobNotTakenError(SentenceError):
    """Raised when a shell does not read the line typed at its prompt."""

    pane_id: str
    shell: str
    sentence = (
        "{Pane} '{pane_id}': {shell} did not take the command, and nothing was run. Use {read} to "
        "see what it is doing."
    )


class LogLostError(SentenceError):
    """Raised when a command was run, but the log had no room for its output."""

    pane_id: str
    path: str
    sentence = (
        "{Pane} '{pane_id}': its output could not be written to {path}. Make room there. The "
        "command ran, but how it ended is unknown."
    )


class OutcomeUnknownError(SentenceError):
    """Raised when a command may have run, and an error keeps us from seeing how it came out.

    Attributes:
        reason: The sentences of that error.
    """

    reason: str
    sentence = (
        "The command may have run, and may still run; how it came out is not known: {reason} Look "
        "before you run it again."
    )


class UnknownToolError(SentenceError):
    """Raised when the called tool does not exist."""

    name: str
    known: str
    sentence = "Unknown tool '{name:head}'. Use one of: {known}."


class CommandError(SentenceError):
    """Raised when tmux answers a command with an error, which is the reason."""

    tmux_command: str
    reason: str
    sentence = "tmux {tmux_command} failed: {reason}. Use {list} to see all {pane}s."


class TmuxGoneError(SentenceError):
    """Raised when the tmux server ends during a call."""

    sentence = "The tmux server and its {pane}s have ended. The next {create} starts a new server."


class OutOfFilesError(SentenceError):
    """Raised when no more files can be opened, so processes can't be looked at."""

    sentence = (
        "Too many files are open, so the call failed, maybe halfway. Wait until other calls have "
        "returned, or use {kill} to end {pane}s you no longer need, and call again."
    )


class TmuxStuckError(SentenceError):
    """Raised when a tmux server does not answer.

    Attributes:
        effect: What becomes of the call, a sentence and a blank; "" if it asked for nothing.
    """

    MAY_HAPPEN = "What this call was to do may still happen. "
    NOTHING_RUN = "Nothing was run, and nothing will be. "

    socket: str
    reason: str
    effect: str
    sentence = (
        "The tmux server at {socket} does not answer ({reason}). {effect}Ask the user to look at "
        "it."
    )


class UntrustedSocketError(SentenceError):
    """Raised when another user may have put the socket of a tmux server there."""

    socket: str
    reason: str
    sentence = (
        "The tmux server at {socket} is not trusted: {reason}. Nothing was sent to it. Ask the "
        "user to look at it."
    )


class TmuxStartError(SentenceError):
    """Raised when tmux does not start."""

    last_words: str
    sentence = (
        "tmux did not start: {last_words}. No {pane} was made. Ask the user to check that tmux "
        "works."
    )


class StorageError(SentenceError):
    """Raised when a file of ours can't be written."""

    path: str
    reason: str
    sentence = (
        "The server can't write {path} ({reason}). Make room there or make it writable, and call "
        "again."
    )


def nearest(word: str, known: Iterable[str]) -> str:
    """Return the known word that a wrong one resembles most, "" if none is near."""
    import difflib  # noqa: PLC0415  only errors need it

    near = difflib.get_close_matches(word, list(known), n=1, cutoff=0.7)
    return near[0] if near else ""


def first_of(error: BaseException) -> BaseException:
    """Return the first error of a group, such as a task group's; else the error itself."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
