"""Every page in a real browser: whole, without complaint, wide and light, narrow and dark."""

from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from tests.support.browsing import LOOKS, Visitor, call
from tests.support.platforms import client_of

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
