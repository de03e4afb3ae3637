"""Every page in a real browser: whole, without complaint, wide and light, narrow and dark."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.support.browsing import LOOKS, Visitor, call
from tests.support.platforms import Running, await_that, client_of

pytestmark = pytest.mark.browser

PAGES = [
    "", "levels/", "wheel/", "loops/", "forecast/", "forecast/?span=24h", "messages/",
    "messages/?topic=invoices&state=ready", "messages/?q=nothing-has-this-key",
    "messages/send/", "parked/", "topics/", "topics/orders/", "new-topic/",
    "topics/orders/delete/", "groups/", "groups/billing/", "groups/archive/", "new-group/",
    "groups/billing/retries/", "groups/billing/reset/", "dead-letters/",
    "groups/tired/dead-letters/", "groups/tired/dead-letters/redrive/", "messages/bulk/",
    "operations/", "reports/", "reports/schedules/", "reports/schedules/new/", "keys/", "keys/new/",
    "keys/1/change/", "audit/", "system/", "groups/billing/change/", "auth/user/1/change/",
    "people/", "auth/user/", "password_change/",
]  # fmt: skip

#: Cards of which a part can be seen only by scrolling sideways.
_CUT_OFF = """() => [...document.querySelectorAll('main .card, main table')]
    .filter(e => e.scrollWidth > e.clientWidth + 1)
    .map(e => `${e.outerHTML.slice(0, 80)}: ${e.scrollWidth} of ${e.clientWidth}`)"""


def look_at(visitor: Visitor, path: str) -> None:
    """As most people see it, then as those with a small dark screen do."""
    page = visitor.page
    page.set_viewport_size({"width": 1440, "height": 900})
    page.emulate_media(color_scheme="light")
    visitor.open(path)
    assert page.title().endswith("Postdate")
    assert visitor.complaints() == []
    assert page.evaluate(_CUT_OFF) == []
    page.set_viewport_size({"width": 390, "height": 844})
    page.emulate_media(color_scheme="dark")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    assert visitor.complaints(LOOKS) == []
    wide = "() => [...document.querySelectorAll('body *')].filter(e => { const b = e.getBoundingClientRect(); return b.width && b.right > innerWidth + 1; }).slice(0, 5).map(e => e.outerHTML.slice(0, 120))"  # noqa: E501 (one expression of the browser's)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390, page.evaluate(wide)


@pytest.mark.parametrize("path", PAGES)
def test_a_page_is_accessible_and_fits_wide_and_narrow_light_and_dark(
    visitor: Visitor, path: str
) -> None:
    look_at(visitor, f"/admin/{path}")


def first_id(visitor: Visitor, fields: dict[str, object]) -> str:
    with client_of(visitor.running) as client:
        sent: str = call(client, "POST", "/topics/orders/messages", fields)["id"]
        return sent


@pytest.mark.parametrize("part", ["", "cancel/", "move/", "deliver-now/"])
def test_the_pages_of_one_message_are_accessible_and_fit(visitor: Visitor, part: str) -> None:
    body = {"order": 7, "text": "x" * 300}
    message_id = first_id(visitor, {"body": body, "delay": "2h", "keys": ["k" * 100]})
    look_at(visitor, f"/admin/messages/{message_id}/{part}")


#: As long as they may be, and nowhere to break.
TOPIC, GROUP = "t" * 127, "G" * 110


@pytest.fixture(scope="module")
def long_names(running: Running) -> dict[str, str]:
    """A group of such a name that has something of everything; by what stands for it in a path."""
    with client_of(running) as client:
        subscription = {"topic": TOPIC, "tags": "paid || due || sent || lost"}
        group = {"subscriptions": [subscription], "start_from": "earliest"}
        call(client, "PUT", f"/groups/{GROUP}", group)
        for _ in range(3):
            call(client, "POST", f"/topics/{TOPIC}/messages", {"body": "x", "tag": "due"})
        later = {"body": "x", "tag": "due", "delay": "2h"}
        waiting = call(client, "POST", f"/topics/{TOPIC}/messages", later)
        got: list[Any] = []
        asked = {"max_messages": 3, "wait_seconds": 5, "lease_seconds": 3600, "consumer_id": "c"}
        await_that(
            lambda: (
                got.extend(call(client, "POST", f"/groups/{GROUP}/receive", asked)["messages"])
                or len(got) == 3
            ),
            within_s=60,
            what="the messages of the group with the long name are received",
        )
        retry = {"receipts": [got[0]["receipt"]], "reason": "no", "delay": "2h"}
        call(client, "POST", f"/groups/{GROUP}/retry", retry)
        dead = {"receipts": [got[1]["receipt"]], "reason": "never"}
        call(client, "POST", f"/groups/{GROUP}/dead-letter", dead)
    return {
        "TOPIC": TOPIC, "GROUP": GROUP, "WAITING": waiting["id"], "HELD": got[2]["id"],
        "DEAD": got[1]["id"],
    }  # fmt: skip


@pytest.mark.parametrize(
    "path",
    [
        "topics/", "topics/TOPIC/", "topics/TOPIC/delete/", "topics/TOPIC/purge/",
        "topics/TOPIC/change/", "groups/", "groups/GROUP/", "groups/GROUP/change/",
        "groups/GROUP/delete/", "groups/GROUP/pause/", "groups/GROUP/retries/",
        "groups/GROUP/dead-letters/", "groups/GROUP/dead-letters/DEAD/", "messages/?topic=TOPIC",
        "messages/WAITING/", "messages/WAITING/cancel/", "messages/HELD/",
    ],
)  # fmt: skip
def test_names_as_long_as_they_may_be_fit(
    visitor: Visitor, long_names: dict[str, str], path: str
) -> None:
    whole = re.sub("[A-Z]{4,}", lambda found: long_names[found[0]], path)
    page = visitor.page
    for width in (1440, 800, 390):
        page.set_viewport_size({"width": width, "height": 900})
        visitor.open(f"/admin/{whole}")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert width < 1440 or page.evaluate(_CUT_OFF) == []
        # Beside a long name the rest keeps its room: no column of single letters.
        narrow = "() => [...document.querySelectorAll('main dd')].filter(e => e.clientWidth < 80)"
        assert page.evaluate(f"({narrow})().map(e => e.outerHTML.slice(0, 80))") == []
    crumbs = page.locator(".crumbs li:first-child a")
    cut = crumbs.evaluate_all("all => all.filter(e => e.scrollWidth > e.clientWidth).length")
    assert cut == 0, "a short crumb is whole"
    assert visitor.complaints(LOOKS) == []


#: Pages of which a table is wider than the cards of a small window.
WIDE = [
    "", "loops/", "levels/", "messages/", "topics/", "groups/", "groups/GROUP/retries/",
    "groups/tired/dead-letters/", "reports/schedules/", "keys/", "audit/", "people/", "system/",
]  # fmt: skip
#: Cards whose content is wider than they are, and that do not scroll.
_UNREACHABLE = """() => [...document.querySelectorAll('main .card')]
    .filter(e => e.scrollWidth > e.clientWidth + 1)
    .filter(e => getComputedStyle(e).overflowX !== 'auto')
    .map(e => `${e.outerHTML.slice(0, 80)}: ${e.scrollWidth} of ${e.clientWidth}`)"""


def test_in_a_smaller_window_every_table_can_be_reached_to_its_end(
    visitor: Visitor, long_names: dict[str, str]
) -> None:
    page = visitor.page
    for path in WIDE:
        visitor.open(f"/admin/{path.replace('GROUP', long_names['GROUP'])}")
        for width in (760, 1024, 1280, 1366):
            page.set_viewport_size({"width": width, "height": 900})
            assert page.evaluate("document.documentElement.scrollWidth") <= width, path
            assert page.evaluate(_UNREACHABLE) == [], path
            for button in page.locator("main .rows tbody tr:first-child .acts .button").all():
                button.scroll_into_view_if_needed()
                expect(button).to_be_in_viewport(ratio=1)
        assert visitor.complaints(["scrollable-region-focusable"]) == [], path


def test_keys_with_limits_and_an_end_fit_with_all_their_actions(visitor: Visitor) -> None:
    page = visitor.page
    page.set_viewport_size({"width": 1440, "height": 900})
    visitor.open("/admin/keys/new/")
    page.get_by_label("Name", exact=True).fill("exports to the warehouse")
    page.get_by_role("textbox", name="Topics").fill("orders,payments")
    page.get_by_label("Expires after days").fill("30")
    page.get_by_label("Requests per second").fill("10")
    page.get_by_label("Messages per second").fill("200")
    page.get_by_role("button", name="Make the key").click()
    visitor.open("/admin/keys/")
    expect(page.get_by_role("rowheader", name="exports to the warehouse")).to_be_visible()
    assert page.evaluate(_CUT_OFF) == []


def test_pages_for_errors_help_and_are_accessible(visitor: Visitor) -> None:
    page = visitor.page
    answer = page.goto("/admin/topics/no-such-topic/")
    assert answer is not None
    assert answer.status == 404
    assert page.get_by_role("heading", name="There is nothing here").is_visible()
    assert visitor.complaints() == []
    visitor.errors.clear()  # The browser notes each 404 as an error.


def test_the_login_page_is_accessible(fresh: Callable[..., Visitor]) -> None:
    stranger = fresh()
    stranger.open("/admin/")
    assert stranger.page.get_by_role("heading", name="Log in to the console").is_visible()
    assert stranger.complaints() == []
    assert stranger.errors == []
