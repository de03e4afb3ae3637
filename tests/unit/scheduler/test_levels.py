"""The delay levels over a real store: on time, in order, nothing early, nothing left behind."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from queues.store import Failure, HandOver, Outgoing, Store
from queues.store.disk import Disk
from queues.store.levels import LevelTable
from scheduler.levels.offsets import DelayOffsets
from scheduler.levels.runs import Int64s
from scheduler.levels.step import LevelsStep
from tests.support.clock import ManualClock

TOPIC = "orders"


class Schedule:
    """A store with the step of its levels."""

    def __init__(self, store: Store, clock: ManualClock, root: Path) -> None:
        self.store = store
        self.clock = clock
        self.path = root / "config" / "delayOffset.json"
        self.step = self.new_step()

    def new_step(self, *, share: tuple[int, int] = (0, 1)) -> LevelsStep:
        offsets = DelayOffsets(self.store, Disk(), self.path)
        step = LevelsStep(self.store, level_count=4, offsets=offsets, share=share)
        step.open()
        return step

    def send(self, *levels: int, topic: str = TOPIC) -> list[str]:
        """Send one message for each level given."""
        now_ms = self.clock.now_ms()
        ids = self.store.new_ids(topic, now_ms, len(levels))
        self.store.send(
            [
                Outgoing(topic, 0, unique_id, b"body", now_ms, level=level)
                for unique_id, level in zip(ids, levels, strict=True)
            ]
        )
        return ids

    def run(self) -> int:
        """Do all that is due now; how many were handed over."""
        moved = 0
        while True:
            advanced = self.step.advance(self.clock.now_ms())
            moved += advanced.moved
            if not advanced.more:
                return moved

    def run_for(self, span_ms: int) -> None:
        """Let time pass, waking when the step asks for it."""
        end_ms = self.clock.now_ms() + span_ms
        while True:
            advanced = self.step.advance(self.clock.now_ms())
            if advanced.more:
                continue
            due_ms = advanced.next_due_ms
            if due_ms is None or due_ms > end_ms:
                self.clock.advance_to(end_ms)
                return
            self.clock.advance_to(due_ms)

    def delivered(self, topic: str = TOPIC) -> list[str]:
        """Ids in the order in which a consumer sees them."""
        count = self.store.queue_bounds(topic, 0).max_offset
        units = self.store.read_units(topic, 0, 0, count)
        return [
            self.store.read_record(int(offset)).properties["UNIQ_KEY"]
            for offset in units["log_offset"].tolist()
        ]

    def lateness(self, message_id: str) -> int:
        view = self.store.find(message_id)
        assert view is not None
        assert view.delivered_ms is not None
        return view.delivered_ms - view.due_ms


@pytest.fixture
def schedule(store: Store, clock: ManualClock, root: Path) -> Schedule:
    return Schedule(store, clock, root)


def test_a_message_is_handed_over_at_its_due_millisecond(schedule: Schedule) -> None:
    (message_id,) = schedule.send(1)
    schedule.clock.advance(999)
    assert schedule.run() == 0
    schedule.clock.advance(1)
    assert schedule.run() == 1
    assert schedule.delivered() == [message_id]
    assert schedule.lateness(message_id) == 0


def test_the_step_names_the_next_due_time(schedule: Schedule) -> None:
    assert schedule.step.advance(schedule.clock.now_ms()).next_due_ms is None
    schedule.send(3, 2)
    advanced = schedule.step.advance(schedule.clock.now_ms())
    assert advanced.next_due_ms == schedule.clock.now_ms() + 5_000


def test_every_level_hands_over_after_its_own_delay(schedule: Schedule) -> None:
    ids = schedule.send(4, 3, 2, 1)
    schedule.run_for(31_000)
    assert schedule.delivered() == ids[::-1]
    assert [schedule.lateness(message_id) for message_id in ids] == [0, 0, 0, 0]


def test_messages_of_one_level_keep_their_order(schedule: Schedule) -> None:
    ids = schedule.send(*[1] * 50)
    schedule.clock.advance(7)
    ids += schedule.send(*[1] * 50)
    schedule.run_for(2_000)
    assert schedule.delivered() == ids


def test_a_message_is_handed_over_once_however_often_the_step_runs(schedule: Schedule) -> None:
    ids = schedule.send(*[1] * 10)
    schedule.run_for(2_000)
    schedule.step = schedule.new_step()
    schedule.run_for(2_000)
    assert schedule.delivered() == ids


def test_a_new_holder_goes_on_where_the_last_one_was_killed(schedule: Schedule) -> None:
    ids = schedule.send(*[1] * 10, *[2] * 10)
    schedule.run_for(1_500)
    schedule.step = schedule.new_step()
    schedule.run_for(5_000)
    assert schedule.delivered() == ids


def test_a_cancelled_message_is_never_delivered(schedule: Schedule) -> None:
    kept, cancelled = schedule.send(1, 1)
    schedule.step.advance(schedule.clock.now_ms())
    assert schedule.store.cancel(cancelled, by="test").outcome == "cancelled"
    schedule.run_for(2_000)
    assert schedule.delivered() == [kept]


class TestGenerations:
    """A clock set back begins a new run in a level's queue; neither waits for the other."""

    def test_new_messages_do_not_wait_behind_old_ones(self, schedule: Schedule) -> None:
        (old,) = schedule.send(1)
        schedule.clock.step_back(3_600_000)
        (new,) = schedule.send(1)
        schedule.run_for(1_000)
        schedule.run()
        assert schedule.delivered() == [new]
        schedule.run_for(3_600_000)
        schedule.run()
        assert schedule.delivered() == [new, old]
        assert schedule.lateness(old) == 0

    def test_a_clock_set_forward_makes_waiting_messages_due(self, schedule: Schedule) -> None:
        ids = schedule.send(1, 2, 3)
        schedule.clock.step_forward(3_600_000)
        assert schedule.run() == 3
        assert sorted(schedule.delivered()) == sorted(ids)

    def test_many_steps_back_are_survived(self, schedule: Schedule) -> None:
        ids = []
        for _ in range(100):
            ids += schedule.send(1, 1)
            schedule.clock.step_back(1_000)
        schedule.run_for(200_000)
        schedule.run()
        assert sorted(schedule.delivered()) == sorted(ids)
        assert all(schedule.lateness(message_id) == 0 for message_id in ids)


