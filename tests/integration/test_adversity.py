"""What goes wrong around panes is told as what it is, and mended where it can be."""

import errno
import os
import resource
import shutil
import signal
import stat
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import anyio
import pytest
from clocks import with_times
from mcp import MCPError
from support import PATIENCE_S, Gate, Tools, eventually, in_process, python, run

from tmux_debug_mcp.clock import Clock, Times
from tmux_debug_mcp.linux import processes
from tmux_debug_mcp.logs.log import Log
from tmux_debug_mcp.panes import engine
from tmux_debug_mcp.settings import Settings
from tmux_debug_mcp.tmux import supervisor


def directory_of(tools: Tools) -> Path:
    """Return the private directory."""
    assert tools.engine.host.client is not None
    return tools.engine.host.client.directory


class TestPrivateDirectory:
    @pytest.mark.parametrize("what", ["all", "what is in it"])
    async def test_panes_go_on_when_it_was_removed(self, tools: Tools, what: str) -> None:
        shell, other = await tools.create("bash --norc"), await tools.create("cat")
        await run(tools, "echo before", shell)
        for path in directory_of(tools).iterdir():
            path.unlink()
        if what == "all":
            directory_of(tools).rmdir()

        assert (await run(tools, "echo one", shell))[0] == "one\n"
        await tools.send(other, "two Enter")
        await tools.blocks("wait", pane_id=other, pattern="^two$", timeout_s=PATIENCE_S)
        assert "one" in await tools.capture(shell)
        assert "before" in (await tools.blocks("capture_pane", pane_id=shell, since=0))[0]
        assert (await run(tools, "echo three"))[0] == "three\n"
        assert "Killed" in (await tools.blocks("kill_pane", pane_id=other))[0]
        assert stat.S_IMODE(directory_of(tools).stat().st_mode) == 0o700

    async def test_command_that_removes_it_ends_like_others(self, tools: Tools) -> None:
        shell = await tools.create("bash --norc")
        output, meta, _ = await run(
            tools, f"rm -rf {directory_of(tools)}; echo gone; exit 3", shell
        )

        assert (output, meta["exit_code"]) == ("gone\n", 3)

    async def test_people_can_attach_again(self, tools: Tools) -> None:
        shell = await tools.create("bash --norc")
        shutil.rmtree(directory_of(tools))
        await run(tools, "true", shell)

        await eventually((directory_of(tools) / "tmux").is_socket)

    async def test_another_server_does_not_take_it_for_abandoned(self, tools: Tools) -> None:
        shell = await tools.create("bash --norc")
        shutil.rmtree(directory_of(tools))
        await run(tools, "true", shell)
        os.utime(directory_of(tools), (0, 0))
        supervisor.remove_abandoned("")

        assert (await run(tools, "echo alive", shell))[0] == "alive\n"

    @pytest.mark.parametrize("what", ["link", "file", "pipe"])
    async def test_nothing_is_removed_through_what_is_put_in_its_place(
        self, tools: Tools, tmp_path: Path, what: str
    ) -> None:
        pane_id = await tools.create("cat")
        directory = directory_of(tools)
        (tmp_path / "debug-1.mark").write_text("precious")
        (tmp_path / "debug-1.log").write_text("precious")
        shutil.rmtree(directory)
        if what == "link":
            directory.symlink_to(tmp_path)
        elif what == "file":
            directory.touch()
        else:
            os.mkfifo(directory)
        assert "Killed" in (await tools.blocks("kill_pane", pane_id=pane_id))[0]
        directory.unlink()

        assert {path.name for path in tmp_path.iterdir()} == {"debug-1.mark", "debug-1.log"}

    async def test_something_else_in_its_place_is_an_error(
        self, tools: Tools, tmp_path: Path
    ) -> None:
        shell = await tools.create("bash --norc")
        directory = directory_of(tools)
        shutil.rmtree(directory)
        directory.symlink_to(tmp_path)
        error = await tools.error("run", command="true", pane_id=shell)
        directory.unlink()

        assert "something else is there" in error
        assert list(tmp_path.iterdir()) == []

    async def test_nothing_is_left_of_what_was_put_there(self, settings: Settings) -> None:
        async with in_process(settings) as tools:
            await tools.create("cat")
            directory = directory_of(tools)
            (directory / "made" / "deep").mkdir(parents=True)
            (directory / "made" / "file").touch()
        assert not directory.exists()

    async def test_nothing_is_left_of_directories_that_are_deep(
        self, settings: Settings, short_path: Path
    ) -> None:
        # A busy disk takes seconds. The supervisor would go on, but nobody would wait for it.
        clock = Clock(Times(supervisor_end_s=PATIENCE_S))
        settings = replace(settings, runtime_dir=str(short_path))
        async with in_process(settings, clock=clock) as tools:
            await tools.create("cat")
            nest = "for number in range(2000): os.mkdir('d'); os.chdir('d'); open('f', 'w')"
            output, meta, _ = await run(
                tools, python(f"import os; os.chdir('{directory_of(tools)}')\n{nest}")
            )
            assert meta["exit_code"] == 0, output
        assert list(short_path.iterdir()) == []

    async def test_panes_go_on_when_its_parent_was_removed(
        self, settings: Settings, short_path: Path
    ) -> None:
        place = short_path / "user"
        place.mkdir(0o700)
        async with in_process(replace(settings, runtime_dir=str(place))) as tools:
            shell = await tools.create("bash --norc")
            assert directory_of(tools).parent == place
            shutil.rmtree(place)
            assert (await run(tools, "echo one", shell))[0] == "one\n"
            await tools.create("cat")
            assert "one" in await tools.capture(shell)
            moved = directory_of(tools)
        assert not moved.exists()
        assert not place.exists()

    async def test_it_is_the_users_own_where_there_is_one(
        self, settings: Settings, short_path: Path
    ) -> None:
        for mode, is_used in ((0o700, True), (0o755, False)):
            short_path.chmod(mode)
            async with in_process(replace(settings, runtime_dir=str(short_path))) as tools:
                await tools.create("cat")
                assert (directory_of(tools).parent == short_path) == is_used

    async def test_files_in_it_are_for_us_alone(self, tools: Tools) -> None:
        shell = await tools.create("bash --norc", env={"my-token": "x"})
        output, _, _ = await run(
            tools, f"stat --format='%a %F' {directory_of(tools)}/*.* {directory_of(tools)}", shell
        )

        *files, directory = output.splitlines()
        assert directory == "700 directory"
        assert len(files) == 3
        assert {line.split()[0] for line in files} == {"600"}


