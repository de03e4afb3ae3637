"""How the templates of reports tell figures."""

from typing import Any

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


@register.filter
def at(of: dict[str, Any] | None, name: str) -> str:
    """A figure of a mapping; nothing where nothing is known."""
    value = (of or {}).get(name)
    return "" if value is None else f"{value:,}"


@register.filter
def compared(report: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Each total beside the one of the period before."""
    now, before = report["totals"], report["previous"]["totals"]
    rows = [(label, at(now, name), at(before, name)) for label, name in _TOTALS]
    pairs = (now["lateness_ms"], before["lateness_ms"])
    return rows + [(label, at(pairs[0], name), at(pairs[1], name)) for label, name in _LATENESS]
