"""What the toolsets `tabs` and `terminal` make of what a program awaits."""

from support import PATIENCE_S, SHELLS, python, texts, until
from toolsets import open_tabs, open_terminal

from tmux_debug_mcp.settings import Settings


async def test_command_of_a_tab_that_awaits_input_answers_at_once(settings: Settings) -> None:
    async with open_tabs(settings) as tabs:
        tab = (await tabs.json("create_tab"))["window_id"]
        asked = await tabs.json(
            "execute_command",
            window_id=tab,
            command="read -p 'name? ' x; echo got $x",
            timeout_ms=PATIENCE_S * 1000,
        )
        [row] = (await tabs.json("list_tabs"))["tabs"][:1]

        assert (asked["output"], asked["timed_out"], asked["awaits"]) == ("name? ", False, "input")
        assert asked["note"] == (
            "The command keeps running and awaits input: answer with start_process, or stop it "
            "with stop_process."
        )
        assert "exit_code" not in asked
        assert row["awaits"] == "input"
        busy = await tabs.error("execute_command", window_id=tab, command="echo no")
        assert busy.startswith(f"Tab '{tab}' is busy: read -p ")
        assert "If it awaits input, answer with start_process." in busy

        assert (await tabs.json("start_process", window_id=tab, command="Bob"))["started"]
        done = await tabs.json("execute_command", window_id=tab, command="echo $x")
        assert (done["output"], done["exit_code"]) == ("Bob\n", 0)


async def test_secret_that_a_tab_awaits_is_told_as_such(settings: Settings) -> None:
    async with open_tabs(settings) as tabs:
        tab = (await tabs.json("create_tab"))["window_id"]
        asked = await tabs.json("execute_command", window_id=tab, command="read -sp 'Password: ' x")
        assert (asked["output"], asked["awaits"]) == ("Password: ", "hidden input")
        assert (await tabs.json("stop_process", window_id=tab))["success"]


async def test_screen_is_looked_at_when_what_was_typed_is_done(settings: Settings) -> None:
    # A program that takes long to answer has answered in the next screenshot and content.
    slow = python("while True:\n word = input('> '); sum(range(10**6)); print('answer to', word)")
    async with open_terminal(settings) as terminal:
        await terminal.call("createSession", name="slow", command=slow)
        for number, tool in enumerate(("takeScreenshot", "getContent")):
            await terminal.call("type", session="slow", text=f"{number}\n")
            assert f"answer to {number}" in texts(await terminal.call(tool, session="slow"))[0]
        [row] = await terminal.json("listSessions")
        assert row["awaits"] == "input"


async def test_shell_of_a_terminal_is_listed_with_what_it_awaits(settings: Settings) -> None:
    async with open_terminal(settings) as terminal:
        await terminal.call("createSession", name="shell", command=SHELLS["bash"])
        # The shell may still be starting.
        await until(
            lambda: terminal.json("listSessions"), lambda rows: rows[0].get("awaits") == "keys"
        )
