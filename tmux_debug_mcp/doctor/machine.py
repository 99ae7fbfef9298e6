"""All findings: the package, tmux, a server that is really started, options, and the clients.

Whatever a server refuses by itself is not checked here: the started server says it.
"""

import os
import platform
import shlex
import shutil
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import tmux_debug_mcp
from tmux_debug_mcp import __version__
from tmux_debug_mcp.errors import nearest
from tmux_debug_mcp.linux import calls
from tmux_debug_mcp.options import OPTIONS
from tmux_debug_mcp.own_command import own_command
from tmux_debug_mcp.tmux import supervisor

from .clients import Clients, refusal
from .probe import Answers, Trial, ask, environment
from .report import Finding, ok, problem, shown, warning

_PROGRAM = "tmux-debug-mcp"
_START = "server start"
_VARIABLES = "TMUX_DEBUG_"
# Variables of the command line, which are not options of the server.
_OTHER_VARIABLES = ("TMUX_DEBUG_SERVER",)
# From this scope on, only CAP_SYS_PTRACE lets us look at our own descendants. Source: Yama.rst.
_YAMA_ADMIN_ONLY = 2
# Commands that install tmux, by their package manager; with `sudo` where that is needed.
_INSTALLERS = {
    "apt-get": "{sudo}apt-get update && {sudo}apt-get install tmux",
    "dnf": "{sudo}dnf install tmux",
    "pacman": "{sudo}pacman -S tmux",
    "zypper": "{sudo}zypper install tmux",
    "apk": "{sudo}apk add tmux",
    "nix-env": "nix-env -iA nixpkgs.tmux",
}

# Our server, with our own sys.path: a Nix package's modules are in paths that its scripts add.
_SERVE = "import sys; sys.path[:] = {path!r}; from tmux_debug_mcp.command.serve import main; main()"
# What a pane prints before it awaits input. Source: tmux(1), TERM_PROGRAM_VERSION.
_WORD = "doctor"
_COMMAND = (
    f"""printf '{_WORD} %s %s %s\\n' "$TERM" "$TERM_PROGRAM_VERSION" """
    '"$(locale charmap 2>/dev/null)"; read -r line'
)


def look(tmux: str, environ: Mapping[str, str], timeout_s: float) -> list[Finding]:
    """Return all findings. `tmux` is a path, or is looked up in PATH."""
    clients = Clients(environ)
    found = [*_package(environ), *_options(environ)]
    program = shutil.which(tmux, path=environ.get("PATH"))
    base = supervisor.runtime_directories(environ.get("XDG_RUNTIME_DIR", ""))[0]
    try:
        place = tempfile.TemporaryDirectory(prefix="doctor-", dir=base, ignore_cleanup_errors=True)
    except OSError as error:
        advice = f"Make {base} writable, or set XDG_RUNTIME_DIR to a directory with mode 0700."
        found.append(problem(_START, f"{base} can't be written: {error.strerror}.", advice))
        return [*found, *clients.findings]
    with place as directory:
        words = [sys.executable, "-c", _SERVE.format(path=sys.path)]
        found_tmux = os.path.abspath(program) if program else tmux
        env = environment({**environ, "TMUX_DEBUG_TMUX": found_tmux}, directory)
        own = Trial(words, env, _COMMAND)
        outcome, *others = ask([own, *clients.trials(directory)], directory, timeout_s)
    found += _server(program, outcome) if program else [_missing(tmux, environ)]
    return [*found, *clients.tried(others, outcome)]


def _package(environ: Mapping[str, str]) -> list[Finding]:
    text = f"{__version__} in {shown(Path(tmux_debug_mcp.__file__).parent)}"
    python = ok("python", f"{platform.python_version()}, {sys.executable}")
    on_path = shutil.which(_PROGRAM, path=environ.get("PATH"))
    own = Path(sys.prefix) / "bin" / _PROGRAM
    if on_path and own.exists() and not os.path.samefile(on_path, own):
        text += f", but {on_path} on PATH is another installation."
        advice = f"Give clients the full path: {shlex.quote(str(own))}"
        return [python, warning("package", text, advice)]
    if on_path is None and own.exists():
        text += f"; clients need the full path {shown(own)}"
    return [python, ok("package", text)]


def _options(environ: Mapping[str, str]) -> list[Finding]:
    """Return what the server refuses of our variables, and those that it ignores."""
    known = [*(option.variable for option in OPTIONS), *_OTHER_VARIABLES]
    ours = sorted(name for name in environ if name.startswith(_VARIABLES))
    found = []
    for name in ours:
        if name not in known:
            near = nearest(name, known)
            advice = f"Did you mean {near}?" if near else f"Remove it: unset {name}"
            found.append(warning("options", f"{name} is unknown and has no effect.", advice))
    reason = refusal([], environ)
    if reason:
        found.append(problem("options", reason, "Correct these variables, or unset them."))
    return found or [ok("options", ", ".join(ours) or f"no {_VARIABLES} variable is set")]


