"""A child: one process of the platform, started in a process group of its own.

The group is what is signalled and, once its leader has died, swept: a web server's worker cannot
outlive it and keep the port. The kernel ends the child when the supervisor dies (PR_SET_PDEATHSIG).
"""

import contextlib
import ctypes
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from postdate.supervisor.backoff import Backoff

_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None)


@dataclass(frozen=True, slots=True)
class ChildPlan:
    """How a child is started."""

    #: What people call it: `web`, `scheduler-1`.
    name: str
    command: Sequence[str]
    environment: Mapping[str, str]
    directory: Path
    #: Whether it is started again when it ends; an installer is not.
    is_kept_alive: bool = True
    #: Where its output goes instead of the supervisor's own.
    log_path: Path | None = None
    #: Added to its niceness: 19 for what must disturb nobody.
    nice: int = 0


class Child:
    """A planned process, running or not."""

    def __init__(self, plan: ChildPlan) -> None:
        self.plan = plan
        self._process: subprocess.Popen[bytes] | None = None
        self._backoff = Backoff()
        self._started_ms = 0
        #: When it is to be started, by the supervisor's monotonic clock; None: never again.
        self.start_at_ms: int | None = 0

    @property
    def process_id(self) -> int | None:
        """The leader's process id, while it runs."""
        return self._process.pid if self._process else None

    def start(self, now_ms: int) -> None:
        """Start it."""
        plan = self.plan
        with contextlib.ExitStack() as files:
            output = files.enter_context(plan.log_path.open("ab")) if plan.log_path else None
            self._process = subprocess.Popen(  # noqa: S603 (the commands are the product's own)
                list(plan.command),
                cwd=plan.directory,
                env=dict(plan.environment),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                preexec_fn=self._before_exec,  # noqa: PLW1509 (the supervisor has one thread)
            )
        self._started_ms = now_ms
        self.start_at_ms = None

    def _before_exec(self) -> None:
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        # The supervisor waits for its signals blocked; a child must hear its own.
        signal.pthread_sigmask(signal.SIG_SETMASK, set())
        if self.plan.nice:
            os.nice(self.plan.nice)

    def reap(self, now_ms: int) -> int | None:
        """Return the exit status if it has ended since the last look, and plan its next start."""
        if self._process is None or (status := self._process.poll()) is None:
            return None
        self._signal_group(signal.SIGKILL)
        self._process = None
        if self.plan.is_kept_alive:
            self.start_at_ms = now_ms + self._backoff.died(now_ms - self._started_ms)
        return status

    def holds(self, process_id: int) -> bool:
        """Whether this process is the child or a descendant in its group."""
        if self._process is None:
            return False
        try:
            return os.getpgid(process_id) == self._process.pid
        except ProcessLookupError:
            return False

    def terminate(self) -> None:
        """Ask it to stop; only the leader is asked, who stops its own."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(signal.SIGTERM)
                # One that was stopped (SIGSTOP) hears nothing until it goes on.
                self._process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """End it and its group now."""
        self._signal_group(signal.SIGKILL)

    def _signal_group(self, number: signal.Signals) -> None:
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, number)
