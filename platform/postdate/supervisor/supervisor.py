"""The supervisor's loop: start what is due, reap the dead, kill what stands still, stop all."""

import logging
import signal
import time
from collections.abc import Callable, Mapping, Sequence

from postdate.supervisor.child import Child, ChildPlan
from postdate.supervisor.stalls import STALL_MS_MAX, StallWatch

logger = logging.getLogger("postdate.supervisor")

#: How often it looks when nothing happens; a child's death wakes it at once.
LOOK_MS = 500
#: How long children may take to stop before they are killed; all must be over within 10 s.
STOP_MS_MAX = 8_000

#: Lock -> (process id of its holder, counter); empty while there is no store.
ReadProgress = Callable[[], Mapping[str, tuple[int, int]]]


class Supervisor:
    """Keeps its children running until it is told to stop."""

    def __init__(self, plans: Sequence[ChildPlan], read_progress: ReadProgress) -> None:
        self._children = [Child(plan) for plan in plans]
        self._read_progress = read_progress
        self._stalls = StallWatch()
        self._looked_ms = _monotonic_ms()
        self._is_stopping = False

    def run(self, on_look: Callable[["Supervisor"], None]) -> None:
        """Watch until a signal says stop, then stop all; `on_look` is called at every look."""
        with _Wakeup(self._ask_to_stop) as wakeup:
            while not self._is_stopping:
                self._look()
                on_look(self)
                wakeup.wait(self._until_next_ms())
            self._stop(wakeup)

    def add(self, plan: ChildPlan) -> None:
        """Take on another child."""
        self._children.append(Child(plan))

    def _ask_to_stop(self) -> None:
        self._is_stopping = True

    def _look(self) -> None:
        now_ms = _monotonic_ms()
        for child in self._children:
            self._reap(child, now_ms)
            if child.start_at_ms is not None and child.start_at_ms <= now_ms:
                child.start(now_ms)
        passed_ms, self._looked_ms = now_ms - self._looked_ms, now_ms
        for process_id in set(self._stalls.observe(self._read_progress(), passed_ms).values()):
            self._end_stalled(process_id)

    def _reap(self, child: Child, now_ms: int) -> None:
        status = child.reap(now_ms)
        if status is None or (status == 0 and not child.plan.is_kept_alive):
            return
        how = f"was killed by {signal.Signals(-status).name}" if status < 0 else f"exited {status}"
        if child.start_at_ms is not None:
            wait_ms = child.start_at_ms - now_ms
            logger.warning("%s %s; it is started again in %d ms", child.plan.name, how, wait_ms)
        else:
            logger.warning("%s %s; see %s", child.plan.name, how, child.plan.log_path)

    def _end_stalled(self, process_id: int) -> None:
        for child in self._children:
            if child.holds(process_id):
                logger.error(
                    "%s (process %d) holds a lock and stood still for %d s; it is killed",
                    child.plan.name, process_id, STALL_MS_MAX // 1000,
                )  # fmt: skip
                child.kill()

    def _until_next_ms(self) -> int:
        now_ms = _monotonic_ms()
        starts = [child.start_at_ms for child in self._children if child.start_at_ms is not None]
        return max(0, min([LOOK_MS, *(start - now_ms for start in starts)]))

    def _stop(self, wakeup: "_Wakeup") -> None:
        """Stop everything: all are asked together, whoever is late is killed."""
        begun_ms = _monotonic_ms()
        for child in self._children:
            child.start_at_ms = None
            child.terminate()
        while running := [child for child in self._children if child.process_id is not None]:
            now_ms = _monotonic_ms()
            for child in running:
                status = child.reap(now_ms)
                child.start_at_ms = None
                if status is not None:
                    logger.info("%s stopped (%d)", child.plan.name, status)
                elif now_ms - begun_ms > STOP_MS_MAX:
                    logger.error("%s did not stop in time and is killed", child.plan.name)
                    child.kill()
            wakeup.wait(50)


class _Wakeup:
    """Signals as something to wait for: SIGTERM and SIGINT ask to stop, SIGCHLD only wakes."""

    def __init__(self, ask_to_stop: Callable[[], None]) -> None:
        self._ask_to_stop = ask_to_stop
        self._signals = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP}

    def __enter__(self) -> "_Wakeup":
        # Blocked and fetched by sigtimedwait: no handler runs amid a child's start.
        signal.pthread_sigmask(signal.SIG_BLOCK, {*self._signals, signal.SIGCHLD})
        return self

    def __exit__(self, *_: object) -> None:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {*self._signals, signal.SIGCHLD})

    def wait(self, timeout_ms: int) -> None:
        """Wait for a signal, no longer than `timeout_ms`."""
        found = signal.sigtimedwait({*self._signals, signal.SIGCHLD}, timeout_ms / 1000)
        if found is not None and found.si_signo in self._signals:
            self._ask_to_stop()


def _monotonic_ms() -> int:
    return time.monotonic_ns() // 1_000_000