def _missing(tmux: str, environ: Mapping[str, str]) -> Finding:
    if tmux != "tmux":
        advice = "Set one that can be run: export TMUX_DEBUG_TMUX=/usr/bin/tmux"
        return problem("tmux", f"'{tmux}' is missing or can't be run.", advice)
    path = environ.get("PATH")
    lines = [line for program, line in _INSTALLERS.items() if shutil.which(program, path=path)]
    line = lines[0] if lines else "tmux 3.3 or newer, with your system's package manager"
    is_for_root = "{sudo}" in line and os.geteuid() != 0
    has_sudo = shutil.which("sudo", path=path) is not None
    who = " as root" if is_for_root and not has_sudo else ""
    line = line.format(sudo="sudo " if is_for_root and has_sudo else "")
    return problem("tmux", "tmux is not on PATH.", f"Install it{who}: {line}")


def _server(tmux: str, outcome: Answers | str) -> list[Finding]:
    advice = f"See what it says: {own_command()} demo"
    if isinstance(outcome, str):
        return [problem(_START, f"A server does not work here. {outcome}", advice)]
    words = outcome.output.split()
    if words[:1] != [_WORD]:
        text = f"A pane printed '{outcome.output.strip()[:80]}' instead of '{_WORD}'."
        return [problem(_START, text, advice)]
    [_, term, version, charmap, *_] = [*words, "", "", ""]
    text = f"started, ran a command in a pane and ended, in {outcome.elapsed_s:.1f} s"
    return [
        ok("tmux", f"tmux {version}, {tmux}"),
        ok(_START, text),
        _terminal(term),
        *_locale(charmap),
        _awaits(is_seen=outcome.reason == "input"),
    ]


def _terminal(term: str) -> Finding:
    """Return whether this machine has the description of panes' terminals."""
    found = ok("terminal", f"TERM={term}")
    try:
        import curses  # noqa: PLC0415  not every Python has it
    except ImportError:
        return found
    with open(os.devnull, "wb") as null:
        try:
            curses.setupterm(term, null.fileno())
        except curses.error:
            text = f"Panes have TERM={term}, which terminfo here lacks. vim and less need it."
            advice = f"Install ncurses-base or ncurses-term, so that this finds it: infocmp {term}"
            return warning("terminal", text, advice)
    return found


def _locale(charmap: str) -> list[Finding]:
    """Return whether programs in panes print UTF-8; nothing where there is no locale(1)."""
    if charmap in ("", "UTF-8"):
        return [ok("locale", charmap)] if charmap else []
    text = f"The locale of panes uses {charmap}, not UTF-8. Programs will escape letters."
    advice = "Set one that locale -a lists: export TMUX_DEBUG_ENV='LC_ALL=C.UTF-8'"
    return [warning("locale", text, advice)]


def _awaits(*, is_seen: bool) -> Finding:
    """Return whether we have seen that a program in a pane awaits input."""
    name = "awaits input"
    if is_seen:
        return ok(name, "can tell when programs wait for input")
    reason, advice = _why_hidden()
    return warning(name, f"Can't tell when programs wait for input: {reason}.", advice)


def _why_hidden() -> tuple[str, str]:
    """Return why we can't look at our own children, and what to do."""
    instead = "Wait for prompts with wait_for instead"
    if not calls.is_known_machine():
        return f"the system call numbers of {os.uname().machine} are unknown", instead
    try:
        scope = int(Path("/proc/sys/kernel/yama/ptrace_scope").read_text())
    except (OSError, ValueError):
        scope = 0
    if scope >= _YAMA_ADMIN_ONLY:
        advice = "Allow it: sudo sysctl kernel.yama.ptrace_scope=1"
        return f"Yama forbids it (ptrace_scope {scope})", advice
    options = _proc_options(Path("/proc/self/mounts").read_text(errors="replace"))
    hiding = [option for option in options if option.startswith("hidepid=")]
    if hiding and hiding[0] not in ("hidepid=0", "hidepid=off"):
        advice = "Allow it: sudo mount -o remount,hidepid=0 /proc"
        return f"/proc is mounted with {hiding[0]}", advice
    if "Seccomp:\t2" in Path("/proc/self/status").read_text():
        reason = "/proc/PID/syscall can't be read, and this process has a seccomp filter"
        return reason, "Allow ptrace in the container: podman run --cap-add SYS_PTRACE"
    return "a shell that read its terminal was not seen", instead


def _proc_options(mounts: str) -> list[str]:
    """Return the mount options of /proc. Source: proc(5), /proc/PID/mounts."""
    lines = [line.split() for line in mounts.splitlines()]
    found = [words[3].split(",") for words in lines if words[1:3] == ["/proc", "proc"]]
    return found[-1] if found else []
