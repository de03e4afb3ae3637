"""Lists of what waits, probes, and what is shown of the schedule."""

import pytest

from queues.wires import LoopState

NOW_MS = 1_790_000_000_000
MINUTE = 60_000


def listed(api, query=""):
    answer = api.get(f"messages?state=scheduled{query}")
    assert answer.status == 200, answer.json
    return answer.json


def ids(page):
    return [message["id"] for message in page["items"]]


def test_what_waits_is_listed_in_due_order_levels_and_timed_together(api):
    hour = api.send(delay="1h")
    level = api.send(delay_level=5)
    soon = api.send(delay="30s")
    api.send()
    page = listed(api)
    assert ids(page) == [soon["id"], level["id"], hour["id"]]
    assert page["count"] == 3
    assert page["next_page_token"] == ""
    assert "body" not in page["items"][0]


def test_pages_leave_nothing_out_and_repeat_nothing(api):
    sent = {api.send(delay_ms=1000 * (1 + n % 3))["id"] for n in range(10)}
    sent |= {api.send(delay_level=1)["id"] for _ in range(5)}
    seen, token = [], ""
    while True:
        page = listed(api, f"&page_size=4&page_token={token}")
        assert page["count"] == 15
        seen += page["items"]
        token = page["next_page_token"]
        if not token:
            break
    assert len(seen) == 15
    assert {message["id"] for message in seen} == sent
    assert [m["due_at_ms"] for m in seen] == sorted(m["due_at_ms"] for m in seen)


def test_topic_kind_and_window_narrow_the_list(api):
    level = api.send(delay_level=5)
    timed = api.send(delay="2m")
    other = api.send("mail", delay="3m")
    assert ids(listed(api, "&topic=orders")) == [level["id"], timed["id"]]
    assert ids(listed(api, "&topic=nobody")) == []
    assert ids(listed(api, "&kind=level")) == [level["id"]]
    assert ids(listed(api, "&kind=timed")) == [timed["id"], other["id"]]
    after = f"&due_after={NOW_MS + 2 * MINUTE}"
    assert ids(listed(api, after)) == [timed["id"], other["id"]]
    assert ids(listed(api, f"{after}&due_before=2026-09-21T14:16:20Z")) == [timed["id"]]


def test_a_restored_message_of_a_level_is_one_still(api, clock):
    """It waits in the timer queue then, for levels hold what came in the order of its time."""
    other, level = api.send(delay="1m"), api.send(delay_level=5)
    api.delete(f"messages/{level['id']}")
    clock.advance(1_000)
    assert api.post(f"messages/{level['id']}/restore").json["kind"] == "level"
    assert ids(listed(api, "&kind=level")) == [level["id"]]
    assert ids(listed(api, "&kind=timed")) == [other["id"]]
    assert ids(listed(api, "&kind=level&topic=orders")) == [level["id"]]
    assert listed(api, "&kind=level&topic=mail")["count"] == 0
    assert sum(buckets(api).values()) == 2
    api.patch(f"messages/{level['id']}", {"delay": "2m"})
    assert ids(listed(api, "&kind=level")) == []
    assert ids(listed(api, "&kind=timed")) == [other["id"], level["id"]]


def test_what_is_cancelled_moved_or_delivered_waits_no_longer(api, clock):
    cancelled, moved, delivered = (api.send(delay="1m") for _ in range(3))
    api.delete(f"messages/{cancelled['id']}")
    api.patch(f"messages/{moved['id']}", {"delay": "1h"})
    clock.advance(MINUTE)
    api.hand_over_what_is_due()
    page = listed(api)
    assert ids(page) == [moved["id"]]
    assert page["count"] == 1
    assert delivered["id"] not in ids(page)


def test_key_and_tag_are_looked_up_in_the_messages(api):
    one = api.send(delay="1m", tag="paid", keys=["order-1", "customer-7"])
    two = api.send(delay="2m", tag="paid", keys=["order-2", "customer-7"])
    api.send(delay="3m", tag="open")
    assert ids(listed(api, "&key=order-1")) == [one["id"]]
    assert ids(listed(api, "&key=customer-7")) == [one["id"], two["id"]]
    page = listed(api, "&tag=paid&page_size=1")
    assert (ids(page), page["count"]) == ([one["id"]], 2)
    rest = listed(api, f"&tag=paid&page_size=1&page_token={page['next_page_token']}")
    assert (ids(rest), rest["next_page_token"]) == ([two["id"]], "")


