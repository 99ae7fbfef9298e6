"""The keyboard of a pane: what is typed goes to its program, and is remembered for those who wait for the answer."""

# tmux's variables of the modes that keys depend on.
KEY_MODES = "#{keypad_cursor_flag} #{keypad_flag}"


def pastes(target: str, buffer: str, flags: str) -> list[tuple[str, ...]]:
    """Return the commands that paste a buffer and delete it; tmux 3.3 ends when that is done to a dead pane."""
    paste = f"paste-buffer -d {flags} -b {buffer} -t {target}"
    leave: list[tuple[str, ...]] = [("copy-mode", "-q", "-t", target)] if "-p" in flags else []
    return [*leave, ("if-shell", "-F", "-t", target, "#{pane_dead}", f"delete-buffer -b {buffer}", paste)]
