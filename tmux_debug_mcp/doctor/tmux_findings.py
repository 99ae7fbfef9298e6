"""tmux: the program, whether a server really starts, and what programs in its panes see."""

import ctypes
import errno
import locale
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from functools import partial

from tmux_debug_mcp.settings import LOCALE_VARIABLES
from tmux_debug_mcp.tmux.versions import is_new_enough

from .finding import MORE_TIME, Check, Finding, findings_of, ok, problem, warning
from .options import pane_environment
from .probe import ProbeError, Surroundings, ask, environment

_START = "server start"
_NEEDED = "3.3"
_WORD = "doctor"
# Time for `tmux -V`, which takes some milliseconds: this, but at most half of what is left.
_VERSION_S = 5.0
_MIN_S = 0.1
# Newer tmux says "need UTF-8 locale (LC_CTYPE) but have ANSI_X3.4-1968".
_NO_UTF_8 = "UTF-8"
_LC_CTYPE_MASK = 1

# Commands that install tmux, by their package manager.
_INSTALLERS = {
    "apt-get": "sudo apt-get install tmux",
    "dnf": "sudo dnf install tmux",
    "pacman": "sudo pacman -S tmux",
    "zypper": "sudo zypper install tmux",
    "apk": "sudo apk add tmux",
    "nix-env": "nix-env -iA nixpkgs.tmux",
}

# Our server, with our own sys.path: a Nix package's modules are in paths that its scripts add.
_SERVE = "import sys; sys.path[:] = {path!r}; from tmux_debug_mcp.command.serve import main; main()"


def tmux(name: str, here: Surroundings) -> list[Finding]:
    """Return the findings about tmux, our server with it, and TERM in its panes.

    `name` is a path, or is looked up in PATH.
    """
    program = shutil.which(name, path=here.environ.get("PATH"))
    if program is None:
        return [_missing(name, here.environ), _untried("tmux is missing")]
    text = f"'{program} -V' does not answer."
    silent = problem("tmux", text, f"See what it waits for: {shlex.quote(program)} -V")
    version = Check("tmux", partial(_version, program, here.environ), [silent])
    [finding] = findings_of([version], max(min(_VERSION_S, here.seconds_left / 2), _MIN_S))
    if finding.advice:
        return [finding, _untried("this tmux can't be used")]
    if here.directory is None:
        return [finding, _untried("there is no directory for its files")]
    text = f"A server was started and did not answer within {here.timeout_s:g} s."
    late = [problem(_START, text, MORE_TIME)]
    start = Check(_START, partial(_server, program, here.environ, here.directory), late)
    return [finding, *findings_of([start], here.seconds_left)]


def locale_of_panes(environ: Mapping[str, str]) -> list[Finding]:
    """Return whether the locale of panes exists on this machine and uses UTF-8."""
    env = pane_environment(environ)
    variable = next((variable for variable in LOCALE_VARIABLES if env.get(variable)), "LANG")
    name = env.get(variable) or "C"
    fix = "Set one for panes: export TMUX_DEBUG_ENV='LC_ALL=C.UTF-8'"
    codeset = _codeset(name)
    if codeset is None:
        text = (
            f"{variable}={name} is not a locale on this machine. Non-ASCII letters may turn into "
            "escapes."
        )
        return [warning("locale", text, f"{fix} (locale -a lists all)")]
    if codeset.upper().replace("-", "") != "UTF8":
        text = (
            f"{variable}={name} uses {codeset}, not UTF-8. Programs will escape non-ASCII letters."
        )
        return [warning("locale", text, fix)]
    return [ok("locale", f"{variable}={name}")]


def _missing(name: str, environ: Mapping[str, str]) -> Finding:
    if name != "tmux":
        advice = "Set one that can be run: export TMUX_DEBUG_TMUX=/usr/bin/tmux"
        return problem("tmux", f"'{name}' is missing or can't be run.", advice)
    path = environ.get("PATH")
    lines = [line for program, line in _INSTALLERS.items() if shutil.which(program, path=path)]
    line = lines[0] if lines else f"tmux {_NEEDED} or newer, with your system's package manager"
    return problem("tmux", "tmux is not on PATH.", f"Install it: {line}")


