"""Pictures of every page of the console, wide and narrow, light and dark: `make screenshots`.

They are taken of a platform of their own, filled with something of everything, and laid down in
`var/screenshots/<page>-<width>-<theme>.png`.
"""

import re
import shutil
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

from queues.demo.launching import Running
from tests.support.browsing import PASSWORD, Visitor, chromium, fill
from tests.support.platforms import running_platform
from tests.support.shop import furnish, trade

FOLDER = Path(__file__).resolve().parents[2] / "var" / "screenshots"
PAGES = [
    "", "levels/", "wheel/", "loops/", "forecast/", "forecast/?span=40d", "messages/",
    "messages/?topic=carts&state=ready", "messages/?q=nothing-has-this-key", "messages/send/",
    "messages/bulk/", "parked/", "dead-letters/", "groups/payouts/dead-letters/",
    "groups/payouts/dead-letters/redrive/", "topics/", "topics/reminders/", "new-topic/",
    "topics/reminders/delete/", "groups/", "groups/shipping/", "groups/shipping/retries/",
    "groups/shipping/reset/", "groups/shipping/change/", "groups/archive/", "new-group/",
    "operations/", "reports/", "reports/schedules/", "reports/schedules/new/", "keys/",
    "keys/new/", "keys/2/change/", "audit/", "people/", "auth/user/1/change/", "system/",
]  # fmt: skip
WIDTHS = (1440, 390)
THEMES: tuple[Any, ...] = ("light", "dark")
#: Trade goes on for so long before the first picture, so that curves have a shape.
TRADE_S = 60


def take(running: Running, path: str, pages: list[str]) -> None:
    """Visit and take the pictures."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    with chromium(path) as browser:
        for width in WIDTHS:
            for theme in THEMES:
                visitor = Visitor(browser, running, width=width, scheme=theme)
                visitor.log_in()
                for page in pages:
                    visitor.open(f"/admin/{page}").wait_for_timeout(2_500)
                    name = re.sub(r"[^a-z0-9]+", "-", page).strip("-") or "overview"
                    file = FOLDER / f"{name}-{width}-{theme}.png"
                    visitor.page.screenshot(path=file, full_page=True)
                    print(file)  # noqa: T201 (a command)
                visitor.close()


def main() -> int:
    """Take all, or those that are named."""
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    if found is None:
        print("chromium is missing")  # noqa: T201 (a command)
        return 1
    with tempfile.TemporaryDirectory(prefix="postdate-screenshots-") as folder:
        settings = {"POSTDATE_ADMIN_PASSWORD": PASSWORD, "POSTDATE_ENV_FILE": ""}
        with running_platform(Path(folder), **settings) as running:
            fill(running)
            furnish(running)
            with trade(running):
                threading.Event().wait(TRADE_S)
                take(running, found, sys.argv[1:] or PAGES)
    return 0


if __name__ == "__main__":
    sys.exit(main())
