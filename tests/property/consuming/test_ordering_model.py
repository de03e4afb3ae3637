"""Ordered groups, whatever is done in whatever order: of each key one message at a time."""

import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from queues.store.consuming import Delivery
from tests.support.chainworld import LEASE_MS, id_of
from tests.support.clock import ManualClock
from tests.support.orderedworld import Ordered

STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            ("post", "receive", "receive", "ack", "ack", "fail", "die", "wait", "restart", "expire")
        ),
        st.integers(0, 7),
    ),
    min_size=1,
    max_size=40,
)


class Model:
    """What was sent, what is out, and what is over."""

    def __init__(self, root: Path) -> None:
        self.root, self.clock = root, ManualClock()
        self.world = Ordered(root, self.clock)
        #: By key, in the order of the queue.
        self.sent: dict[str, list[str]] = {}
        self.key: dict[str, str] = {}
        self.over: set[str] = set()
        self.held: dict[str, Delivery] = {}

    def post(self, number: int) -> None:
        for key in "abc."[: 1 + number % 4]:
            (message_id,) = self.world.post(key)
            self.sent.setdefault(key, []).append(message_id)
            self.key[message_id] = key

    def receive(self, number: int) -> None:
        for delivery in self.world.receive(1 + number):
            message_id = id_of(delivery)
            first = next(one for one in self.sent[self.key[message_id]] if one not in self.over)
            assert message_id == first, "what was before it in its key is over"
            self.held[message_id] = delivery

    def _chosen(self, number: int) -> Delivery | None:
        names = sorted(self.held)
        return self.held.pop(names[number % len(names)]) if names else None

    def ack(self, number: int) -> None:
        delivery = self._chosen(number)
        if delivery is not None and self.world.ack([delivery]) == {"acked"}:
            self.over.add(id_of(delivery))

    def fail(self, number: int) -> None:
        self._fail(number, dead=False)

    def die(self, number: int) -> None:
        self._fail(number, dead=True)

    def _fail(self, number: int, *, dead: bool) -> None:
        delivery = self._chosen(number)
        if delivery is not None and self.world.fail([delivery], dead=dead)[0].outcome == "dead":
            self.over.add(id_of(delivery))

    def wait(self, number: int) -> None:
        self.clock.advance(10_000 * (1 + number))
        self.world.hand_over()

    def expire(self, _: int) -> None:
        self.clock.advance(LEASE_MS)
        self.world.keep_house()
        self.over.update(self.world.dead())

    def restart(self, _: int) -> None:
        self.world.close()
        self.world = Ordered(self.root, self.clock)

    def finish(self) -> None:
        """Nothing is lost: all that is not dead can be consumed."""
        for _ in range(200):
            if self.over >= self.key.keys():
                break
            self.expire(0)
            self.world.hand_over()
            self.held.clear()
            self.receive(7)
            while self.held:
                self.ack(0)
        assert self.over >= self.key.keys()
        self.world.close()


@settings(max_examples=25)
@given(steps=STEPS)
def test_of_each_key_one_message_comes_at_a_time_and_in_order(steps: list[tuple[str, int]]) -> None:
    with tempfile.TemporaryDirectory(prefix="ordering-") as folder:
        model = Model(Path(folder) / "store")
        for name, number in steps:
            getattr(model, name)(number)
        model.finish()
