"""Take the documents' pictures of the status page, from the demo site: `make pictures`.

Beside each stands the outline of what it shows. A test compares that with the page as it is, so that no picture goes
stale: pictures themselves differ with every browser, font and moment.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from gateway.runtime.unix_sockets import INTERFACE_SOCKET

DOCS = Path(__file__).parent.parent / "docs"
PORT = 18481
ADDRESS = f"http://127.0.0.1:{PORT}/status/"
PICTURES = {"status-page.png": ""}
OUTLINE = """() => {
    const parts = ["#views a", ".area-lanes :is(h2, h3, button, option)", ".area-events :is(h2, option)",
        ".area-side :is(h2, h3)"];
    const shown = [...document.querySelectorAll(parts.join())]
        .filter((node) => node.localName === "option" || node.checkVisibility());
    return shown.map((node) => `${node.localName} ${node.textContent.trim()}`);
}"""
_STARTS_SECONDS = 60
_SETTLES_SECONDS = 30


def main() -> None:
    """Start the demo, wait until vehicles have come by, and take each picture."""
    with tempfile.TemporaryDirectory() as folder:
        words = ["demo", "--data", folder, "--port", str(PORT), "--central-port", "0"]
        demo = subprocess.Popen([sys.executable, "-m", "gateway", *words], stdout=subprocess.DEVNULL)
        try:
            until = time.monotonic() + _STARTS_SECONDS
            while not (Path(folder) / "gateway" / "run" / INTERFACE_SOCKET).exists():
                if time.monotonic() > until:
                    sys.exit("the demo did not start")
                time.sleep(0.5)  # noqa: TID251 (a program without a loop)
            time.sleep(_SETTLES_SECONDS)  # noqa: TID251 (likewise)
            take()
        finally:
            demo.send_signal(signal.SIGINT)
            demo.wait(timeout=30)


def outline(page: Page) -> str:
    """Return the titles, buttons and choices that the page shows, each once, a line each."""
    return "".join(f"{line}\n" for line in dict.fromkeys(page.evaluate(OUTLINE)))


def take() -> None:
    """Sign in at the demo and take the pictures."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--headless", "--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 860}, color_scheme="light")
        page.goto(ADDRESS)
        page.locator("#name-field").fill("demo")
        page.locator("#password-field").fill("demo")
        page.keyboard.press("Enter")
        for name, view in PICTURES.items():
            page.wait_for_selector("#board:not([hidden])")
            page.goto(ADDRESS + view)
            page.wait_for_selector("#board:not([hidden])")
            page.wait_for_timeout(2000)
            page.screenshot(path=DOCS / name)
            (DOCS / name).with_suffix(".txt").write_text(outline(page), encoding="utf-8")
            print(DOCS / name)
        browser.close()


if __name__ == "__main__":
    main()
