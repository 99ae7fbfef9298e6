"""Options: whether the server would start with those that are given."""

import difflib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence

from tmux_debug_mcp.errors import StartError
from tmux_debug_mcp.options import OPTIONS, Option, settings_of, state_directory, value_of

from . import directories
from .finding import Finding, State, ok, problem, warning

PREFIX = "TMUX_DEBUG_"
_CORRECT = "Correct it in its configuration."
# Variables of the command line, which are no options of the server.
_OTHER_VARIABLES = ("TMUX_DEBUG_SERVER",)
_DEFAULTS = {option.flag: option.default for option in OPTIONS}
_BY_FLAG = {option.flag: option for option in OPTIONS}


def variables(environ: Mapping[str, str]) -> list[Finding]:
    """Return a finding for each variable of ours that is wrong, or one that all are well."""
    found = _wrong_variables(environ)
    if not found:
        reason = _why_wrong_together(_values_of(environ), environ)
        if reason:
            found = [problem("options", reason, "Correct these variables, or unset them.")]
    if found:
        return found
    ours = sorted(name for name in environ if name.startswith(PREFIX))
    return [ok("options", ", ".join(ours) or f"no {PREFIX} variable is set")]


def _wrong_variables(environ: Mapping[str, str]) -> list[Finding]:
    """Return a finding for each variable of ours that is wrong by itself."""
    ours = {name: value for name, value in environ.items() if name.startswith(PREFIX)}
    by_variable = {option.variable: option for option in OPTIONS}
    found = []
    for name, value in sorted(ours.items()):
        if name in by_variable:
            reason = _why_wrong(by_variable[name], value, environ)
            if reason:
                found.append(problem("options", reason, f"Correct it, or: unset {name}"))
        elif name not in _OTHER_VARIABLES:
            known = [*by_variable, *_OTHER_VARIABLES]
            text = f"{name} is no variable of ours, so nothing comes of it."
            found.append(warning("options", text, _nearest(name, known, f"unset {name}")))
    return found


def faults_of(
    words: Sequence[str], added: Mapping[str, str], environ: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with a server's options, each with what to do.

    Where each is right by itself, they are looked at together, and so are the directories.

    Args:
        words: The arguments of the server's command.
        added: The variables that its client adds.
        environ: The variables that the client itself has. Those of ours among them are left alone.
    """
    env = {name: value for name, value in environ.items() if not name.startswith(PREFIX)}
    env |= added
    values = _values_of(env)
    is_right = True
    remaining = iter(words)
    for word in remaining:
        flag, has_value, value = word.removeprefix("--").partition("=")
        option = _BY_FLAG.get(flag)
        if option is None or not word.startswith("--"):
            is_right = False
            flags = [f"--{known}" for known in _BY_FLAG]
            yield (
                f"It does not know '{word}'.",
                _nearest(word, flags, "the server does not start with it"),
            )
            continue
        if not option.value:
            value = "1"
        elif not has_value:
            value = next(remaining, "")
        values[flag] = value or option.default
        reason = _why_wrong(option, value, env)
        if reason:
            is_right = False
            yield reason, f"Correct --{flag} in its configuration."
    for finding in _wrong_variables(env):
        is_right = False
        yield finding.found, finding.advice
    if is_right:
        for reason in _wrong_together(values, env):
            yield reason, _CORRECT


def _wrong_together(values: Mapping[str, str], environ: Mapping[str, str]) -> Iterator[str]:
    """Yield why the server does not start with values that are right one by one."""
    reason = _why_wrong_together(values, environ)
    if reason:
        yield reason
    given = {option.variable: values[option.flag] for option in OPTIONS}
    state = state_directory(environ)
    for finding in [*directories.audit(given), *directories.kept_logs(state, given)]:
        if finding.state is State.PROBLEM:
            yield finding.found


def _values_of(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the values of all options, as far as the environment says."""
    return {option.flag: value_of(option.flag, environ) for option in OPTIONS}


def _why_wrong_together(values: Mapping[str, str], environ: Mapping[str, str]) -> str:
    """Return why the server does not start with all these values; "" if it does."""
    from tmux_debug_mcp.clients.server_options import check_values  # noqa: PLC0415  it imports the SDK

    try:
        check_values({**values, "cwd": values["cwd"] or os.sep}, environ)
    except StartError as error:
        return str(error)
    return ""


def pane_environment(environ: Mapping[str, str]) -> Mapping[str, str]:
    """Return the environment of panes, as far as the options can be used."""
    wanted = {flag: environ.get(_BY_FLAG[flag].variable, "") for flag in ("env", "drop-env")}
    given = {flag: value for flag, value in wanted.items() if value}
    try:
        return settings_of(_DEFAULTS | given | {"cwd": "/"}, environ, "tmux").env
    except StartError:  # which `variables` tells
        return settings_of(_DEFAULTS | {"cwd": "/"}, environ, "tmux").env


def _why_wrong(option: Option, value: str, environ: Mapping[str, str]) -> str:
    """Return why the server does not start with a value; "" if it does."""
    if not value:
        return ""
    values = _DEFAULTS | {"cwd": os.sep, option.flag: value}
    if option.flag == "allow-kill":
        values["socket"] = "default"  # which it goes with
    try:
        if option.flag == "toolsets":
            from tmux_debug_mcp.tools.toolset import choose  # noqa: PLC0415  it imports the SDK

            choose(value)
        elif option.flag == "keep":
            from tmux_debug_mcp.lease import seconds_of  # noqa: PLC0415  anyio

            seconds_of(value)
        else:
            settings_of(values, environ, "tmux")
    except StartError as error:
        return str(error)
    return ""


def _nearest(word: str, known: Iterable[str], otherwise: str) -> str:
    near = difflib.get_close_matches(word, list(known), n=1, cutoff=0.7)
    return f"Did you mean {near[0]}?" if near else f"Leave it out: {otherwise}"
