"""A bulk change that is taken up after its process was killed tells the whole of what it did."""

from pathlib import Path

import numpy as np
import pytest

from queues.store.dispatch import Dispatcher
from queues.store.names import TIMER_TOPIC
from tests.http.conftest import Api
from tests.support.bulkhouse import House
from tests.support.faulty_disk import Died


@pytest.fixture
def house(api: Api, tmp_path: Path) -> House:
    return House(api, tmp_path / "leases")


def test_what_a_killed_run_was_writing_is_counted_as_changed(
    api: Api, house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its records are in the log, and the next one to write finishes them."""
    sent = [api.send(delay=f"{n + 1}h") for n in range(5)]
    plan_id = house.plan("cancel", filter={"topic": "orders"})["plan_id"]
    house.begin("cancel", plan_id)
    store = api.wiring.store
    queue = store.outlook.queue(TIMER_TOPIC, 0)
    units = list(store.bulk.load(queue, np.arange(3), np.zeros(3, np.int64)))

    def die(*_: object) -> None:
        raise Died

    with monkeypatch.context() as dying:
        dying.setattr(Dispatcher, "apply", die)
        with pytest.raises(Died):
            store.bulk.cancel(units, by=f"operation:{plan_id}", reason=None)
    house.run()
    assert house.done(plan_id)["result"] == {"planned": 5, "changed": 5, "lost": 0}
    assert house.states(sent) == ["cancelled"] * 5
