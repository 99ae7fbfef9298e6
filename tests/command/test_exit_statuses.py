"""The exit statuses of the verbs that call tools."""

import pytest

from .conftest import Shell


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (["run", "true"], 0),
        (["run", "exit 3"], 3),
        (["run", "kill -9 $$"], 137),
        (["run", "--timeout", "0.3", "sleep 100"], 124),
        (["run", "read x"], 126),
        (["run", "bash --norc"], 126),
        (["run", "--pane", "nope", "true"], 125),
        (["run", "--nope", "true"], 125),
        (["run", "--timeout", "0", "true"], 125),
        (["create", "exit 5"], 1),
        (["create", "no-such-program"], 1),
        (["create", "kill -9 $$"], 1),
        (["create", "true"], 0),
        (["create", "--wait-for", "up", "echo up; exit 5"], 0),
        (["create", "--wait-for", "up", "echo up; sleep 100"], 0),
        (["create", "--wait-for", "up", "exit 5"], 1),
        (["create", "--wait-for", "up", "--timeout", "0.2", "sleep 100"], 124),
        (["create", "--timeout", "0.2", "while :; do echo; sleep 0.01; done"], 0),
        (["wait", "cat", "--timeout", "0"], 0),
        (["wait", "cat", "--pattern", "x", "--timeout", "0.1"], 124),
        (["wait", "cat", "--stop-pattern", "hello", "--since", "0"], 1),
        (["wait", "cat", "--gone", "hello"], 0),
        (["wait", "ended", "--gone", "x"], 0),
        (["wait", "sh", "--gone", "bash"], 1),
        (["wait", "ended"], 0),
        (["wait", "ended", "--pattern", "x", "--since", "0"], 1),
        (["wait", "sh", "--pattern", "never"], 1),
        (["wait", "cat", "--port", "1", "--timeout", "0"], 124),
        (["wait", "ended", "--port", "1"], 1),
        (["wait", "ended", "--stop-pattern", "x", "--since", "0"], 1),
        (["create", "--port", "1", "exit 5"], 1),
        (["create", "--wait-for", "never", "read -s x"], 1),
        (["send", "sh", "true", "Enter", "--stop-pattern", "never"], 0),
        (["send", "sh", "echo st''op", "Enter", "--stop-pattern", "stop$"], 1),
        (["capture", "cat", "--lines", "0"], 125),
        (["capture", "cat", "--pattern", "hello"], 0),
        (["capture", "cat", "--pattern", "nowhere"], 1),
        (["capture", "cat", "sh", "--pattern", "nowhere", "--context", "2", "--text"], 1),
        (["wait", "cat", "--idle-s", "0.1", "--timeout-s", "9"], 0),
        (["send", "ended", "x"], 125),
        (["call", "tmux_kill_pane", "pane_id=busy"], 0),
        (["call", "tmux_kill_pane"], 125),
        (["call", "nope"], 125),
        (["nope"], 125),
        ([], 125),
    ],
)
def test_exit_statuses(panes: Shell, words: list[str], status: int) -> None:
    done = panes.run(*words)

    assert done.returncode == status, done
    if status == 125:
        assert done.stdout == ""
        assert done.stderr


def test_run_that_is_lost_with_its_tmux_was_not_refused(shell: Shell) -> None:
    done = shell.run("run", "kill -9 $(ps -o ppid= -p $PPID); exec sleep 1001")

    assert (done.returncode, done.stdout) == (1, ""), done
    assert "was lost" in done.stderr
