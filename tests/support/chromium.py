"""The Chromium of the operating system, driven by Playwright."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

# The shell has no window to keep, which saves almost half the CPU.
BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
FLAGS = [
    "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip
# A condition that a page must come to; Playwright's own five seconds are few on a busy machine.
_PATIENCE_MS = 60_000


@contextmanager
def open_chromium() -> Iterator[Any]:
    """A browser; without one the test is skipped, but fails where it must not be."""
    installed = (shutil.which(name) for name in BROWSERS)
    chromium = os.environ.get("MEDTHINK_CHROMIUM") or next(filter(None, installed), None)
    if chromium is None:
        if os.environ.get("CI"):
            pytest.fail("no Chromium on this machine, and this test is what proves the page safe")
        pytest.skip("no Chromium on this machine")
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=_PATIENCE_MS)

    with sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=chromium, args=FLAGS)
        yield opened
        opened.close()