@pytest.mark.parametrize(
    "query",
    ["", "?state=ready", "?topic=orders", "?state=cancelled", "?state=cancelled&topic=orders",
     "?state=parked&due_after=0", "?state=expired&topic=orders&due_after=0",
     "?state=scheduled&kind=immediate"],
)  # fmt: skip
def test_a_filter_that_would_read_everything_is_refused(api, query):
    answer = api.get(f"messages{query}")
    assert (answer.status, answer.code) == (422, "filter_unsupported")


def test_a_window_that_is_no_time_is_refused(api):
    answer = api.get("messages?state=scheduled&due_after=noon")
    assert (answer.status, answer.code, answer.pointers) == (400, "delay_invalid", ["due_after"])


def test_a_key_alone_finds_its_messages_in_any_state(api, clock):
    at_once = api.send(keys=["order-1"])
    waits = api.send(delay="1h", keys=["order-1"])
    level = api.send(delay_level=3, keys=["order-1", "order-2"])
    cancelled = api.send(delay="2h", keys=["order-1"])
    moved = api.send("mail", delay="1m", keys=["order-1"])
    api.send(delay="1h", keys=["order-10"])
    api.delete(f"messages/{cancelled['id']}")
    api.patch(f"messages/{moved['id']}", {"delay": "3h"})
    clock.advance(10_000)
    api.hand_over_what_is_due()
    page = api.get("messages?key=order-1").json
    assert {one["id"]: one["state"] for one in page["items"]} == {
        at_once["id"]: "ready",
        level["id"]: "ready",
        waits["id"]: "scheduled",
        cancelled["id"]: "cancelled",
        moved["id"]: "scheduled",
    }
    assert page["count"] == 5
    dues = [one["due_at_ms"] for one in page["items"]]
    assert dues == sorted(dues)
    assert ids(api.get("messages?key=order-1&topic=mail").json) == [moved["id"]]
    assert ids(api.get("messages?key=order-1&state=cancelled").json) == [cancelled["id"]]
    assert ids(api.get("messages?key=order-2").json) == [level["id"]]
    first = api.get("messages?key=order-1&page_size=2").json
    rest = api.get(f"messages?key=order-1&page_token={first['next_page_token']}").json
    assert ids(first) + ids(rest) == ids(page)
    limited = api.as_(topics=("mail",))
    assert ids(limited.get("messages?key=order-1").json) == [moved["id"]]


def test_cancelled_messages_of_a_topic_are_listed_in_due_order_by_pages(api, clock):
    sent = [api.send(delay=f"{n + 1}m", tag="even" if n % 2 == 0 else "odd") for n in range(8)]
    other = api.send("mail", delay="1m")
    for one in [*sent[::-1][:6], other]:
        api.delete(f"messages/{one['id']}")
    api.post(f"messages/{sent[7]['id']}/restore")
    clock.advance(2 * MINUTE)
    api.hand_over_what_is_due()
    wanted = [one["id"] for one in sent[2:7]]
    query = f"messages?state=cancelled&topic=orders&due_after={NOW_MS}"
    page = api.get(query).json
    assert (ids(page), page["count"]) == (wanted, 5)
    assert {one["state"] for one in page["items"]} == {"cancelled"}
    seen, token = [], ""
    while True:
        page = api.get(f"{query}&page_size=2&page_token={token}").json
        assert page["count"] == 5
        seen += ids(page)
        token = page["next_page_token"]
        if not token:
            break
    assert seen == wanted
    assert ids(api.get(f"{query}&tag=even").json) == [sent[2]["id"], sent[4]["id"], sent[6]["id"]]
    assert ids(api.get(f"{query}&due_before={NOW_MS + 5 * MINUTE}").json) == wanted[:2]