class TestFailures:
    """What cannot be handed over waits and is tried again; the others go on."""

    def test_a_message_that_never_can_be_handed_over_is_parked(self, schedule: Schedule) -> None:
        (bad,) = schedule.send(1, topic="gone")
        (good,) = schedule.send(1)
        schedule.store.topic_gate = _closed("gone")
        schedule.run_for(2_000)
        assert schedule.delivered() == [good]
        view = schedule.store.find(bad)
        assert view is not None
        assert (view.state, view.parked_reason) == ("parked", "The topic was deleted.")

    def test_a_message_that_fails_is_tried_again_while_others_go_on(
        self, schedule: Schedule, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        bad, good, late = schedule.send(1, 1, 2)
        failing = FailingHandOver(schedule.store, {0})
        monkeypatch.setattr(schedule.store, "hand_over", failing)
        schedule.run_for(1_050)
        assert schedule.delivered() == [good]
        assert schedule.step.report()["retrying"] == {"1": 1}
        schedule.run_for(5_000)
        assert schedule.delivered() == [good, late]
        failing.offsets.clear()
        schedule.run_for(11_000)
        assert schedule.delivered() == [good, late, bad]
        assert schedule.step.report()["retrying"] == {}

    def test_an_error_of_the_store_takes_nothing_from_the_queue(
        self, schedule: Schedule, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        ids = schedule.send(*[1] * 5)
        schedule.clock.advance(1_000)

        def fail(*_args: object) -> None:
            raise OSError("told to fail")

        with monkeypatch.context() as patched:
            patched.setattr(schedule.store, "hand_over", fail)
            with pytest.raises(OSError, match="told to fail"):
                schedule.run()
        assert schedule.run() == 5
        assert schedule.delivered() == ids

    def test_a_clock_set_back_between_step_and_lock_makes_nothing_early(
        self, schedule: Schedule
    ) -> None:
        ids = schedule.send(*[1] * 5)
        schedule.clock.advance(1_000)
        now_ms = schedule.clock.now_ms()
        schedule.clock.step_back(500)
        assert schedule.step.advance(now_ms).moved == 0
        assert schedule.delivered() == []
        schedule.run_for(1_000)
        schedule.run()
        assert schedule.delivered() == ids


class TestDelayOffsets:
    """The live delay offset, and the file that follows it."""

    def test_the_live_offset_has_passed_what_was_delivered(self, schedule: Schedule) -> None:
        schedule.send(1, 1, 2)
        schedule.run_for(1_500)
        offsets = DelayOffsets(schedule.store, Disk(), schedule.path)
        assert offsets.live() == {"1": 2, "2": 0}

    def test_closing_writes_the_file_with_a_backup(self, schedule: Schedule) -> None:
        schedule.send(1, 1, 2)
        schedule.run_for(1_500)
        schedule.step.close()
        assert schedule.path.read_text() == '{"offsetTable":{"1":2,"2":0}}'
        schedule.run_for(5_000)
        schedule.step.close()
        assert schedule.path.read_text() == '{"offsetTable":{"1":2,"2":1}}'
        backup = schedule.path.with_name("delayOffset.json.bak")
        assert backup.read_text() == '{"offsetTable":{"1":2,"2":0}}'

    def test_nothing_is_written_while_nothing_moves(self, schedule: Schedule) -> None:
        schedule.send(1)
        offsets = DelayOffsets(schedule.store, Disk(), schedule.path)
        assert offsets.save()
        assert not offsets.save()
        assert not DelayOffsets(schedule.store, Disk(), schedule.path).save()

    @pytest.mark.parametrize("text", ["", "\0\0\0", "{", "[1]", '{"offsetTable":{1:99999,2:-5}}'])
    def test_a_wrong_file_loses_and_doubles_nothing(
        self, schedule: Schedule, text: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        ids = schedule.send(1, 1)
        schedule.run_for(1_500)
        ids += schedule.send(1)
        schedule.path.parent.mkdir(exist_ok=True)
        schedule.path.write_text(text)
        schedule.step = schedule.new_step()
        schedule.run_for(2_000)
        assert schedule.delivered() == ids
        if "99999" in text:
            assert "outside its queue" in caplog.text


def test_a_changed_table_affects_new_messages_only(
    schedule: Schedule, store: Store, clock: ManualClock, root: Path
) -> None:
    old, highest = schedule.send(1, 4)
    store.close()
    settings = replace(store.settings, levels=LevelTable.parse("3s"))
    with Store.open(root, settings, clock=clock) as changed:
        after = Schedule(changed, clock, root)
        (new,) = after.send(1)
        after.run_for(40_000)
        assert after.delivered() == [old, new, highest]
        assert [after.lateness(message_id) for message_id in (old, new, highest)] == [0, 0, 0]


def test_levels_can_be_shared_between_loops(schedule: Schedule) -> None:
    ids = schedule.send(1, 2, 3, 4)
    first, second = (schedule.new_step(share=(index, 2)) for index in (0, 1))
    schedule.clock.advance(60_000)
    assert first.advance(schedule.clock.now_ms()).moved == 2
    assert schedule.delivered() == [ids[0], ids[2]]
    assert second.advance(schedule.clock.now_ms()).moved == 2
    assert sorted(schedule.delivered()) == sorted(ids)


def test_a_busy_level_does_not_hold_up_another(schedule: Schedule) -> None:
    schedule.send(*[2] * 4_000)
    schedule.clock.advance(4_000)
    (other,) = schedule.send(1)
    schedule.clock.advance(1_000)
    schedule.step.advance(schedule.clock.now_ms())
    assert other in schedule.delivered()


class FailingHandOver:
    """The store's hand-over, except for some offsets of level 1."""

    def __init__(self, store: Store, offsets: set[int]) -> None:
        self._hand_over = store.hand_over
        self.offsets = offsets

    def __call__(self, topic: str, queue_id: int, queue_offsets: Int64s) -> HandOver:
        """Report the offsets as failed, and hand the others over."""
        failing = [
            Failure(offset, "told to fail", permanent=False)
            for offset in queue_offsets.tolist()
            if queue_id == 0 and offset in self.offsets
        ]
        kept = [offset not in self.offsets or queue_id != 0 for offset in queue_offsets.tolist()]
        result = self._hand_over(topic, queue_id, queue_offsets[kept])
        return replace(result, failed=tuple(failing))


def _closed(topic: str) -> Callable[[str, int], str | None]:
    return lambda name, _queue_id: "The topic was deleted." if name == topic else None
