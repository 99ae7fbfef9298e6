"""Whose tmux server is used: only one that no other user can have put at the socket."""

import os
import socket
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from support import User
from toolsets import Tmux, open_tabs, open_tmux

from tmux_debug_mcp.settings import Settings

NOBODY = 65534

only_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")


@asynccontextmanager
async def at(settings: Settings, path: Path) -> AsyncIterator[Tmux]:
    """Serve the toolset `tmux` with the socket at a path."""
    async with open_tmux(replace(settings, socket=str(path))) as tmux:
        yield tmux


@contextmanager
def served_by_nobody(path: Path) -> Iterator[None]:
    """Run another user's tmux server."""

    def tmux(*words: str) -> None:
        command = ["tmux", "-S", str(path), "-f", "/dev/null", *words]
        subprocess.run(command, user=NOBODY, group=NOBODY, extra_groups=[], cwd="/", check=False)

    tmux("new-session", "-d", "-s", "trap", "exec cat")
    try:
        yield
    finally:
        tmux("kill-server")


async def check_refused(settings: Settings, path: Path, reason: str) -> None:
    """Check that every kind of call is refused."""
    sentence = (
        f"The tmux server at {path} is not trusted: {reason}. Nothing was sent to it. Ask the user "
        "to look at it."
    )
    async with at(settings, path) as tmux:
        assert await tmux.error("list_sessions") == sentence
        assert await tmux.error("read_pane", target="trap") == sentence
        assert await tmux.error("send_keys", target="%0", keys="hunter2 Enter") == sentence
        assert await tmux.error("create_session", name="mine") == sentence
    async with open_tabs(replace(settings, socket=str(path))) as tabs:
        assert await tabs.error("list_tabs") == sentence
        assert await tabs.error("start_process", window_id="@0", command="hunter2") == sentence


@only_root
@pytest.mark.parametrize("name", ["tmux-0", "other"])
async def test_server_in_another_users_directory_is_refused(
    settings: Settings, short_path: Path, name: str
) -> None:
    short_path.chmod(0o755)
    directory = short_path / name
    directory.mkdir(mode=0o700)
    os.chown(directory, NOBODY, NOBODY)
    with served_by_nobody(directory / "default"):
        reason = f"its directory belongs to uid {NOBODY}"
        await check_refused(settings, directory / "default", reason)


@only_root
async def test_link_to_another_users_directory_is_refused(
    settings: Settings, short_path: Path
) -> None:
    short_path.chmod(0o755)
    directory = short_path / "theirs"
    directory.mkdir(mode=0o700)
    os.chown(directory, NOBODY, NOBODY)
    (short_path / "tmux-0").symlink_to("theirs")
    with served_by_nobody(directory / "default"):
        reason = f"its directory belongs to uid {NOBODY}"
        await check_refused(settings, short_path / "tmux-0" / "default", reason)


@only_root
@pytest.mark.parametrize("is_owner_forged", [False, True])
async def test_another_users_server_in_a_shared_directory_is_refused(
    settings: Settings, short_path: Path, *, is_owner_forged: bool
) -> None:
    short_path.chmod(0o1777)  # like /tmp
    path = short_path / "socket"
    with served_by_nobody(path):
        owner = "the socket"
        if is_owner_forged:
            os.chown(path, 0, 0)
            owner = "its server"
        try:
            await check_refused(settings, path, f"{owner} belongs to uid {NOBODY}")
        finally:
            os.chown(path, NOBODY, NOBODY)  # so that its owner can end it


async def test_directory_and_socket_that_others_can_change_are_refused(
    settings: Settings, user: User
) -> None:
    directory = user.socket.parent
    for path, mode, reason in (
        (directory, 0o777, "others can write in its directory"),
        (user.socket, 0o777, "others can connect to the socket"),
    ):
        before = path.stat().st_mode
        path.chmod(mode)
        await check_refused(settings, user.socket, reason)
        path.chmod(before)
    directory.chmod(0o1777)
    async with at(settings, user.socket) as tmux:  # nobody else can replace the socket there
        assert len(await tmux.rows("sessions")) == 2


async def test_tmuxs_own_directory_is_as_private_as_tmux_has_it(
    settings: Settings, short_path: Path
) -> None:
    directory = short_path / f"tmux-{os.geteuid()}"
    directory.mkdir(mode=0o755)
    reason = f"{directory} is not a directory of this user alone, as tmux needs it"
    await check_refused(settings, directory / "default", reason)
    directory.rename(short_path / "private")
    (short_path / "private").chmod(0o700)
    directory.symlink_to("private")
    await check_refused(settings, directory / "default", reason)


async def test_no_server_is_started_where_others_can_make_the_socket_first(
    settings: Settings, short_path: Path
) -> None:
    short_path.chmod(0o1777)
    path = short_path / "socket"
    async with at(settings, path) as tmux:
        assert await tmux.rows("sessions") == [["No sessions found."]]
        error = await tmux.error("create_session", name="mine")
    assert error == (
        f"The tmux server at {path} is not trusted: others can write in its directory, and could "
        "make the socket first. Nothing was sent to it. Ask the user to look at it."
    )
    assert not path.exists()


async def test_stale_socket_of_this_user_is_no_server(settings: Settings, short_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as stale:
        stale.bind(str(short_path / "socket"))
    (short_path / "socket").chmod(0o700)
    async with at(settings, short_path / "socket") as tmux:
        assert await tmux.rows("sessions") == [["No sessions found."]]
