"""What errors say in the words of a toolset, where those of `debug` would name the wrong tools.

Names in braces stand for facts of the error, arguments of the call and placeholders of the toolset.
"""

from collections.abc import Mapping

from tmux_debug_mcp.errors import (
    AmbiguousNameError,
    BusyError,
    CommandError,
    ForeignShellError,
    JobNotTakenError,
    KeyboardHeldError,
    LogLostError,
    MixedKeysError,
    NotAtPromptError,
    PaneExitedError,
    PaneLimitError,
    PaneLostError,
    PaneNotFoundError,
    ShellNotReadyError,
    TmuxGoneError,
    ToolError,
)

TABS: Mapping[type[ToolError], str] = {
    PaneNotFoundError: "Tab '{window_id}' not found. Use list_tabs to see the tabs.",
    PaneExitedError: (
        "Tab '{window_id}' has ended ({ending}): no shell is there any more. Use "
        "read_logs_from_tab to read its last output, or create_tab to make another."
    ),
    PaneLostError: (
        "Tab '{window_id}' was lost: its tmux window or server ended from outside. Use create_tab "
        "to make another."
    ),
    PaneLimitError: (
        "There are {most} tabs and all are running. Use close_tab to close those that are no "
        "longer needed."
    ),
    KeyboardHeldError: (
        "{person} has the keyboard of tab '{window_id}'. Nothing can be typed, run or stopped "
        "there until they let go. Wait, or use another tab."
    ),
    BusyError: (
        "Tab '{window_id}' is busy: {running}, {runtime_s:.0f} s. Use stop_process to stop that, "
        "or another tab."
    ),
    NotAtPromptError: (
        "Tab '{window_id}' runs {foreground}, not a shell at its prompt. Use stop_process to stop "
        "that, or another tab. Shells can be bash, zsh, dash, fish and busybox sh."
    ),
    ShellNotReadyError: (
        "Tab '{window_id}': {shell} is not at its prompt; it is at work, or asks for something. "
        "Nothing was run. Use read_logs_from_tab to see what it shows, start_process to answer, or "
        "stop_process to interrupt it."
    ),
    ForeignShellError: (
        "Tab '{window_id}' has a {shell} of another user or in a container, which can't read the "
        "command's file. Use start_process to type the command there, and read_logs_from_tab."
    ),
    JobNotTakenError: (
        "Tab '{window_id}': {shell} did not take the command, and nothing was run. Use "
        "read_logs_from_tab to see what it is doing."
    ),
    LogLostError: (
        "Tab '{window_id}': what it printed could not be written to {path}. The command was run; "
        "how it ended is lost. Make room there."
    ),
    CommandError: "tmux {tmux_command} failed: {reason}. Use list_tabs to see what is there.",
    TmuxGoneError: (
        "The tmux server has ended and its tabs with it. The next create_tab starts a new one."
    ),
}

TERMINAL: Mapping[type[ToolError], str] = {
    PaneNotFoundError: (
        "Session '{session}' not found. Use listSessions to see the sessions, or createSession."
    ),
    AmbiguousNameError: (
        "Name '{name}' is that of {count} sessions: {ids}. Give one of these instead."
    ),
    PaneExitedError: (
        "Session '{session}' has ended ({ending}). Use getContent to read its last output, or "
        "createSession to start anew."
    ),
    PaneLostError: (
        "Session '{session}' was lost: its tmux window or server ended from outside. Use "
        "createSession to make another."
    ),
    PaneLimitError: (
        "There are {most} sessions and all are running. Use closeSession to close those that are "
        "no longer needed."
    ),
    KeyboardHeldError: (
        "{person} has the keyboard of session '{session}'. Nothing can be typed there until they "
        "let go. Wait, or work in another session."
    ),
    CommandError: "tmux {tmux_command} failed: {reason}. Use listSessions to see what is there.",
    TmuxGoneError: (
        "The tmux server has ended and its sessions with it. The next call starts a new one."
    ),
}

TMUX: Mapping[type[ToolError], str] = {
    PaneNotFoundError: "Target '{target}' is gone. Use tmux_list_panes to see what is there.",
    AmbiguousNameError: "Target '{target}' means {count} panes. Give an id.",
    PaneExitedError: (
        "Pane '{target}' has ended ({ending}): nothing there reads keys. Use tmux_read_pane to "
        "read its last output or tmux_create_window to start anew."
    ),
    PaneLostError: (
        "Pane '{target}' was lost: its window or the tmux server ended from outside. Use "
        "tmux_list_panes to see what is there."
    ),
    MixedKeysError: (
        "'{key}' is a key's name, and keys do not mix with text. Send these one after the other: "
        "{steps}; or set literal to type all of it as text."
    ),
    KeyboardHeldError: (
        "{person} has the keyboard of a pane in the window of '{target}'. Until they let go, that "
        "pane takes no keys, and the panes of that window stay as they are. Wait, or work in "
        "another window."
    ),
    PaneLimitError: (
        "There are {most} panes and all are running. Use tmux_kill to end those that are no longer "
        "needed."
    ),
    CommandError: "tmux {tmux_command} failed: {reason}. Use tmux_list_panes to see what is there.",
    TmuxGoneError: (
        "The tmux server has ended and its panes with it. The next tmux_create_session starts a "
        "new one."
    ),
}
