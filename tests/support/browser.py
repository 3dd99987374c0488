"""Headless Chromium with the page of an explorer open, and what it asked for and complained of."""

import os
import shutil
from contextlib import contextmanager

import pytest

SLOW = 60_000
"""Milliseconds that a slow machine may take for anything."""
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)


@contextmanager
def chromium():
    """A browser; the test is skipped where there is none."""
    api = pytest.importorskip("playwright.sync_api", reason="needs pip install '.[browser]'")
    if CHROMIUM is None:
        pytest.skip("needs chromium on the path")
    api.expect.set_options(timeout=SLOW)
    with api.sync_playwright() as playwright:
        options = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=options)
        yield browser
        browser.close()


class Tab:
    """A page of an explorer in a window of its own."""

    def __init__(self, browser, address, **options):
        self.context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}} | options)
        self.requests, self.complaints = [], []
        self.context.on("request", lambda request: self.requests.append(request.url))
        self.page = self.context.new_page()
        self.page.set_default_timeout(SLOW)
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.goto(address)

    def expect(self, selector):
        from playwright.sync_api import expect

        return expect(self.page.locator(selector))

    def rests(self):
        """Wait until gradient descent belongs to the flow that is shown."""
        self.expect("#events").to_have_attribute("aria-busy", "false")
        self.expect("#status").to_contain_text("descent")

    def cell(self, event, column):
        """A cell of the table of events: its number where it has one."""
        cell = self.page.locator(f'tr[data-event="{event}"] td').nth(column)
        value = cell.get_attribute("data-value")
        return cell.inner_text() if value is None else float(value)

    def press_on(self, name, share):
        """Take the slider of a constant at a share of its width; moves go on from there."""
        box = self.page.locator(f"#control-{name}").bounding_box()
        self._line = (box["x"], box["width"], box["y"] + box["height"] / 2)
        self.move_to(share)
        self.page.mouse.down()

    def move_to(self, share):
        left, width, middle = self._line
        self.page.mouse.move(left + share * width, middle)

    def type_into(self, name, text):
        self.page.locator(f"#control-{name}-number").fill(text)
        self.page.locator(f"#control-{name}-number").press("Enter")

    def download(self, selector, folder):
        with self.page.expect_download() as caught:
            self.page.locator(selector).click()
        path = folder / caught.value.suggested_filename
        caught.value.save_as(path)
        return path
