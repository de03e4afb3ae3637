"""Health: whether this server can do its work, check by check."""

from dataclasses import dataclass
from typing import Any

from queues import wires
from queues.store import StoreError

#: A loop this far behind what is due is not healthy.
BEHIND_MS_MAX = 5000


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at."""

    #: `store`, `disk`, `loops`, `behind`.
    name: str
    ok: bool
    #: What was seen, in a sentence.
    detail: str


def readiness() -> list[Check]:
    """Every check, the good ones too."""
    wiring = wires.wiring()
    try:
        store = wiring.get_store()
        health = store.health()
        loops = wiring.get_schedule().loops()
    except (StoreError, OSError) as error:
        return [Check("store", ok=False, detail=f"The store cannot be opened: {error}")]
    return [_store_check(health), _disk_check(health), *_loop_checks(loops)]


def _store_check(health: dict[str, Any]) -> Check:
    failed = health["reason"] == "store_failed"
    detail = "A write or sync failed; see the log." if failed else "The log takes records."
    return Check("store", ok=not failed, detail=detail)


def _disk_check(health: dict[str, Any]) -> Check:
    full = health["reason"] == "store_full"
    detail = f"{health['free_bytes']} bytes are free" + ("; sends are refused." if full else ".")
    return Check("disk", ok=not full, detail=detail)


def _loop_checks(loops: list[wires.LoopState]) -> list[Check]:
    checks = []
    for loop in loops:
        if loop.holder is None:
            checks.append(Check(f"loop:{loop.name}", ok=False, detail="Nobody runs it."))
        elif loop.stuck:
            checks.append(Check(f"loop:{loop.name}", ok=False, detail=f"{loop.holder} is stuck."))
        else:
            behind = loop.behind_ms > BEHIND_MS_MAX
            detail = f"{loop.holder} runs it, {loop.behind_ms} ms behind."
            checks.append(Check(f"loop:{loop.name}", ok=not behind, detail=detail))
    return checks
