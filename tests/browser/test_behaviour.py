"""What a page does in the browser: it follows the system, answers to the keyboard, and acts."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.support.browsing import PATIENCE_MS, Visitor, call
from tests.support.platforms import client_of

pytestmark = pytest.mark.browser

expect.set_options(timeout=PATIENCE_MS)


@pytest.fixture(autouse=True)
def wide_and_light(visitor: Visitor) -> None:
    visitor.page.set_viewport_size({"width": 1440, "height": 900})
    visitor.page.emulate_media(color_scheme="light")


def say_yes(page: Page) -> None:
    """Press the button that does it."""
    page.locator("main button.primary").click()


def send(visitor: Visitor, topic: str = "orders", **fields: object) -> str:
    with client_of(visitor.running) as client:
        sent: str = call(client, "POST", f"/topics/{topic}/messages", {"body": "b", **fields})["id"]
        return sent


def test_a_page_follows_the_system_without_a_reload(visitor: Visitor) -> None:
    page = visitor.open("/admin/levels/")
    page.evaluate("window.sameDocument = true")
    send(visitor, delay_level=18)
    expect(page.locator("#level-18 [data-label=Waiting] a")).to_be_visible()
    assert page.evaluate("window.sameDocument") is True


def test_a_page_that_is_paused_stands_still_and_goes_on(visitor: Visitor) -> None:
    page = visitor.open("/admin/levels/")
    page.click("#follow")
    expect(page.locator("#follow")).to_have_text(re.compile("Paused"))
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    send(visitor, delay_level=17)
    page.wait_for_timeout(5_000)
    assert asked == []
    page.click("#follow")
    expect(page.locator("#level-17 [data-label=Waiting] a")).to_be_visible()


def test_a_hidden_page_asks_for_nothing(visitor: Visitor) -> None:
    page = visitor.open("/admin/levels/")
    page.evaluate("Object.defineProperty(document, 'hidden', {get: () => true})")
    page.wait_for_timeout(2_500)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.wait_for_timeout(4_500)
    assert asked == []


def test_relative_times_keep_counting(visitor: Visitor) -> None:
    message_id = send(visitor, delay="3h")
    page = visitor.open(f"/admin/messages/{message_id}/")
    relative = page.locator(".facts .rel").first
    expect(relative).to_have_text(re.compile("in 2 h 59 m"))
    page.click("#follow")
    sent = page.locator(".facts dd:nth-of-type(2) .rel")
    before = sent.text_content()
    expect(sent).not_to_have_text(before or "")
    page.click("#follow")


def test_times_are_the_viewers_with_utc_at_hand(visitor: Visitor) -> None:
    message_id = send(visitor, delay="20d")
    page = visitor.open(f"/admin/messages/{message_id}/")
    clock = page.locator(".facts .clock").first
    local = clock.text_content() or ""
    assert not local.endswith("UTC")
    page.click("#zone")
    expect(clock).to_have_text(re.compile(r"\.\d{3} UTC$"))
    assert "Z ·" in (page.locator(".facts time").first.get_attribute("title") or "")
    page.click("#zone")
    expect(clock).to_have_text(local)


def test_the_theme_is_chosen_and_kept(visitor: Visitor) -> None:
    page = visitor.open("/admin/")
    for _ in range(2):
        page.click("#theme")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    visitor.open("/admin/levels/")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    page.click("#theme")
    expect(page.locator("html")).to_have_attribute("data-theme", "light")


def test_the_first_stop_of_the_keyboard_leads_to_the_content(visitor: Visitor) -> None:
    page = visitor.open("/admin/messages/")
    page.keyboard.press("Tab")
    expect(page.locator(".skip")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#main")).to_be_focused()


def test_the_menu_of_a_narrow_page_opens_and_closes_by_keyboard(visitor: Visitor) -> None:
    page = visitor.page
    page.set_viewport_size({"width": 390, "height": 844})
    visitor.open("/admin/")
    expect(page.locator("#side")).to_be_hidden()
    page.focus("#menu")
    page.keyboard.press("Enter")
    expect(page.get_by_role("link", name="Postdate")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator("#side")).to_be_hidden()
    expect(page.locator("#menu")).to_be_focused()


# --- actions, end to end


def test_a_message_is_sent_moved_and_cancelled(visitor: Visitor) -> None:
    page = visitor.open("/admin/messages/send/")
    page.fill("#id_topic", "orders")
    page.fill("#id_body", "from the console")
    page.fill("#id_delay", "1h")
    page.fill("#id_keys", "by-hand")
    say_yes(page)
    expect(page.locator(".notice.success")).to_have_text("Sent.")
    expect(page.locator("pre.body")).to_have_text("from the console")
    page.get_by_role("link", name="Move").click()
    page.fill("#id_delay", "2d")
    say_yes(page)
    expect(page.locator(".line")).to_contain_text("Moved")
    page.get_by_role("link", name="Cancel").click()
    say_yes(page)
    expect(page.locator(".notice.success")).to_have_text("Cancelled: no one will receive it.")
    page.get_by_role("link", name="Restore").click()
    say_yes(page)
    expect(page.locator(".title .chip")).to_have_text("scheduled")
    page.get_by_role("link", name="Deliver now").click()
    say_yes(page)
    expect(page.locator(".title .chip")).to_have_text("ready")


def test_what_a_message_is_and_what_may_be_done_follow_without_a_reload(visitor: Visitor) -> None:
    message_id = send(visitor, delay="1h")
    page = visitor.open(f"/admin/messages/{message_id}/")
    expect(page.locator(".title .chip")).to_have_text("scheduled")
    with client_of(visitor.running) as client:
        call(client, "DELETE", f"/messages/{message_id}")
    expect(page.locator(".title .chip")).to_have_text("cancelled")
    expect(page.get_by_role("link", name="Restore")).to_be_visible()
    expect(page.get_by_role("link", name="Deliver now")).to_have_count(0)


def test_a_search_finds_by_key_and_leads_to_the_message(visitor: Visitor) -> None:
    message_id = send(visitor, delay="5h", keys=["needle-1"])
    page = visitor.open("/admin/messages/")
    page.fill("#q", "needle-1")
    page.fill("#topic", "orders")
    say_yes(page)
    assert "tag=" not in page.url, "empty fields are left out of the address"
    page.get_by_role("link", name=message_id).click()
    expect(page.locator("h1")).to_contain_text(message_id)


def test_a_moment_is_picked_in_the_viewers_zone(visitor: Visitor) -> None:
    message_id = send(visitor, delay="5h")
    page = visitor.open(f"/admin/messages/{message_id}/move/")
    tomorrow = page.evaluate("new Date(Date.now() + 86400000).toISOString().slice(0, 10)")
    page.fill("#id_at", f"{tomorrow}T12:00:00")
    say_yes(page)
    expect(page.locator(".notice.success")).to_have_text("Moved.")
    expect(page.locator(".facts .clock").first).to_contain_text("12:00:00.000")


def test_a_moment_is_picked_in_utc_where_times_are_shown_in_it(visitor: Visitor) -> None:
    message_id = send(visitor, delay="5h")
    page = visitor.open(f"/admin/messages/{message_id}/move/")
    tomorrow = page.evaluate("new Date(Date.now() + 86400000).toISOString().slice(0, 10)")
    page.fill("#id_at", f"{tomorrow}T12:00:00")
    in_berlin = page.evaluate("new Date(document.querySelector('#id_at').value).getTime()")
    page.click("#zone")
    written = page.input_value("#id_at")
    assert page.evaluate("(text) => Date.parse(`${text}Z`)", written) == in_berlin, "it moves along"
    page.fill("#id_at", f"{tomorrow}T12:00:00")
    say_yes(page)
    expect(page.locator(".facts .clock").first).to_contain_text("12:00:00.000 UTC")
    page.click("#zone")


def test_a_moment_that_cannot_be_read_is_said_and_the_page_goes_on(visitor: Visitor) -> None:
    page = visitor.open("/admin/reports/")
    page.evaluate("document.querySelector('#from').type = 'text'")  # A browser without a picker.
    page.fill("#from", "soon")
    page.locator("form:has(#from) button").click()
    expect(page.locator("main")).to_contain_text("is no moment")
    # The browser's own word about what was typed, which the page keeps; the script says nothing.
    assert [error for error in visitor.errors if "does not conform" not in error] == []
    visitor.errors.clear()


def test_a_topic_and_a_group_are_made_paused_and_deleted(visitor: Visitor) -> None:
    page = visitor.open("/admin/new-topic/")
    page.fill("#id_name", "by-hand")
    say_yes(page)
    expect(page.locator("h1")).to_have_text("by-hand")
    visitor.open("/admin/new-group/")
    page.fill("#id_name", "hands")
    page.fill("#id_subscriptions", "by-hand")
    say_yes(page)
    expect(page.locator("h1")).to_have_text("hands")
    page.get_by_role("link", name="Pause").click()
    say_yes(page)
    expect(page.locator(".title .chip")).to_have_text("paused")
    page.get_by_role("link", name="Resume").click()
    say_yes(page)
    expect(page.locator(".title .chip")).to_have_text("clustering")
    page.get_by_role("link", name="Delete").click()
    say_yes(page)
    expect(page.locator(".notice.success")).to_have_text("hands is deleted.")
    visitor.open("/admin/topics/by-hand/delete/")
    say_yes(page)
    expect(page.locator(".notice.success")).to_contain_text("by-hand is deleted")


def test_many_messages_are_looked_at_and_then_cancelled(visitor: Visitor) -> None:
    for _ in range(3):
        send(visitor, topic="many", delay="2h", tag="to-go")
    page = visitor.open("/admin/messages/bulk/")
    page.fill("#id_topic", "many")
    page.fill("#id_tag", "to-go")
    page.get_by_role("button", name="Look at it").click()
    page.get_by_role("button", name="Cancel them: 3 messages").click()
    expect(page.locator("#live .card .chip")).to_have_text("succeeded")
    visitor.open("/admin/messages/?topic=many")
    expect(page.get_by_role("heading", name="Nothing matches")).to_be_visible()


def test_a_dead_letter_is_mended_and_sent_anew(visitor: Visitor) -> None:
    page = visitor.open("/admin/groups/tired/dead-letters/")
    page.get_by_role("link", name="no such order").click()
    page.locator("#live tbody th a").first.click()
    expect(page.locator("pre.body")).to_have_text("no hope")
    page.get_by_role("link", name="Edit and send").click()
    page.fill("#id_body", "some hope")
    say_yes(page)
    expect(page.locator("pre.body")).to_have_text("some hope")
    visitor.open("/admin/groups/tired/dead-letters/")
    expect(page.get_by_role("heading", name="This group gave nothing up")).to_be_visible()


def test_a_key_is_made_shown_once_and_revoked(visitor: Visitor) -> None:
    page = visitor.open("/admin/keys/new/")
    page.fill("#id_name", "a shop")
    say_yes(page)
    expect(page.locator("#secret")).to_have_text(re.compile("^pd_"))
    page.get_by_role("link", name="I have noted it").click()
    page.get_by_role("link", name="Revoke a shop").click()
    say_yes(page)
    expect(page.locator(".notice.success")).to_contain_text("a shop is revoked")


def test_a_schedule_is_made_changed_and_deleted_by_keyboard(visitor: Visitor) -> None:
    page = visitor.open("/admin/reports/schedules/")
    page.get_by_role("link", name="New schedule").press("Enter")
    page.get_by_label("Name").fill("nightly")
    page.get_by_label("each hour, over the hour before").press("Space")
    page.get_by_label("Time zone").fill("Europe/Berlin")
    page.get_by_label("Time zone").press("Enter")
    row = page.get_by_role("row", name="nightly")
    expect(row).to_contain_text("each hour, 5 min past")
    row.get_by_role("link", name="Change nightly").press("Enter")
    page.get_by_label("each day, over the day before").press("Space")
    page.get_by_role("button", name="Change the schedule").press("Enter")
    expect(page.get_by_role("row", name="nightly")).to_contain_text("each day at 00:05")
    page.get_by_role("link", name="Delete nightly").press("Enter")
    page.get_by_role("button", name="Delete the schedule").press("Enter")
    expect(page.get_by_role("row", name="nightly")).to_have_count(0)


def test_a_bar_of_the_forecast_leads_closer(visitor: Visitor) -> None:
    send(visitor, delay="30m")
    page = visitor.open("/admin/forecast/?span=1h")
    page.locator(".bars a").last.focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**span=3m**")


def test_a_viewer_comes_in_and_sees_no_buttons(
    visitor: Visitor, fresh: Callable[..., Visitor]
) -> None:
    page = visitor.open("/admin/auth/user/add/")
    page.fill("#id_username", "vera")
    page.fill("#id_password1", "rather-long-1815")
    page.fill("#id_password2", "rather-long-1815")
    page.click("input[name=_save]")
    page.get_by_label("May enter the console").check()
    page.get_by_label("viewer").check()
    page.click("input[name=_save]")
    viewer = fresh()
    viewer.log_in("vera", "rather-long-1815")
    viewer.open("/admin/topics/orders/")
    expect(viewer.page.get_by_role("heading", name="orders")).to_be_visible()
    assert viewer.page.get_by_role("link", name="Delete").count() == 0
    assert viewer.errors == []
