"""Options: whether the server would start with the given ones."""

import os
from collections.abc import Mapping, Sequence

from tmux_debug_mcp import settings
from tmux_debug_mcp.errors import StartError, nearest
from tmux_debug_mcp.options import (
    OPTIONS,
    OptionError,
    Values,
    check_value,
    checked,
    parse_all,
    value_of,
)

from . import directories
from .finding import Finding, State, ok, problem, warning

PREFIX = "TMUX_DEBUG_"
# Variables of the command line, which are not options of the server.
_OTHER_VARIABLES = ("TMUX_DEBUG_SERVER",)


def variables(environ: Mapping[str, str]) -> list[Finding]:
    """Return a finding for each wrong variable of ours, or one that all are well."""
    found = _wrong_variables(environ)
    if found:
        return found
    reason = _why_wrong(parse_all([], environ), environ)
    if reason:
        return [problem("options", reason, "Correct these variables, or unset them.")]
    ours = sorted(name for name in environ if name.startswith(PREFIX))
    return [ok("options", ", ".join(ours) or f"no {PREFIX} variable is set")]


def _wrong_variables(environ: Mapping[str, str]) -> list[Finding]:
    """Return a finding for each variable of ours that is wrong on its own."""
    by_variable = {option.variable: option for option in OPTIONS}
    known = [*by_variable, *_OTHER_VARIABLES]
    found = []
    for name, value in sorted(environ.items()):
        if not name.startswith(PREFIX):
            continue
        if name not in known:
            near = nearest(name, known)
            advice = f"Did you mean {near}?" if near else f"Remove it: unset {name}"
            text = f"{name} is unknown and has no effect."
            found.append(warning("options", text, advice))
        elif name in by_variable and value:
            try:
                check_value(by_variable[name].flag, value, environ)
            except StartError as error:
                found.append(problem("options", str(error), f"Correct it, or: unset {name}"))
    return found


def fault_of(
    words: Sequence[str], added: Mapping[str, str], environ: Mapping[str, str]
) -> tuple[str, str] | None:
    """Return what is wrong with a server's options, and what to do; None if nothing is.

    `added` are its client's variables; of `environ`, the variables of our options don't count.
    """
    env = {name: value for name, value in environ.items() if not name.startswith(PREFIX)}
    env |= added
    try:
        values = parse_all(words, env)
    except OptionError as error:
        return error.reason, error.advice
    for finding in _wrong_variables(env):
        return finding.found, finding.advice
    given = {option.variable: values[option.flag] for option in OPTIONS}
    logs = directories.kept_logs(settings.state_directory(env), given)
    written = [*directories.audit(given), *logs]
    reasons = [one.found for one in written if one.state is State.PROBLEM]
    reason = next(filter(None, [_why_wrong(values, env), *reasons]), "")
    return (reason, "Correct it in the client's configuration.") if reason else None


def _why_wrong(values: Values, environ: Mapping[str, str]) -> str:
    """Return why the server does not start with these values; "" if it does."""
    try:
        checked({**values, "cwd": values["cwd"] or os.sep}, environ)
    except StartError as error:
        return str(error)
    return ""


def pane_environment(environ: Mapping[str, str]) -> Mapping[str, str]:
    """Return the environment of panes, as far as the options are valid."""
    values = {flag: value_of(flag, environ) for flag in ("env", "drop-env")}
    try:
        return settings.pane_environment_of(values | {"shell": ""}, environ)
    except StartError:  # which `variables` reports
        return settings.pane_environment_of(values | {"shell": "", "env": ""}, environ)
