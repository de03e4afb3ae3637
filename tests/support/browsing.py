"""A headless Chromium that visits the console and keeps every complaint of its own console."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, Playwright, sync_playwright

from queues.demo.client import Client
from queues.demo.launching import Running
from tests.support.platforms import await_that, client_of

PASSWORD = "a-password-of-the-tests"
AXE = Path(__file__).resolve().parents[1] / "data" / "axe-core" / "axe.min.js"
FLAGS = [
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip
#: The busiest machine answers within this.
PATIENCE_MS = 30_000
#: The rules of WCAG 2.2 AA and below.
#: What hangs on colours and on the width.
LOOKS = ["color-contrast", "target-size", "link-in-text-block", "scrollable-region-focusable"]
TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]


@contextmanager
def chromium(path: str) -> Iterator[Browser]:
    """The machine's own Chromium, driven."""
    playing: Playwright
    with sync_playwright() as playing:
        browser = playing.chromium.launch(executable_path=path, headless=True, args=FLAGS)
        yield browser
        browser.close()


class Visitor:
    """A person before the console, in one window."""

    def __init__(
        self, browser: Browser, running: Running, *, width: int = 1440, scheme: Any = "light"
    ) -> None:
        self._browser, self.running = browser, running
        self.context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme,
            base_url=running.base_url, timezone_id="Europe/Berlin", locale="en-GB",
        )  # fmt: skip
        self.context.set_default_timeout(PATIENCE_MS)
        #: What the browser complained about: errors, refused scripts and styles, failed requests.
        self.errors: list[str] = []
        self.page: Page = self.context.new_page()
        self.page.on("console", self._note)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))

    def _note(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.errors.append(f"{message.text} ({self.page.url})")

    def log_in(self, username: str = "admin", password: str = PASSWORD) -> None:
        self.page.goto("/admin/login/?next=/admin/")
        self.page.fill("#id_username", username)
        self.page.fill("#id_password", password)
        self.page.click("button[type=submit]")
        self.page.wait_for_url("**/admin/")

    def open(self, path: str) -> Page:
        """Go there; the page must be one of the console's, and answer 200."""
        answer = self.page.goto(path)
        assert answer is not None
        assert answer.status == 200, f"{path}: {answer.status}"
        self.page.wait_for_load_state("load")
        return self.page

    def complaints(self, rules: Sequence[str] = ()) -> list[str]:
        """What axe says of the page as it stands; `rules` for some of them only."""
        # Through the debugger and not as a script of the page: its policy is as strict as ever.
        self.page.evaluate(AXE.read_text())
        only = {"type": "rule", "values": rules} if rules else {"type": "tag", "values": TAGS}
        options = {"runOnly": only, "resultTypes": ["violations"], "preload": False}
        found = self.page.evaluate("options => axe.run(document, options)", options)
        return [
            f"{rule['id']}: {node['target']} {node['failureSummary']}"
            for rule in found["violations"]
            for node in rule["nodes"]
        ]

    def close(self) -> None:
        self.context.close()


def fill(running: Running) -> None:
    """Something of everything: what waits, was delivered, is leased, cancelled, paused."""
    with client_of(running) as client:
        call(client, "PUT", "/groups/billing", _group("orders"))
        call(client, "PUT", "/groups/mails", _group("orders", "paid || due"))
        call(client, "PUT", "/groups/archive", _group("invoices"))
        call(client, "POST", "/groups/archive/pause", {})
        for number in range(60):
            body = {"order": number, "do": "close if unpaid"}
            delay = {"delay": f"{number % 50 + 2}m"} if number % 3 else {"delay_level": 14}
            call(client,
                "POST", "/topics/orders/messages",
                {"body": body, "keys": [f"order-{number}"], "tag": "due", **delay},
            )  # fmt: skip
        for number in range(12):
            call(client, "POST", "/topics/invoices/messages", {"body": f"invoice {number}"})
        call(client, "POST", "/topics/orders/messages", {"body": "at once", "keys": ["order-now"]})
        cancelled = call(
            client,
            "POST",
            "/topics/orders/messages",
            {"body": "never", "delay": "1h", "keys": ["gone"]},
        )
        call(client, "DELETE", f"/messages/{cancelled['id']}")
        call(
            client,
            "POST",
            "/topics/orders/messages",
            {"body": "soon", "delay": "1s", "keys": ["soon"]},
        )
        _give_up(client)
        await_that(
            lambda: call(client, "POST", "/groups/billing/receive", {"consumer_id": "worker-1"})[
                "messages"
            ],
            within_s=60,
            what="a message is received",
        )


def _give_up(client: Client) -> None:
    """A group whose only message is a dead letter."""
    call(client, "PUT", "/groups/tired", _group("sorrows"))
    call(client, "POST", "/topics/sorrows/messages", {"body": "no hope", "keys": ["lost"]})
    received: list[Any] = await_that(
        lambda: call(client, "POST", "/groups/tired/receive", {})["messages"],
        within_s=60,
        what="the message of the tired group is received",
    )
    body = {"receipts": [received[0]["receipt"]], "reason": "no such order"}
    call(client, "POST", "/groups/tired/dead-letter", body)


def call(client: Client, method: str, path: str, body: Any = None) -> Any:
    """The answer's JSON, which must be a success."""
    answer = client.request(method, f"/api/v1{path}", body)
    assert answer.status < 300, answer
    return answer.body


def _group(topic: str, tags: str = "*") -> dict[str, Any]:
    return {"subscriptions": [{"topic": topic, "tags": tags}], "start_from": "earliest"}
