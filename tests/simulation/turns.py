"""Processes as coroutines: one runs at a time, and chance says where it gives its turn away.

A process gives its turn away only at a *point*: before a write, before a read of a file, and where
it takes a lock. So the order of everything that processes share follows from the seed alone. A
process that dies is thrown `Died` at its point; from then on its disk refuses whatever its
`finally` blocks still try.
"""

import contextlib
import random
from collections.abc import Callable
from dataclasses import dataclass, field

import greenlet

from tests.support.faulty_disk import Died


class Stuck(AssertionError):
    """Every process waits for a lock: a deadlock."""


@dataclass
class Process:
    """One process of the simulated machine."""

    name: str
    #: What it does, from its start to its end.
    body: Callable[["Process"], None]
    turns: "Turns"
    #: Whether it was killed, or ended.
    dead: bool = False
    #: Told to say whether what it waits for has come; None while it can go on.
    blocked: Callable[[], bool] | None = None
    #: What broke in it, if anything did.
    failure: BaseException | None = None
    _greenlet: greenlet.greenlet = field(init=False)

    def __post_init__(self) -> None:
        self._greenlet = greenlet.greenlet(self._run)

    def _run(self) -> None:
        try:
            with contextlib.suppress(Died):
                self.body(self)
        except Exception as failure:  # noqa: BLE001 (the world looks at it)
            self.failure = failure
        finally:
            self.dead = True

    @property
    def can_go_on(self) -> bool:
        """Whether it makes sense to give it a turn."""
        return not self.dead and (self.blocked is None or self.blocked())

    def resume(self) -> None:
        """Let it run to a point where it gives its turn away."""
        self._greenlet.switch()

    def pause(self) -> None:
        """Give the turn away."""
        self.turns.main.switch()
        if self.dead:
            raise Died

    def wait_until(self, come: Callable[[], bool]) -> None:
        """Give turns away until something has come."""
        while not come():
            self.blocked = come
            try:
                self.pause()
            finally:
                self.blocked = None

    def kill(self) -> None:
        """End it where it stands."""
        if not self._greenlet.dead:
            self.dead = True
            if self._greenlet:
                self._greenlet.throw(Died())


class Turns:
    """Gives processes their turns."""

    def __init__(self, chance: random.Random, switchiness: float) -> None:
        self.chance = chance
        #: How likely a point is to give the turn away.
        self.switchiness = switchiness
        self.main = greenlet.getcurrent()
        self.processes: list[Process] = []

    def start(self, name: str, body: Callable[[Process], None]) -> Process:
        """Add a process; it runs when it is given a turn."""
        process = Process(name, body, self)
        self.processes.append(process)
        return process

    def point(self, process: Process | None) -> None:
        """A place at which the running process may give its turn away, or finds itself dead."""
        if process is None or greenlet.getcurrent() is self.main:
            return
        if process.dead:
            raise Died
        if self.chance.random() < self.switchiness:
            process.pause()

    def one(self) -> Process | None:
        """Give one process a turn; None if there is none. Raises `Stuck`."""
        living = [process for process in self.processes if not process.dead]
        ready = [process for process in living if process.can_go_on]
        if not ready:
            if living:
                raise Stuck([process.name for process in living])
            return None
        process = self.chance.choice(ready)
        process.resume()
        return process

    def bury(self) -> list[Process]:
        """Take away and return the processes that ended or were killed."""
        gone = [process for process in self.processes if process.dead]
        self.processes = [process for process in self.processes if not process.dead]
        return gone
