"""Consumers are seen when they ask for messages; what names itself anew each time fills nothing."""

from datetime import UTC, datetime

import pytest

from queues.models import SeenConsumer
from queues.selectors.consumers import list_consumers
from queues.services import sightings as services
from queues.services.sightings import Sightings, forget_sightings

HOUR_MS = 3_600_000


@pytest.fixture
def own(db):
    del db
    return Sightings(start=lambda _: None)


def seen():
    return sorted(
        (row.group, row.consumer_id, round(row.seen_at.timestamp() * 1000))
        for row in SeenConsumer.objects.all()
    )


def test_a_sighting_is_written_once_and_moved_on(own):
    own.note("billing", "a", "key:x", 1_000_000)
    own.note("billing", None, "key:x", 1_000_000)
    own.write()
    own.note("billing", "a", "key:x", 1_014_999)
    own.write()
    assert seen() == [("billing", "", 1_000_000), ("billing", "a", 1_000_000)]
    own.note("billing", "a", "key:x", 1_015_000)
    own.write()
    assert ("billing", "a", 1_015_000) in seen()
    assert SeenConsumer.objects.count() == 2


def test_writing_is_begun_once_for_all_that_is_noted():
    begun = []
    own = Sightings(start=begun.append)
    for number in range(5):
        own.note("billing", str(number), "key:x", 1_000_000)
    assert len(begun) == 1


def test_one_that_names_itself_anew_fills_neither_memory_nor_table(own, monkeypatch):
    monkeypatch.setattr(services, "CONSUMERS_SEEN_MAX", 10)
    for number in range(50):
        own.note("billing", str(number), "key:x", 1_000_000 + number)
    assert len(own._noted) <= 10
    own.write()
    assert SeenConsumer.objects.count() == 10
    own.note("billing", "late", "key:x", 2_000_000)
    own.write()
    assert forget_sightings(2_000_000) == 1
    assert SeenConsumer.objects.count() == 10
    assert SeenConsumer.objects.filter(consumer_id="late").exists()


@pytest.mark.usefixtures("db")
def test_who_was_not_seen_for_a_day_is_forgotten():
    for hours in (1, 30):
        at = datetime.fromtimestamp((100 * HOUR_MS - hours * HOUR_MS) / 1000, UTC)
        SeenConsumer.objects.create(group="a", consumer_id=str(hours), by="key:x", seen_at=at)
    assert forget_sightings(100 * HOUR_MS) == 1
    assert SeenConsumer.objects.get().consumer_id == "1"


def test_a_deleted_group_takes_its_consumers_along(api):
    api.group()
    api.receive(consumer_id="worker")
    services.sightings.write()
    assert [one.consumer_id for one in list_consumers("billing", [], limit=10)] == ["worker"]
    api.delete("groups/billing")
    assert list_consumers("billing", [], limit=10) == []
