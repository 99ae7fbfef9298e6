"""The server's options behind `--`, checked before a client gets them."""

import argparse
from collections.abc import Mapping
from typing import NoReturn

from tmux_debug_mcp.errors import StartError
from tmux_debug_mcp.lease import seconds_of
from tmux_debug_mcp.options import OPTIONS, Values, check_uses, settings_of
from tmux_debug_mcp.sockets.servers import CommandError
from tmux_debug_mcp.tools.toolset import choose


def check(words: list[str], environ: Mapping[str, str]) -> None:
    """Check that the server takes these options.

    Raises:
        CommandError: It does not.
    """
    parsed = vars(_parser().parse_args(words))
    given = {option.flag: parsed[option.flag.replace("-", "_")] for option in OPTIONS}
    values = {option.flag: given[option.flag] or option.default for option in OPTIONS}
    try:
        check_values(values, environ)
    except StartError as error:
        raise CommandError(str(error)) from None


def check_values(values: Values, environ: Mapping[str, str]) -> None:
    """Check that the server starts with these values, all together.

    Args:
        values: The value of each option, by its flag; "" where it has none.
        environ: The environment of the server.

    Raises:
        StartError: It does not.
    """
    toolsets = choose(values["toolsets"])
    if values["keep"]:
        seconds_of(values["keep"])
    settings_of(values, environ, values["tmux"])
    check_uses(values, toolsets)


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are ours."""

    def error(self, message: str) -> NoReturn:
        raise CommandError(f"The options behind -- are wrong: {message}.")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="tmux-debug-mcp", add_help=False, allow_abbrev=False)
    for option in OPTIONS:
        if option.value:
            parser.add_argument(f"--{option.flag}")
        else:
            parser.add_argument(f"--{option.flag}", action="store_const", const="1")
    return parser
