"""The tmux commands that type text into a pane by pasting a buffer. No I/O.

Text goes through a buffer, not through send-keys: a pasted buffer reaches the program even while a
person has the pane in copy mode. The exception is a bracketed paste, which leaves that mode first:
in it, tmux asks the mode, not the program, whether it wants brackets.

Source: tmux(1), "BUFFERS", and experiments.
"""

from .versions import CLEANS_PASTES, is_at_least


def paste_commands(
    target: str, buffer: str, load: tuple[str, ...], *, is_bracketed: bool, version: str
) -> list[tuple[str, ...]]:
    r"""Return the commands that load a buffer, paste it into a pane, and delete it.

    They fail if the pane is gone. A dead pane gets nothing: pasting into one ends tmux 3.3. `load`
    is the command that loads the buffer, and `version` is tmux's. With `is_bracketed`, tmux puts
    the text in brackets (`\e[200~`) if the program asks for them.
    """
    flags = "-p" if is_bracketed else "-r"
    if is_at_least(version, CLEANS_PASTES):
        flags += " -S"
    paste = f"paste-buffer -d {flags} -b {buffer} -t {target}"
    delete = f"delete-buffer -b {buffer}"
    commands: list[tuple[str, ...]] = [
        # If its target is gone, if-shell does not fail: it takes the current pane instead.
        ("has-session", "-t", target),
        load,
    ]
    if is_bracketed:
        commands.append(("copy-mode", "-q", "-t", target))
    commands.append(("if-shell", "-F", "-t", target, "#{pane_dead}", delete, paste))
    return commands
