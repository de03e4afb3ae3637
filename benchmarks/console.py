"""How long each page of the console takes the server with ten million messages waiting.

A thousand topics, messages waiting in the wheel and in the levels. Each page is asked for as a
person's browser does, logged in: once, and then every two seconds as a live page does, so that
nothing that is kept for a moment is met again. Beside how long an answer took stands what it cost
the web processes of their own processor time, which a busy machine does not stretch as much.
"""

import http.cookiejar
import re
import statistics
import threading
import time
import urllib.parse
import urllib.request

from measuring import Report, run
from platforms import running_platform
from processes import command_of, cpu_seconds, family
from waiting import QUEUES, now_ms, opened, send_timed

from queues.demo.client import Client
from queues.demo.launching import Running

PASSWORD = "a-password-of-the-benchmark"  # noqa: S105 (opens nothing)
TOPICS = 1_000
REPEATS = 5
#: As often as a live page asks.
PAUSE_S = 2.0
TEN_DAYS_MS = 10 * 86_400_000
PAGES = [
    "", "levels/", "wheel/", "loops/", "forecast/?span=15m", "forecast/?span=24h",
    "forecast/?span=40d", "messages/", "messages/?topic=topic-7", "messages/?kind=level",
    "messages/?q=order-1&topic=topic-7", "parked/", "topics/", "topics/topic-7/", "groups/",
    "messages/?level=3", "operations/", "reports/schedules/", "audit/", "people/", "keys/",
    "system/",
]  # fmt: skip


def main(report: Report) -> None:
    """Fill, log in, ask for every page."""
    count = 50_000 if report.quick else 10_000_000
    topics = 20 if report.quick else TOPICS
    report.settings = {"messages": count, "topics": topics}
    settings = {"POSTDATE_ADMIN_PASSWORD": PASSWORD}
    with running_platform(settings) as running:
        fill(running, count, topics)
        person = log_in(running)
        for page in PAGES:
            began_s = web_seconds(running)
            first_ms, more_ms = ask(person, running, page, 0.0 if report.quick else PAUSE_S)
            own_ms = (web_seconds(running) - began_s) * 1000 / (REPEATS + 1)
            report.add(f"/{page} first", "ms", [first_ms], lower=True)
            report.add(f"/{page}", "ms", more_ms, lower=True)
            report.add(f"/{page} processor time", "ms", [own_ms], lower=True)
            report.at_most(f"/{page}, ms", statistics.median(more_ms), 200.0)


def fill(running: Running, count: int, topics: int) -> None:
    """Most to a few topics, something to each."""
    client = Client(running.base_url, api_key=running.api_key, stop=threading.Event())
    for number in range(topics):
        client.expect("PUT", f"/api/v1/topics/topic-{number}", {"queues": QUEUES}, statuses=(201,))
        body = {"body": "x", "delay_level": number % 18 + 1, "keys": [f"order-{number}"]}
        client.expect("POST", f"/api/v1/topics/topic-{number}/messages", body, statuses=(201,))
    client.close()
    with opened(running.data_dir) as store:
        for number in range(10):
            name = f"topic-{number}"
            begin_ms = now_ms() + 600_000
            send_timed(store, name, count // 10, from_ms=begin_ms, span_ms=TEN_DAYS_MS)


def log_in(running: Running) -> urllib.request.OpenerDirector:
    """A person's browser, with its cookies."""
    jar = http.cookiejar.CookieJar()
    person = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(jar))
    address = f"{running.base_url}/admin/login/?next=/admin/"
    form = person.open(address, timeout=60).read().decode()
    found = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', form)
    assert found is not None
    fields = {"username": "admin", "password": PASSWORD, "next": "/admin/"}
    sent = urllib.parse.urlencode({**fields, "csrfmiddlewaretoken": found[1]}).encode()
    answer = person.open(urllib.request.Request(address, sent, {"Referer": address}), timeout=60)  # noqa: S310 (our own server)
    assert answer.url.endswith("/admin/")
    return person


def web_seconds(running: Running) -> float:
    """Processor time of the web processes so far."""
    web = [pid for pid in family(running.process.pid) if "granian" in command_of(pid)]
    return sum(cpu_seconds(pid) for pid in web)


def ask(
    person: urllib.request.OpenerDirector, running: Running, page: str, pause_s: float
) -> tuple[float, list[float]]:
    """Milliseconds of the first answer, and of some more."""
    took = []
    for number in range(REPEATS + 1):
        if number:
            time.sleep(pause_s)
        began = time.perf_counter()
        person.open(f"{running.base_url}/admin/{page}", timeout=120).read()
        took.append((time.perf_counter() - began) * 1000)
    return took[0], took[1:]


if __name__ == "__main__":
    run("console", main, __doc__)