def test_parked_messages_of_a_topic_are_listed(api, wiring):
    one = api.send(delay="1m")
    wiring.store.park("rmq_sys_wheel_timer", 0, 0, reason="the topic was deleted")
    page = api.get("messages?state=parked&topic=orders&due_after=0").json
    assert ids(page) == [one["id"]]
    assert page["items"][0]["parked_reason"] == "the topic was deleted"


def test_delivered_messages_of_a_topic_are_listed_by_pages(api, clock):
    at_once = [api.send(tag="now") for _ in range(5)]
    later = [api.send(delay="1m"), api.send(delay_level=5)]
    api.send(delay="1h")
    api.send("mail")
    clock.advance(MINUTE)
    assert api.hand_over_what_is_due() == 2
    clock.advance(MINUTE)
    last = api.send()
    query = f"messages?state=ready&topic=orders&due_after={NOW_MS}"
    everything = [*at_once, *later, last]
    page = api.get(query).json
    assert sorted(ids(page)) == sorted(one["id"] for one in everything)
    assert page["count"] == 8
    seen, token = [], ""
    while True:
        page = api.get(f"{query}&page_size=3&page_token={token}").json
        assert page["count"] == 8
        seen += ids(page)
        token = page["next_page_token"]
        if not token:
            break
    assert sorted(seen) == sorted(one["id"] for one in everything)
    assert len(seen) == 8
    by_kind = ids(api.get(f"{query}&kind=level").json)
    assert by_kind == [later[1]["id"]]
    assert sorted(ids(api.get(f"{query}&tag=now").json)) == sorted(one["id"] for one in at_once)
    until = f"&due_before={NOW_MS + MINUTE + 1}"
    assert len(ids(api.get(query + until).json)) == 7


# --- forecast


def buckets(api, query=""):
    answer = api.get(f"forecast?{query}")
    assert answer.status == 200, answer.json
    found = answer.json["buckets"]
    assert answer.json["total"] == sum(one["count"] for one in found)
    return {one["start_ms"] - NOW_MS: one["count"] for one in found if one["count"]}


def test_the_forecast_counts_levels_and_timed_together_without_what_is_cancelled(api, clock):
    for _ in range(3):
        api.send(delay="30s")
    api.send(delay_level=5)
    gone = api.send(delay="90s")
    api.send("mail", delay="2m")
    api.send()
    api.delete(f"messages/{gone['id']}")
    assert buckets(api) == {0: 3, MINUTE: 1, 2 * MINUTE: 1}
    assert buckets(api, "topic=orders&step=1s") == {30_000: 3, MINUTE: 1}
    assert buckets(api, "topic=nobody") == {}
    assert buckets(api.as_(topics=("mail",))) == {2 * MINUTE: 1}
    clock.advance(30_000)
    api.hand_over_what_is_due()
    assert buckets(api, f"from={NOW_MS}&to={NOW_MS + 60_000}&step=1h") == {}


def test_a_forecasts_buckets_begin_at_from_and_end_at_to(api):
    api.send(delay_ms=10_000)
    api.send(delay_ms=14_999)
    api.send(delay_ms=15_000)
    query = f"from={NOW_MS + 10_000}&to={NOW_MS + 15_000}&step=2s"
    told = api.get(f"forecast?{query}").json
    assert [one["start_ms"] - NOW_MS for one in told["buckets"]] == [10_000, 12_000, 14_000]
    assert [one["count"] for one in told["buckets"]] == [1, 0, 1]
    assert told["to_ms"] == NOW_MS + 15_000
    day = api.get("forecast").json
    assert (day["step_ms"], len(day["buckets"])) == (MINUTE, 1440)
    assert day["buckets"][0]["start"] == day["from"]


@pytest.mark.parametrize(
    ("query", "status", "code"),
    [
        ("step=soon", 400, "delay_invalid"),
        ("from=noon", 400, "delay_invalid"),
        ("step=500ms", 422, "out_of_bounds"),
        ("step=2d", 422, "out_of_bounds"),
        (f"from={NOW_MS}&to={NOW_MS}", 422, "out_of_bounds"),
        (f"from={NOW_MS}&to={NOW_MS + 40 * 86_400_000}&step=1s", 422, "out_of_bounds"),
        ("until=tomorrow", 422, "field_unknown"),
    ],
)
def test_a_forecast_that_cannot_be_is_refused(api, query, status, code):
    answer = api.get(f"forecast?{query}")
    assert (answer.status, answer.code) == (status, code)


