"""A real browser for tests: the system's Chromium, which `make browser` installs, driven by Playwright.

Each page is watched: an error in its console, or a request that would leave the machine, fails the test.
"""

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
OPTIONS = [
    "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--autoplay-policy=no-user-gesture-required",
]  # fmt: skip
WIDE, NARROW = 1280, 390
LOCAL = ("file:", "data:", "blob:", "http://127.0.0.1:")


@contextmanager
def started() -> Iterator[Browser]:
    path = os.environ.get("VINA_BROWSER") or next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        pytest.skip("there is no Chromium here: `make browser` installs it on Debian, VINA_BROWSER names another")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=OPTIONS)
        yield browser
        browser.close()


@contextmanager
def opened(browser: Browser, address: str, width: int = WIDE, dark: bool = False) -> Iterator[Page]:
    """A page, looked at; what it should not do is found at the end."""
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme="dark" if dark else "light")
    page = context.new_page()
    problems: list[str] = []
    page.on("console", lambda said: problems.append(said.text) if said.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("request", lambda asked: None if asked.url.startswith(LOCAL) else problems.append(f"asked {asked.url}"))
    try:
        page.goto(address)
        yield page
        assert problems == []
    finally:
        context.close()


def findings(page: Page) -> list[str]:
    """What axe calls serious or critical."""
    found = Axe().run(page).response["violations"]
    return [
        f"{one['id']}: {one['help']}: {one['nodes'][0]['html'][:200]}"
        for one in found
        if one["impact"] in ("serious", "critical")
    ]


def is_too_wide(page: Page) -> bool:
    """Whether one must scroll sideways to read."""
    return bool(page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth"))


def until(page: Page, condition: str, timeout_s: float = 20) -> None:
    """Wait; Playwright's own way would need what the page's policy forbids."""
    deadline = time.monotonic() + timeout_s
    while not page.evaluate(condition):
        assert time.monotonic() < deadline, f"still not: {condition}"
        page.wait_for_timeout(50)