async def test_logs_have_no_name_for_long_where_the_file_system_wants_one(
    tools: Tools, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))

    monkeypatch.setattr(Log, "unnamed", refuse)
    shell = await tools.create("bash --norc")

    assert (await run(tools, "echo one", shell))[0] == "one\n"
    assert {path.name for path in directory_of(tools).iterdir()} == {"tmux", "debug-1.mark"}


async def test_log_of_a_pane_that_was_not_made_is_closed(
    tools: Tools, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: object) -> None:
        raise RuntimeError("a bug")

    await tools.create("cat")
    open_before = len(os.listdir("/proc/self/fd"))
    monkeypatch.setattr(engine, "start", fail)
    with pytest.raises(MCPError):
        await tools.create("cat")

    assert len(os.listdir("/proc/self/fd")) == open_before


class TestSecrets:
    async def test_no_variable_stands_in_arguments(self, settings: Settings) -> None:
        names = ["my-token", "npm_config_//registry/:_authToken", "TMUX", "PLAIN"]
        inherited = replace(settings, env={**settings.env, names[1]: "s3cret"})
        async with in_process(inherited) as tools:
            env = {name: "s3cret" for name in names if name != names[1]}
            pane_id = await tools.create("cat /proc/self/environ | tr '\\0' '\\n'; read x", env=env)
            text = await tools.shows(pane_id, "PLAIN=s3cret", lines=1000)
            told = [
                pid
                for pid in os.listdir("/proc")
                if pid.isdigit() and "s3cret" in str(processes.arguments(int(pid)))
            ]

        assert {f"{name}=s3cret" for name in names} <= set(text.split("\n"))
        assert told == []

    async def test_program_is_started_with_what_it_would_have_been_started_with(
        self, settings: Settings
    ) -> None:
        show = python(
            "import os; print(sorted(set(os.environ) - {'MCP_DEBUG_PANE', 'odd-one', 'TMUX_PANE'}))"
        )
        plain = replace(
            settings, env={**settings.env, "LC_ALL": "C", "LC_CTYPE": "", "PYTHONVERBOSE": ""}
        )
        async with in_process(plain) as tools:
            usual = (await run(tools, show))[0]
            pane_id = await tools.create(show, env={"odd-one": "1"})
            await tools.exited(pane_id)
            assert await tools.capture(pane_id) == usual.rstrip("\n")


