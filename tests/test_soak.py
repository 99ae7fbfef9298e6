"""Random work, in small; `./dev soak` does it for an hour."""

import os
import sys
from pathlib import Path
from random import Random

import pytest
from soak.__main__ import MAX_GROWTH_MB, Sample, check_growth, soak
from soak.clients import BrokenModelError, Client, Pane
from wire import Server


@pytest.mark.alone
def test_random_work_of_several_clients_is_answered_right_and_leaves_nothing() -> None:
    samples = soak(minutes=0, seed=1, clients=3, panes=5, steps=25)

    assert len(samples) == 3  # each without what an earlier one did not have


def test_pane_that_the_model_does_not_know_is_found(tmp_path: Path) -> None:
    server = Server().start()
    client = Client(0, server, server, Random(1), 1, [sys.executable], os.environ, str(tmp_path))  # noqa: S311
    client.panes["c0-99"] = Pane("cat")

    with pytest.raises(BrokenModelError, match="c0-99"):
        client.work(0)
    server.finish()


def test_memory_that_grows_is_found() -> None:
    at_rest = Sample(80.0, 19, 6)
    check_growth([at_rest, at_rest, at_rest])

    with pytest.raises(BrokenModelError, match="grew by"):
        check_growth([at_rest, at_rest, Sample(80.1 + MAX_GROWTH_MB, 19, 6)])
