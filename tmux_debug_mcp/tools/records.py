"""Calls on record: what the audit says about each, without values that are or may be secrets."""

import contextlib
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from tmux_debug_mcp.audit import AuditError, AuditLog
from tmux_debug_mcp.errors import KeysError, ToolError
from tmux_debug_mcp.vt.sequences import CONTROLS
from tmux_debug_mcp.vt.steps import steps

from .toolset import Answer

Arguments = Mapping[str, Any]

# The arguments of a call with `secret` that are put on record. An unknown one may have been
# meant as `keys`.
_NEVER_SECRET = frozenset({"pane_id", "literal", "secret"})

# What may come between two characters of an echo: the end of a row, colours.
_BETWEEN = r"(?:\n|\033\[[0-9;:]*m)*"
# The echo of a longer line is found only without these.
_MAX_COLOURED = 1000
# A shorter secret, such as `y`, is part of many words. It is an echo only as a separate word.
_MIN_WITHIN_WORDS = 4
# How many lines' echoes are looked for: those of the newest.
_MAX_SECRETS = 1000


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a tool or another verb, with the arguments as the caller sent them.

    `caller` is "" for the client that started the server.
    """

    name: str
    arguments: Arguments
    caller: str


class Records:
    """Puts calls on record in an audit, None to record none.

    `run` is the name of this server run, which tells its panes from those of other runs.
    """

    def __init__(self, audit: AuditLog | None, run: str) -> None:
        self._audit = audit
        self._run = run
        self._secrets: dict[re.Pattern[str], None] = {}

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
        self._secrets |= dict.fromkeys(_secret_texts(call.arguments))
        for oldest in list(self._secrets)[:-_MAX_SECRETS]:
            del self._secrets[oldest]
        audit.flush()
        begin = time.monotonic()
        capture = ""
        try:
            answered = await answer()
            if answered.output is not None and answered.pane_id is not None:
                output = answered.output
                for secret in self._secrets:
                    output = secret.sub("[secret]", output)
                capture = audit.capture(answered.pane_id, output)
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
        given = _without_secrets(call.arguments)
        record |= {key: value for key, value in given.items() if key not in record}
        if answer:
            if answer.output is not None:
                record["output_bytes"] = len(answer.output.encode())
            if "cursor" in answer.meta:
                record["cursor"] = answer.meta["cursor"]
            record |= {key: fact for key, fact in answer.outcome.items() if fact is not None}
        record["duration_ms"] = round((time.monotonic() - begin) * 1000, 3)
        record["ok"] = error is None
        if error is not None:
            record["error"] = error
        return record


def _secret_texts(arguments: Arguments) -> list[re.Pattern[str]]:
    """Return expressions for the lines that a call with `secret` types, the longest first."""
    if arguments.get("secret", False) is False:
        return []
    try:
        typed = steps(
            arguments.get("keys", ""),
            literal=bool(arguments.get("literal")),
            paste=bool(arguments.get("paste")),
        )
    except (KeysError, TypeError, ValueError, AttributeError):  # it is not typed
        return []
    lines = {line for step in typed for line in CONTROLS.split(step.text) if line.strip(" ")}
    return [_expression(line) for line in sorted(lines, key=len, reverse=True)]


def _expression(line: str) -> re.Pattern[str]:
    """Return an expression for a line as terminals show it: wrapped, and with its colours."""
    if len(line) > _MAX_COLOURED:
        return re.compile(re.escape(line))
    expression = _BETWEEN.join(map(re.escape, line))
    if len(line) < _MIN_WITHIN_WORDS:
        expression = rf"(?<!\w){expression}(?!\w)"
    return re.compile(expression)


def _without_secrets(arguments: Arguments) -> dict[str, Any]:
    """Return the arguments that are put on record; of `env` only the names."""
    given = dict(arguments)
    if given.get("secret", False) is not False:  # an invalid value counts as yes
        given = {key: value for key, value in given.items() if key in _NEVER_SECRET}
    if "env" in given:
        env = given["env"]
        given["env"] = list(env) if isinstance(env, Mapping) else type(env).__name__
    return given
