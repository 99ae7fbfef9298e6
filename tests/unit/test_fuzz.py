"""Hostile input: bytes that were found to matter, and others like them."""

from pathlib import Path

import pytest
from fuzz.targets import TARGETS
from hypothesis import given
from hypothesis import strategies as st

CORPUS = Path(__file__).parents[1] / "tools" / "fuzz" / "corpus"


@pytest.mark.parametrize("name", TARGETS)
def test_input_that_covered_something_new_breaks_no_promise(name: str) -> None:
    inputs = sorted((CORPUS / name).iterdir())
    assert inputs
    for path in inputs:
        try:
            TARGETS[name](path.read_bytes())
        except Exception as error:
            raise AssertionError(path) from error


@pytest.mark.parametrize("name", TARGETS)
@given(data=st.binary(max_size=300))
def test_no_bytes_break_a_promise(name: str, data: bytes) -> None:
    TARGETS[name](data)
