"""Loading: what becomes of a unit whose message is due later than its slot."""

import numpy as np
import pytest

from scheduler.engine.books import Run
from scheduler.engine.keys import keys_of
from scheduler.engine.load import load
from tests.support.wheelworld import WheelWorld, small_sizes


@pytest.mark.parametrize(("inside_ms", "placed_again"), [(0, 1), (500, 0)])
def test_a_message_that_was_kept_before_its_own_slot_is_placed_again(
    inside_ms: int, placed_again: int
) -> None:
    """It was listed ahead of its turn and kept as a late one; any other is of a lost record."""
    with WheelWorld(small_sizes(window_slots=30)) as world:
        world.settle()
        world.send([20_000])
        world.settle()
        engine = world.step.engine
        state = engine._state
        slot_ms = world.clock.now_ms() // 1000 * 1000
        state.runs.append(Run(slot_ms, keys_of(np.array([inside_ms]), np.array([0]))))
        state.waiting_keys += 1
        state.outstanding.add(np.array([slot_ms]))
        assert load(state, world.store, world.clock.now_ms(), 10) == 1
        assert (len(state.rolls), state.due.size) == (placed_again, 0)
        world.run_until(world.clock.now_ms() + 20_000)
        world.check()
        assert world.waiting() == 0
