"""Either engine against a dictionary: each message comes once, in time, whatever happens."""

from dataclasses import dataclass

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.wheelworld import WheelWorld, small_sizes

DAY_MS = 86_400_000


@dataclass(frozen=True)
class Happening:
    what: str
    number: int = 0
    delays_ms: tuple[int, ...] = ()


near = st.integers(1, 5_000)
far = st.integers(1, 400_000)
delays = st.lists(st.one_of(near, far), min_size=1, max_size=30).map(tuple)
happenings = st.lists(
    st.one_of(
        delays.map(lambda found: Happening("send", delays_ms=found)),
        st.tuples(st.integers(50, 200), near).map(
            lambda found: Happening("send", delays_ms=(found[1],) * found[0])
        ),
        st.integers(1, 3_000).map(lambda ms: Happening("run", ms)),
        st.integers(1, 120_000).map(lambda ms: Happening("run", ms)),
        st.integers(1, 3).map(lambda turns: Happening("turn", turns)),
        st.integers(0, 500).map(lambda index: Happening("cancel", index)),
        st.just(Happening("reopen")),
        st.just(Happening("die")),
        st.just(Happening("change_engine")),
        st.integers(1, 3 * DAY_MS).map(lambda ms: Happening("sleep", ms)),
        st.integers(1, 300_000).map(lambda ms: Happening("clock_back", ms)),
        st.integers(1, 300_000).map(lambda ms: Happening("clock_forward", ms)),
    ),
    min_size=2,
    max_size=14,
)


def apply(world: WheelWorld, happening: Happening) -> None:
    match happening.what:
        case "send":
            world.send(happening.delays_ms)
        case "run":
            world.run_until(world.clock.now_ms() + happening.number)
            world.check()
        case "turn":
            for _ in range(happening.number):
                world.turn()
        case "cancel":
            ids = sorted(world.due_ms)
            if ids:
                world.cancel(ids[happening.number % len(ids)])
        case "reopen":
            world.reopen()
        case "change_engine":
            world.step.close()
            world.engine = "wheel" if world.engine == "rocksdb" else "rocksdb"
            world.replace_step()
        case "die":
            world.replace_step()
        case "sleep":
            # A far message rolls once a window; a downtime of a thousand windows tells no more.
            window_ms = (
                world.settings.sizes.timer_window_slots * world.settings.sizes.timer_precision_ms
            )
            world.clock.advance(min(happening.number, 500 * window_ms))
        case "clock_back":
            world.clock.step_back(happening.number)
        case "clock_forward":
            world.clock.step_forward(happening.number)


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
@given(
    happenings=happenings,
    precision_ms=st.sampled_from([100, 1000, 5000]),
    window_slots=st.sampled_from([4, 7, 30]),
    engine=st.sampled_from(["wheel", "rocksdb"]),
)
def test_each_message_comes_once_in_time_whatever_happens(
    happenings: list[Happening], precision_ms: int, window_slots: int, engine: str
) -> None:
    sizes = small_sizes(precision_ms=precision_ms, window_slots=window_slots)
    with WheelWorld(sizes, engine=engine) as world:
        for happening in happenings:
            apply(world, happening)
            world.look()
        last_ms = max(world.due_ms.values(), default=0)
        world.clock.advance(max(0, last_ms - world.clock.now_ms()))
        world.settle()
        world.check()
        assert world.waiting() == 0
