"""Waits for something to be gone: real programs, with the ways in which they draw it again."""

import anyio
from support import Gate, Tools, python, texts

from .test_waiting import wait, waiting

# Nothing is there for 0.1 s between two frames. Each program does not end after the last one.
LINE = r"""
for frame in $(seq 6); do
    printf '\r\033[K%s Thinking' "$frame"; sleep 0.1; printf '\r\033[K'; sleep 0.1
done
echo 'answer: 42'; exec sleep 60
"""
# As ink does: a block of lines, with an empty one below it, which is erased from its end up.
BLOCK = r"""
import sys, time
print("a line above")
for frame in range(6):
    sys.stdout.write(f"{frame} Thinking\n{'=' * 30}\n> \n")
    sys.stdout.flush(); time.sleep(0.1)
    sys.stdout.write("\033[2K\033[1A" * 3 + "\033[2K\033[G")
    sys.stdout.flush(); time.sleep(0.1)
print("answer: 42", flush=True)
time.sleep(60)
"""
SCREEN = r"""
import sys, time
sys.stdout.write("\033[?1049h\033[?25l")
for frame in range(6):
    for text in ("", f"{frame} Thinking"):
        sys.stdout.write(f"\033[2J\033[Htitle\033[5;1H{text}")
        sys.stdout.flush(); time.sleep(0.1)
sys.stdout.write("\033[5;1H\033[Kanswer: 42"); sys.stdout.flush()
time.sleep(60)
"""
# As apt does: a bar in the last row, which does not scroll, below lines that do.
BAR = r"""
import sys, time
sys.stdout.write("\n\0337\033[1;49r\0338\033[1A")
for frame in range(6):
    sys.stdout.write(f"\0337\033[50;1H{frame} Thinking\033[K\0338")
    print("a line"); sys.stdout.flush(); time.sleep(0.1)
sys.stdout.write("\0337\033[1;50r\033[50;1H\033[K\0338")
print("answer: 42", flush=True)
time.sleep(60)
"""
PROGRAMS = (LINE, python(BLOCK), python(SCREEN), python(BAR))


async def test_spinner_is_gone_after_its_last_frame(tools: Tools) -> None:
    async def look(program: str) -> None:
        pane_id = await tools.create(program, wait_for="Thinking")
        _, facts, status = await wait(tools, pane_id, gone="Thinking")

        assert (facts["reason"], facts["status"]) == ("gone", "running"), program
        assert "answer: 42" in await tools.capture(pane_id)
        assert "; nothing matches `gone` any more; " in status

    async with anyio.create_task_group() as tasks:
        for program in PROGRAMS:
            tasks.start_soon(look, program)


async def test_what_is_gone_already_is_answered_at_once(tools: Tools) -> None:
    pane_id = await tools.create("echo Thinking; cat", wait_for="Thinking")
    await wait(tools, pane_id, idle_s=1.1)

    _, facts, _ = await wait(tools, pane_id, gone="Thinking", timeout_s=0)
    assert facts["reason"] == "gone"


async def test_what_stays_is_not_gone(tools: Tools) -> None:
    for draws in ("printf 'Thinking'", r"printf '\033[?1049h\033[3;3HThinking'"):
        pane_id = await tools.create(f"{draws}; exec sleep 60", wait_for="Thinking")
        await wait(tools, pane_id, idle_s=1.1)
        _, facts, status = await wait(tools, pane_id, gone="Thinking", timeout_s=0.1)
        assert facts["reason"] == "timed_out"
        assert "; timed out after 0.1 s; " in status


async def test_end_of_the_program_is_the_end_of_what_it_shows(tools: Tools, gate: Gate) -> None:
    pane_id = await tools.create(f"printf Thinking; cat {gate}; exit 3")
    async with waiting(tools, pane_id, gone="Thinking") as results:
        await gate.open()
    [(text, facts, status)] = results

    assert (text, facts["reason"], facts["exit_code"]) == ("Thinking", "gone", 3)
    assert status.startswith("[debug-1 exited with code 3 after ")


async def test_what_a_command_drew_is_gone_at_the_prompt(tools: Tools) -> None:
    pane_id = await tools.create("bash --norc", wait_for=r"\$ ")
    draws = r"printf 'Thinking\n'; sleep 0.1; printf '\033[A'; printf 'Thinking more\n'"
    _, facts, _ = await wait(tools, pane_id, gone="Thinking")
    assert facts["reason"] == "gone"
    await tools.send(pane_id, f"{draws} Enter")
    text, facts, _ = await wait(tools, pane_id, gone="Thinking")

    assert (facts["reason"], facts["awaits"]) == ("gone", "keys")
    assert "Thinking more" in text


async def test_first_of_several_conditions_and_panes_ends_the_wait(
    tools: Tools, gate: Gate
) -> None:
    other = await tools.create("printf 'Thinking'; exec sleep 60", wait_for="Thinking")
    pane_id = await tools.create(LINE, wait_for="Thinking")
    result = await tools.call("wait", pane_id=[other, pane_id], gone="Thinking")
    assert result.meta
    assert (result.meta["pane_id"], result.meta["reason"]) == (pane_id, "gone")

    pane_id = await tools.create(f"printf Thinking; cat {gate}; printf ' hard'; exec sleep 60")
    async with waiting(tools, pane_id, gone="Thinking", pattern="hard") as results:
        await gate.open()
    [(text, facts, _)] = results
    assert (text, facts["reason"]) == ("Thinking hard", "matched")


async def test_pattern_that_is_not_valid_is_an_error(tools: Tools) -> None:
    pane_id = await tools.create("cat")
    result = await tools.call("wait", pane_id=pane_id, gone="(")
    assert result.is_error
    assert "Parameter 'gone'" in texts(result)[0]
