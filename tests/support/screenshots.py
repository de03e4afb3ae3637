"""Pictures of every page of the console, wide and narrow, light and dark: `make screenshots`.

They are taken of a platform of their own, filled with something of everything, and laid down in
`var/screenshots/<page>-<width>-<theme>.png`.
"""

import random
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from queues.demo.launching import Running
from tests.support.browsing import PASSWORD, Visitor, call, chromium, fill
from tests.support.platforms import client_of, running_platform

FOLDER = Path(__file__).resolve().parents[2] / "var" / "screenshots"
PAGES = [
    "", "levels/", "wheel/", "loops/", "forecast/", "messages/", "messages/send/", "parked/",
    "topics/", "topics/orders/", "groups/", "groups/billing/", "operations/", "keys/", "keys/new/",
    "audit/", "system/", "auth/user/",
]  # fmt: skip
WIDTHS = (1440, 390)
THEMES: tuple[Any, ...] = ("light", "dark")
BATCH = 500
HOUR_MS = 3_600_000


def fill_more(running: Running, count: int = 40_000) -> None:
    """A day as a shop has it: reminders soon, payments around an hour, mails over a month."""
    chance = random.Random(7)
    with client_of(running) as client:
        for start in range(0, count, BATCH):
            items = [_item(chance, number) for number in range(start, start + BATCH)]
            topic = chance.choice(["reminders", "payments", "mails"])
            call(client, "POST", f"/topics/{topic}/messages/batch", {"messages": items})
        for level in range(5, 19):
            for number in range(chance.randrange(4, 40)):
                body = {"body": f"level {level}, {number}", "delay_level": level}
                call(client, "POST", "/topics/retries-of-ours/messages", body)


def _item(chance: random.Random, number: int) -> dict[str, Any]:
    delay_ms = chance.choice([
        chance.expovariate(1 / 900_000), chance.uniform(0, 6e5), abs(chance.gauss(2.4e6, 2e5)),
        chance.uniform(0, 30 * 24 * HOUR_MS),
    ])  # fmt: skip
    return {
        "body": {"order": number}, "delay_ms": int(delay_ms) + 1000, "keys": [f"order-{number}"],
        "tag": chance.choice(["due", "paid", "mail"]),
    }  # fmt: skip


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
                    name = page.strip("/").replace("/", "-") or "overview"
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
            fill_more(running)
            take(running, found, sys.argv[1:] or PAGES)
    return 0


if __name__ == "__main__":
    sys.exit(main())
