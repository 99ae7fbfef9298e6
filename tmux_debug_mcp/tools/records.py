"""Calls on record: what the audit says about each, without values that are or may be secrets."""

import contextlib
import re
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from tmux_debug_mcp.audit import AuditError, AuditLog
from tmux_debug_mcp.errors import KeysError, ToolError
from tmux_debug_mcp.panes.hidden_input import shown_as
from tmux_debug_mcp.vt.sequences import CONTROLS
from tmux_debug_mcp.vt.steps import steps

from .arguments import ArgumentsParser, is_secret
from .toolset import Answer

Arguments = Mapping[str, Any]

# The arguments of a call with `secret` that are put on record.
_NEVER_SECRET = frozenset({"pane_id", "literal", "secret"})
# What calls type. An unknown argument may have been meant to keep it off the record.
_TYPED = frozenset({"keys", "text"})
_ID = re.compile(r"debug-\d+")

# How many lines' echoes are looked for: those of the newest.
_MAX_SECRETS = 1000


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a tool or another verb, with the arguments as the caller sent them.

    `caller` is "" for the client that started the server. `parser` checks the arguments; None if
    they are ours.
    """

    name: str
    arguments: Arguments
    caller: str
    parser: ArgumentsParser | None = None


class Records:
    """Puts calls on record in an audit, None to record none.

    `run` is the name of this server run, which tells its panes from those of other runs.
    """

    def __init__(self, audit: AuditLog | None, run: str) -> None:
        self._audit = audit
        self._run = run
        # The lines that calls with `secret` typed, the newest last, and expressions for them.
        self._secrets: dict[str, re.Pattern[str]] = {}

    async def answered(
        self,
        call: Call,
        answer: Callable[[], Awaitable[Answer]],
        text_for: Callable[[ToolError], str] = str,
    ) -> Answer:
        """Answer a call and put it on record, also when it fails or is cancelled.

        `text_for` returns the text of an error, as the caller gets it.

        Raises:
            AuditError: An earlier call, this one or its text can't be kept. Not if cancelled.
            Exception: What `answer` raises.
        """
        audit = self._audit
        if audit is None:
            return await answer()
        self.keep_out(_secret_lines(call.arguments))
        audit.flush()
        begin = time.monotonic()
        capture = ""
        try:
            answered = await answer()
            if answered.output is not None and isinstance(answered.pane_id, str):
                capture = audit.capture(
                    answered.pane_id, without(self._secrets.values(), answered.output)
                )
        except Exception as reason:
            text = text_for(reason) if isinstance(reason, ToolError) else str(reason)
            audit.record(self._record(call, begin, error=text))
            raise
        except BaseException:
            # A cancelled call stays cancelled. The audit keeps a record that it can't write.
            with contextlib.suppress(AuditError):
                audit.record(self._record(call, begin, error="cancelled"))
            raise
        record = self._record(call, begin, answered)
        if capture:
            record["capture"] = capture
        audit.record(record)
        return answered

    def keep_out(self, secrets: Iterable[str]) -> None:
        """Keep lines that are typed as secrets out of full captures from now on."""
        if self._audit is None or not self._audit.keeps_texts:
            return
        self._secrets |= {line: shown_as(line) for line in secrets if line.strip(" ")}
        for oldest in list(self._secrets)[:-_MAX_SECRETS]:
            del self._secrets[oldest]

    def _record(
        self, call: Call, begin: float, answer: Answer | None = None, *, error: str | None = None
    ) -> dict[str, Any]:
        """Return the record of a call that began at a time of the monotonic clock.

        A call that failed or was cancelled has an error instead of an answer.
        """
        now = datetime.now(UTC)
        record: dict[str, Any] = {
            "ts": now.strftime("%Y-%m-%dT%H:%M:%S.") + f"{now.microsecond // 1000:03d}Z",
            "run": self._run,
            "tool": call.name.removeprefix("tmux_"),
        }
        if call.caller:
            record["caller"] = call.caller
        if answer and answer.pane_id:
            record["pane_id"] = answer.pane_id
        given = _without_secrets(call, is_answered=answer is not None)
        record |= {key: value for key, value in given.items() if key not in record}
        if answer:
            if answer.output is not None:
                record["output_bytes"] = len(answer.output.encode())
            if "cursor" in answer.meta:
                record["cursor"] = answer.meta["cursor"]
        record["duration_ms"] = round((time.monotonic() - begin) * 1000, 3)
        if error is not None:
            return record | {"result": "failed", "failed": True, "error": error}
        if answer and answer.outcome:
            return record | answer.outcome.record
        return record | {"result": "ok", "failed": False}


def _secret_lines(arguments: Arguments) -> list[str]:
    """Return the lines that a call with `secret` types."""
    if not is_secret(arguments):
        return []
    try:
        typed = steps(
            arguments.get("keys", ""),
            literal=bool(arguments.get("literal")),
            paste=bool(arguments.get("paste")),
        )
    except (KeysError, TypeError, ValueError, AttributeError):  # it is not typed
        return []
    return [line for step in typed for line in CONTROLS.split(step.text)]


def without(secrets: Iterable[re.Pattern[str]], text: str) -> str:
    """Return a text with `[secret]` for each secret. Those that overlap become one."""
    found = sorted(match.span() for secret in secrets for match in secret.finditer(text))
    parts: list[str] = []
    position = 0
    for start, end in found:
        if start >= position:
            parts += [text[position:start], "[secret]"]
        position = max(position, end)
    return "".join([*parts, text[position:]])


def _without_secrets(call: Call, *, is_answered: bool) -> dict[str, Any]:
    """Return the arguments that are put on record; of `env` only the names.

    Of a call that was not answered, these are arguments that its tool takes, with values that it
    accepts: any other may be a secret in the wrong place, and so may the name of a pane.
    """
    given = dict(call.arguments)
    if call.parser and not is_answered:
        given = call.parser.known(given)
        if not call.parser.takes(call.arguments):
            given = {name: value for name, value in given.items() if name not in _TYPED}
    if is_secret(call.arguments):
        given = {name: value for name, value in given.items() if name in _NEVER_SECRET}
        if not is_answered and not _ID.fullmatch(given.get("pane_id", "")):
            given.pop("pane_id", None)
    if "env" in given:
        given["env"] = list(given["env"] or ())
    return given
