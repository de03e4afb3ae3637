"""Pictures of every page of the console, wide and narrow, light and dark: `make screenshots`.

They are taken of a platform of their own, filled with something of everything, and laid down in
`var/screenshots/<page>-<width>-<theme>.png`. Arguments choose some: paths, or names of `WALKS`.
"""

import re
import shutil
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from playwright.sync_api import Page

from queues.demo.launching import Running
from tests.support.browsing import PASSWORD, Visitor, call, chromium, fill
from tests.support.platforms import await_that, client_of, running_platform
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
#: Pages whose address is not known beforehand, or that only a form leads to: the links and buttons
#: that are followed, each the first of its kind.
WALKS: dict[str, tuple[str, ...]] = {
    "message-waiting": ("messages/?level=18", "main tbody th a"),
    "message-delivered": ("messages/?topic=carts&state=ready", "main tbody th a"),
    "message-parked": ("parked/", "main tbody th a"),
    "message-retrying": ("groups/shipping/retries/", "main tbody th a"),
    "message-move": ("messages/?level=18", "main tbody th a", "main a[href$='/move/']"),
    "message-cancel": ("messages/?level=18", "main tbody th a", "main a[href$='/cancel/']"),
    "bulk-preview": ("messages/bulk/?topic=mails", "main form button[type=submit]"),
    "spread": ("forecast/", "main a[href*='/spread/']"),
    "dead-letter": ("groups/payouts/dead-letters/", "main tbody th a[href*='/dead-letters/0']"),
    "dead-letter-mend": (
        "groups/payouts/dead-letters/", "main tbody th a[href*='/dead-letters/0']",
        "main a[href$='/mend/']",
    ),
    "dead-letters-purge": ("groups/payouts/dead-letters/", "main a[href*='/purge/']"),
    "operation": ("operations/", "main tbody th a"),
    "operation-done": ("operations/", "main tbody tr:last-child th a"),
    "report": ("reports/", "main tbody th a"),
    "schedule-change": ("reports/schedules/", "main a[href$='/change/']"),
    "topic-purge": ("topics/reminders/", "main a[href$='/purge/']"),
    "key-rotated": ("keys/2/rotate/", "main form button[type=submit]"),
    "key-revoke": ("keys/", "main a[href$='/revoke/']"),
    "group-deletion": ("groups/shipping/", "main a[href$='/delete/']"),
}  # fmt: skip
#: Pages for whoever is not logged in, or went astray.
STRAY = {"login": "/admin/login/", "not-found": "/nothing/is/here", "api-docs": "/api/docs"}
WIDTHS = (1440, 390)
THEMES: tuple[Any, ...] = ("light", "dark")
#: Trade goes on for so long before the first picture, so that curves have a shape.
TRADE_S = 60
REPORT_S = 300


def take(running: Running, path: str, chosen: list[str]) -> None:
    """Visit and take the pictures; of all if none is chosen."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    pages = [page for page in PAGES if not chosen or page in chosen]
    walks = {name: walk for name, walk in WALKS.items() if not chosen or name in chosen}
    stray = {name: way for name, way in STRAY.items() if not chosen or name in chosen}
    with chromium(path) as browser:
        for width in WIDTHS:
            for theme in THEMES:
                visitor = Visitor(browser, running, width=width, scheme=theme)
                snap = snapper(visitor.page, f"{width}-{theme}")
                for name, way in stray.items():
                    visitor.page.goto(way)
                    snap(name)
                visitor.log_in()
                for page in pages:
                    visitor.open(f"/admin/{page}")
                    snap(re.sub(r"[^a-z0-9]+", "-", page).strip("-") or "overview")
                for name, (start, *clicks) in walks.items():
                    visitor.open(f"/admin/{start}")
                    follow(visitor.page, clicks)
                    snap(name)
                visitor.close()


def snapper(page: Page, look: str) -> Callable[[str], None]:
    """What takes a picture once the page has settled."""

    def snap(name: str) -> None:
        page.wait_for_timeout(2_500)
        file = FOLDER / f"{name}-{look}.png"
        page.screenshot(path=file, full_page=True)
        print(file)  # noqa: T201 (a command)

    return snap


def follow(page: Page, clicks: Iterable[str]) -> None:
    """Follow links and press buttons, each the first that fits."""
    for click in clicks:
        page.locator(click).first.click()
        page.wait_for_load_state("load")


def report(running: Running) -> None:
    """Have a report made while trade goes on."""
    with client_of(running) as client:
        made = call(client, "POST", "/reports", {"report": "lateness"})
        operation = f"/operations/{made['id']}"
        await_that(
            lambda: call(client, "GET", operation)["state"] == "succeeded",
            within_s=REPORT_S,
            what="a report is made",
        )


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
                report(running)
                take(running, found, sys.argv[1:])
    return 0


if __name__ == "__main__":
    sys.exit(main())