class TestOpenFiles:
    @pytest.fixture
    def limit(self) -> Iterator[None]:
        before = resource.getrlimit(resource.RLIMIT_NOFILE)
        yield
        resource.setrlimit(resource.RLIMIT_NOFILE, before)

    @pytest.mark.usefixtures("limit")
    async def test_pane_is_not_told_as_killed_when_nothing_can_be_known_of_it(
        self, tools: Tools
    ) -> None:
        pane_id = await tools.create("trap '' HUP TERM; while :; do sleep 1; done")
        used = max(map(int, os.listdir("/proc/self/fd")))
        resource.setrlimit(
            resource.RLIMIT_NOFILE, (used + 1, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
        )
        held = []
        try:
            while True:
                held.append(os.open("/dev/null", os.O_RDONLY))
        except OSError:
            error = await tools.error("kill_pane", pane_id=pane_id)
        for fd in held:
            os.close(fd)

        assert "Too many files are open" in error
        assert (await tools.state(pane_id))["status"] == "running"
        assert "Killed" in (await tools.blocks("kill_pane", pane_id=pane_id))[0]

    async def test_many_waits_for_a_pane_open_few_files(self, tools: Tools) -> None:
        pane_id = await tools.create("cat")
        before = len(os.listdir("/proc/self/fd"))
        async with anyio.create_task_group() as tasks:
            for _ in range(100):
                tasks.start_soon(tools.engine.panes[0].ending)
                tasks.start_soon(self._wait, tools, pane_id)
            await eventually(lambda: tools.engine.panes[0].subscribers >= 100)
            opened = len(os.listdir("/proc/self/fd")) - before
            await tools.send(pane_id, "C-d")

        assert opened < 10

    @staticmethod
    async def _wait(tools: Tools, pane_id: str) -> None:
        assert (
            "exited"
            in (await tools.blocks("wait", pane_id=pane_id, pattern="never", timeout_s=15))[-1]
        )


@with_times(wake_s=0.2)
async def test_tmux_that_was_stopped_goes_on(tools: Tools) -> None:
    pane_id = await tools.create("cat")
    assert tools.engine.host.client is not None
    os.kill(tools.engine.host.client.server_pid, signal.SIGSTOP)

    await tools.send(pane_id, "hello Enter")
    assert await tools.shows(pane_id, "hello\nhello")


async def test_output_of_a_program_that_ends_while_tmux_reads_nothing_is_complete(
    tools: Tools, gate: Gate
) -> None:
    pane_id = await tools.create(f"cat {gate}; echo last; exit 3")
    [pane] = tools.engine.panes
    os.kill(pane.client.server_pid, signal.SIGSTOP)
    await gate.open()
    await anyio.sleep(1)
    assert pane.place.living_leader()  # else tmux could drop what it has not read
    os.kill(pane.client.server_pid, signal.SIGCONT)

    await tools.call("wait", pane_id=pane_id, timeout_s=PATIENCE_S)
    assert await tools.capture(pane_id) == "last"
    assert (await tools.state(pane_id))["exit_code"] == 3
    assert (await tools.blocks("capture_pane", pane_id=pane_id, since=0))[0] == "last\n"
    await eventually(lambda: pane.place.living_leader() is None)


async def test_runs_without_a_pane_never_meet_the_limit(
    tools: Tools, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "MAX_PANES", 4)
    kept = await tools.create("cat")
    for number in range(8):
        assert (await run(tools, f"echo {number}"))[0] == f"{number}\n"

    async with anyio.create_task_group() as tasks:
        for _ in range(3):
            tasks.start_soon(run, tools, "sleep 0.2")

    assert len(tools.engine.panes) == 4
    assert (await tools.state(kept))["status"] == "running"
    for _ in range(3):
        await tools.create("cat")
    assert "All 4 panes are running" in await tools.error("run", command="true")


async def test_runs_that_have_ended_leave_the_list_when_newer_ones_have(tools: Tools) -> None:
    kept = await tools.create("exit 3")
    for number in range(30):
        await run(tools, f"echo {number}")

    assert len(tools.engine.panes) == 21
    assert (await tools.state(kept))["exit_code"] == 3
    assert (await tools.capture("debug-31")) == "29"
    assert "not found" in await tools.error("capture_pane", pane_id="debug-11")
