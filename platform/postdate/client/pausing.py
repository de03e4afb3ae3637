"""Pausing is the one place of the client that reads a clock, sleeps and draws lots."""

import asyncio
import random
import time

#: How time is read for deadlines: seconds that never step.
monotonic = time.monotonic


def pause(seconds: float) -> None:
    """Sleep in this thread."""
    time.sleep(seconds)


async def apause(seconds: float) -> None:
    """Sleep in this task."""
    await asyncio.sleep(seconds)


def share() -> float:
    """A number between 0 and 1, so that clients that failed together do not come back together."""
    return random.random()  # noqa: S311 (it spreads load, it hides nothing)