def _untried(reason: str) -> Finding:
    return warning(_START, f"Not tried, because {reason}.", "Correct that first.")


def _version(program: str, environ: Mapping[str, str]) -> list[Finding]:
    """Return the finding from `tmux -V`, with advice if this tmux can't be used."""
    name = "tmux"
    try:
        done = subprocess.run(
            [program, "-V"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=dict(environ),
            cwd="/",
            start_new_session=True,  # for `end_children`
            check=False,
        )
    except OSError as error:
        text = f"'{program}' can't be started: {error.strerror}."
        if error.errno == errno.EAGAIN:
            advice = "End some processes, or raise the limit: prlimit --nproc=8192 --pid $$"
            return [problem(name, text, advice)]
        return [problem(name, text, "Set another one: export TMUX_DEBUG_TMUX=/usr/bin/tmux")]
    answer = done.stdout.decode(errors="replace").strip()
    if is_new_enough(answer):
        return [ok(name, f"{answer}, {program}")]
    if _NO_UTF_8 in answer:
        text = f"'{program} -V' says: {answer}."
        return [problem(name, text, "Set a locale with UTF-8: export LC_CTYPE=C.UTF-8")]
    text = f"'{program}' is {answer or 'not tmux'}; {_NEEDED} or newer is needed."
    advice = "Install a newer one, and set its path: export TMUX_DEBUG_TMUX=/path/to/tmux"
    return [problem(name, text, advice)]


def _server(program: str, environ: Mapping[str, str], directory: str) -> list[Finding]:
    """Start a server of ours, have it run a command in a pane, and return the findings."""
    env = environment(environ, directory) | {"TMUX_DEBUG_TMUX": os.path.abspath(program)}
    words = [sys.executable, "-c", _SERVE.format(path=sys.path)]
    try:
        answers = ask(words, env, directory, f'printf "{_WORD} %s\\n" "$TERM"')
    except ProbeError as error:
        text = f"A server does not work here. {error}"
        return [problem(_START, text, "See what it says: tmux-debug-mcp demo")]
    word, _, term = answers.output.strip().partition(" ")
    if word != _WORD:
        text = f"A pane printed '{answers.output.strip()[:80]}' instead of '{_WORD}'."
        return [problem(_START, text, "See what it says: tmux-debug-mcp demo")]
    text = f"started, ran a command in a pane and ended, in {answers.elapsed_s:.1f} s"
    started = ok(_START, text)
    if _is_described(term):
        return [started, ok("terminal", f"TERM={term}")]
    text = f"Panes have TERM={term}, which this machine's terminfo lacks. vim and less need it."
    advice = f"Install ncurses-base or ncurses-term, so that this finds it: infocmp {term}"
    return [started, warning("terminal", text, advice)]


def _is_described(term: str) -> bool:
    """Return whether this machine has a terminal's description; True if we can't know."""
    try:
        import curses  # noqa: PLC0415  not every Python has it
    except ImportError:
        return True
    null = os.open(os.devnull, os.O_WRONLY)
    try:
        curses.setupterm(term, null)
    except curses.error:
        return False
    finally:
        os.close(null)
    return True


def _codeset(name: str) -> str | None:
    """Return the character encoding of a locale, None if there is no such locale.

    It asks the C library, since Python can only ask by changing the locale of all threads.
    """
    library = ctypes.CDLL(None)
    pointer, text = ctypes.c_void_p, ctypes.c_char_p
    newlocale = ctypes.CFUNCTYPE(pointer, ctypes.c_int, text, pointer)(("newlocale", library))
    nl_langinfo = ctypes.CFUNCTYPE(text, ctypes.c_int, pointer)(("nl_langinfo_l", library))
    found = newlocale(_LC_CTYPE_MASK, os.fsencode(name), None)  # freed when this process ends
    return nl_langinfo(locale.CODESET, found).decode() if found else None
