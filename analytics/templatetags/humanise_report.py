"""How the templates of reports tell figures."""

from typing import Any, Final

from django import template

register = template.Library()

_TOTALS = (
    ("Handed over", "delivered"), ("Early", "early"), ("Later than the objective", "late_over_slo"),
    ("Without a delay", "immediate"), ("Sent", "sent"), ("Cancelled", "cancelled"),
    ("Rescheduled", "rescheduled"), ("Restored", "restored"), ("Parked", "parked"),
    ("Retried", "retried"), ("Dead letters", "dead"), ("Redriven", "redriven"),
)  # fmt: skip
_LATENESS = (
    ("p50, ms", "p50"), ("p90, ms", "p90"), ("p95, ms", "p95"), ("p99, ms", "p99"),
    ("p99.9, ms", "p999"), ("Latest, ms", "max"),
)  # fmt: skip
_SUMMARY: Final = (
    ("Half came within", "p50"), ("99 % within", "p99"), ("99.9 % within", "p999"),
    ("Latest", "max"),
)  # fmt: skip
_UNITS: Final = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1_000, "s"))


@register.filter
def at(of: dict[str, Any] | None, name: str) -> str:
    """A figure of a mapping; nothing where nothing is known."""
    value = (of or {}).get(name)
    return "" if value is None else f"{value:,}"


def spoken(value_ms: int | None) -> str:
    """A duration as people say it; or that it is not known."""
    if value_ms is None:
        return "not known"
    for unit_ms, unit in _UNITS:
        if value_ms >= unit_ms:
            return f"{value_ms / unit_ms:.3g} {unit}"
    return f"{value_ms} ms"


@register.filter
def minute(moment: str) -> str:
    """A moment of the report as people read it: the minute is enough, periods have whole ones."""
    return moment[:16].replace("T", "\N{NO-BREAK SPACE}")


@register.filter
def summary(report: dict[str, Any]) -> list[dict[str, str]]:
    """What a reader wants to know first, each beside the period before, and whether it is bad."""
    now, before = report["totals"], report["previous"]["totals"]
    late = now.get("late_share")
    found = [
        _told("Handed over", at(now, "delivered"), at(before, "delivered")),
        *(
            _told(label, spoken(now["lateness_ms"][name]), spoken(before["lateness_ms"][name]))
            for label, name in _SUMMARY
        ),
        _told("Later than the objective", _share(late), _share(before.get("late_share"))),
    ]
    for label, name in (("Early", "early"), ("Retried", "retried"), ("Dead letters", "dead")):
        is_bad = name != "retried" and bool(now.get(name))
        found.append(_told(label, at(now, name), at(before, name), is_bad=is_bad))
    return found


def _told(label: str, now: str, before: str, *, is_bad: bool = False) -> dict[str, str]:
    return {"label": label, "now": now, "before": before, "tone": "bad" if is_bad else ""}


def _share(share: float | None) -> str:
    return "not known" if share is None else f"{100 * share:.3g} %"


@register.filter
def compared(report: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Each total beside the one of the period before."""
    now, before = report["totals"], report["previous"]["totals"]
    rows = [(label, at(now, name), at(before, name)) for label, name in _TOTALS]
    pairs = (now["lateness_ms"], before["lateness_ms"])
    return rows + [(label, at(pairs[0], name), at(pairs[1], name)) for label, name in _LATENESS]
