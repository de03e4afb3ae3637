"""Carrying an operation out in this process, unless housekeeping has taken it up already."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from queues import wires
from queues.selectors.operations import get_operation, is_finished
from queues.services.operations import carry_out

if TYPE_CHECKING:
    from queues.models import Operation

_LOOK_SECONDS = 0.5


def run_here(operation_id: str, leases: Path, tell: Callable[[int], None]) -> "Operation":
    """Run it, or watch whoever runs it; returns it finished."""
    worker = threading.Thread(target=_carry, args=(operation_id, leases), daemon=True)
    worker.start()
    told, pause = -1, threading.Event()
    while True:
        operation = get_operation(operation_id)
        if operation.done != told:
            told = operation.done
            tell(told)
        if is_finished(operation):
            worker.join(_LOOK_SECONDS)
            return operation
        if not worker.is_alive():
            worker = threading.Thread(target=_carry, args=(operation_id, leases), daemon=True)
            worker.start()  # Whoever had it may have died; its lock tells.
        pause.wait(_LOOK_SECONDS)


def _carry(operation_id: str, leases: Path) -> None:
    disk = wires.wiring().get_store().disk
    disk.make_dirs(leases)
    lock = disk.lock(leases / f"operation-{operation_id}.lock")
    try:
        if lock.try_acquire():
            try:
                if carry_out(operation_id, is_stopping=lambda: False):
                    disk.unlink(lock.path)
            finally:
                lock.release()
    finally:
        lock.close()
