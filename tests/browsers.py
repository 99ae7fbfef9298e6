"""Chromium without a window, by Playwright."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Browser

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), ""
)


@contextmanager
def chromium() -> Iterator["Browser"]:
    """Give a browser. It has to be installed, and Playwright as well."""
    from playwright.sync_api import sync_playwright  # noqa: PLC0415  it may be missing

    with sync_playwright() as started:
        # Its socket is in TMPDIR, whose path may be too long for one.
        env: dict[str, str | float | bool] = {**os.environ, "TMPDIR": "/tmp"}  # noqa: S108
        browser = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"], env=env)
        yield browser
        browser.close()