# --- schedule


def test_every_delay_level_says_how_far_it_is(api, clock):
    for _ in range(3):
        api.send(delay_level=1)
    api.send(delay_level=3)
    clock.advance(1_000)
    assert api.hand_over_what_is_due() == 3
    api.send(delay_level=1)
    levels = api.get("delay-levels").json
    assert [level["level"] for level in levels] == list(range(1, 19))
    first, third = levels[0], levels[2]
    assert (first["delay"], first["delay_ms"]) == ("1s", 1000)
    assert (first["delay_offset"], first["max_offset"], first["pending"]) == (3, 4, 1)
    assert first["next_due_at_ms"] == NOW_MS + 2_000
    assert first["last_delivered_at_ms"] == NOW_MS + 1_000
    assert (third["delay_offset"], third["pending"]) == (0, 1)
    assert third["next_due_at_ms"] == NOW_MS + 10_000
    assert (levels[17]["delay"], levels[17]["pending"]) == ("2h", 0)


def test_a_level_that_is_behind_says_by_how_much(api, clock):
    api.send(delay_level=1)
    clock.advance(1_250)
    assert api.get("delay-levels").json[0]["behind_ms"] == 250


def loop(name, **fields):
    known = {"holder": "7@here", "since_ms": NOW_MS, "last_step_ms": NOW_MS, "behind_ms": 0}
    return LoopState(name=name, **(known | {"stuck": False} | fields))


def test_loops_say_who_runs_them(api, wiring):
    wiring.schedule.states = [loop("levels"), loop("wheel", holder=None, since_ms=None)]
    levels, wheel = api.get("loops").json["items"]
    assert (levels["loop"], levels["holder"], levels["since_ms"]) == ("levels", "7@here", NOW_MS)
    assert (wheel["holder"], wheel["since"]) == (None, None)
    assert api.get("delay-levels").json[0]["holder"] == "7@here"


def test_the_timer_wheel_says_what_waits(api, wiring):
    wiring.schedule.states = [loop("wheel", detail={"engine": "wheel", "read_time_ms": NOW_MS})]
    api.send(delay="1h")
    wheel = api.get("timer-wheel").json
    assert (wheel["engine"], wheel["precision_ms"], wheel["pending"]) == ("wheel", 1000, 1)
    assert wheel["read_time"] == "2026-09-21T14:13:20.000Z"
    assert wheel["holder"] == "7@here"


# --- probes


def test_alive_is_alive(api):
    assert api.get("/healthz").json == {"status": "alive"}


def test_ready_names_every_check(api, wiring):
    wiring.schedule.states = [loop("levels"), loop("wheel")]
    answer = api._client.get("/readyz")
    assert answer.status_code == 200
    assert [check["name"] for check in answer.json()["checks"]] == [
        "store", "disk", "loop:levels", "loop:wheel",
    ]  # fmt: skip


@pytest.mark.parametrize("fields", [{"holder": None}, {"stuck": True}, {"behind_ms": 60_000}])
def test_a_loop_in_trouble_makes_it_unready(api, wiring, fields):
    wiring.schedule.states = [loop("levels"), loop("wheel", **fields)]
    answer = api._client.get("/readyz")
    assert answer.status_code == 503
    failed = [check["name"] for check in answer.json()["checks"] if not check["ok"]]
    assert failed == ["loop:wheel"]


def test_figures_are_in_the_format_of_prometheus(api, wiring):
    wiring.schedule.states = [loop("levels", behind_ms=1500)]
    api.send(delay="1h")
    answer = api.get("/metrics")
    assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    text = answer.content.decode()
    assert "# TYPE postdate_sent_timed_total counter" in text
    assert 'postdate_loop_behind_seconds{loop="levels"} 1.5' in text
    assert "postdate_writable 1.0" in text


def test_the_root_leads_to_the_console(client):
    answer = client.get("/")
    assert (answer.status_code, answer["Location"]) == (302, "/admin/")
