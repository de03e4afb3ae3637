"""Assembling a report: from sums to the JSON that the API, the console and the files show."""

from datetime import UTC, datetime
from typing import Any, Final
from zoneinfo import ZoneInfo

from analytics.buckets import upper_edge
from analytics.jobs.summing import ROWS_MAX, Row, Sums
from analytics.partials.manifest import Gap, Manifest
from analytics.transforms import QUANTILES

_KEYS: Final = ("topic", "kind", "level", "group", "attempt", "reason")


def assemble(
    sums: Sums, about: dict[str, Any], manifest: Manifest, *, read_from: int = 0
) -> dict[str, Any]:
    """The whole report."""
    from_ms, to_ms = about["range"]["from_ms"], about["range"]["to_ms"]
    before_ms = 2 * from_ms - to_ms
    return {
        **about,
        "range": moments(from_ms, to_ms, "from", "to"),
        "totals": totals(sums.current),
        "previous": {
            "range": moments(before_ms, from_ms, "from", "to"),
            "totals": totals(sums.previous),
        },
        **_lateness(sums, ZoneInfo(about["zone"])),
        **_consumption_and_failures(sums),
        **_changes(sums),
        "log": _log(manifest, read_from),
        "gaps": [_gap(one) for one in manifest.gaps if touches(one, before_ms, to_ms)],
    }


def _lateness(sums: Sums, zone: ZoneInfo) -> dict[str, Any]:
    rows = sorted(_rows(sums, "delivered", "row"), key=lambda row: -row["n"])
    by_doubling = sorted(sums.doublings, key=lambda row: (row["hour_ms"], row["doubling"]))
    return {
        "rows": [_told(row, zone) for row in sorted(rows[:ROWS_MAX], key=_order)],
        "rows_total": len(rows),
        "by_hour": [_told(row, zone) for row in _rows(sums, "delivered", "hour")],
        "by_topic": [_told(row) for row in _worst(sums, "topic")],
        "by_level": [_told(row) for row in _rows(sums, "delivered", "level")],
        "distribution": [_doubling(row, zone) for row in by_doubling],
        "throughput": throughput(sums, zone),
        "hot_slots": [
            {"at": _moment(row["at_ms"]), "at_ms": row["at_ms"], "n": row["n"]}
            for row in sums.hot_slots
        ],
    }


def _consumption_and_failures(sums: Sums) -> dict[str, Any]:
    return {
        "pickup": _consumption(sums, "received"),
        "end_to_end": _consumption(sums, "acked"),
        "retries": [_counted(row) for row in _rows(sums, "retried", "cause")],
        "retry_lateness": [_durations(row) for row in _rows(sums, "redelivered", "group")],
        "dead_letters": [_counted(row) for row in _rows(sums, "dead", "cause")],
        "redriven": [_counted(row) for row in _rows(sums, "redriven", "group")],
    }


def _changes(sums: Sums) -> dict[str, Any]:
    return {
        "asked_delays": [_durations(row) for row in _rows(sums, "sent", "topic")],
        "cancelled": [_durations(row) for row in _rows(sums, "cancelled", "topic")],
        "rescheduled": [_durations(row) for row in _rows(sums, "moved", "topic")],
        "parked": [_counted(row) for row in _rows(sums, "parked", "cause")],
    }


def _log(manifest: Manifest, read_from: int) -> Row:
    """What was read, and what of it could not be."""
    return {
        "read_from": read_from,
        "read_to": manifest.end or 0,
        "records": sum(one.records for one in manifest.partials),
        "damaged": sum(one.damaged for one in manifest.partials),
        "damages": [
            {"log_offset": at, "reason": why}
            for one in manifest.partials
            for at, why in one.damages
        ][:20],
    }


def totals(of: dict[tuple[str, str], list[Row]]) -> dict[str, Any]:
    """The figures of a whole period."""
    delivered = _only(of, "delivered")
    told = {
        "delivered": _n(delivered),
        "early": (delivered or {}).get("early", 0),
        "late_over_slo": (delivered or {}).get("late", 0),
        "cancelled": _n(_only(of, "cancelled")),
        "retried": _n(_only(of, "retried")),
        "dead": _n(_only(of, "dead")),
        "lateness_ms": _quantiles(delivered),
        "lateness_known": (delivered or {}).get("known", 0),
        "immediate": _n(_only(of, "immediate")),
        "sent": _n(_only(of, "sent")),
        "rescheduled": _n(_only(of, "moved")),
        "parked": _n(_only(of, "parked")),
        "restored": _n(_only(of, "restored")),
        "redelivered": _n(_only(of, "redelivered")),
        "redriven": _n(_only(of, "redriven")),
    }
    known = told["lateness_known"]
    told["late_share"] = told["late_over_slo"] / known if known else None
    return told


def throughput(sums: Sums, zone: ZoneInfo) -> list[Row]:
    """Messages in and out by hour."""
    hours: dict[int, Row] = {}
    columns = {
        "in": ("sent",),
        "out": ("delivered", "immediate"),
        "retried": ("retried",),
        "dead": ("dead",),
    }
    for name, facts in columns.items():
        for fact in facts:
            for row in _rows(sums, fact, "hour"):
                hour = hours.setdefault(row["hour_ms"], dict.fromkeys(columns, 0))
                hour[name] += row["n"]
    return [
        {"hour": _moment(at_ms, zone), "hour_ms": at_ms, **hours[at_ms]} for at_ms in sorted(hours)
    ]


def touches(gap: Gap, from_ms: int, to_ms: int) -> bool:
    """Whether what a gap misses may belong to the time [from, to)."""
    begins_after = gap.after_ms is not None and gap.after_ms >= to_ms
    ends_before = gap.before_ms is not None and gap.before_ms < from_ms
    return not (begins_after or ends_before)


def moments(first_ms: int, last_ms: int, first: str, last: str) -> Row:
    """Two moments, each with its twin in ms."""
    return {
        first: _moment(first_ms), f"{first}_ms": first_ms,
        last: _moment(last_ms), f"{last}_ms": last_ms,
    }  # fmt: skip


def _moment(at_ms: int, zone: ZoneInfo | None = None) -> str:
    moment = datetime.fromtimestamp(at_ms // 1000, UTC)
    if zone is not None and zone.key != "UTC":
        told = moment.astimezone(zone).replace(microsecond=at_ms % 1000 * 1000)
        return told.isoformat(timespec="milliseconds")
    return moment.strftime("%Y-%m-%dT%H:%M:%S") + f".{at_ms % 1000:03d}Z"


def _rows(sums: Sums, fact: str, name: str) -> list[Row]:
    return sums.current.get((fact, name), [])


def _only(of: dict[tuple[str, str], list[Row]], fact: str) -> Row | None:
    rows = of.get((fact, "total"))
    return rows[0] if rows else None


def _n(row: Row | None) -> int:
    return row["n"] if row else 0


def _order(row: Row) -> tuple[Any, ...]:
    return row["hour_ms"], row["topic"], row["kind"], row["level"]


def _worst(sums: Sums, name: str) -> list[Row]:
    rows = _rows(sums, "delivered", name)
    return sorted(rows, key=lambda row: (-(row["p99"] or 0), -row["n"], row["topic"]))


def _quantiles(row: Row | None) -> dict[str, int | None]:
    return {name: (row or {}).get(name) for name in (*QUANTILES, "max")}


def _keys(row: Row) -> Row:
    return {key: row[key] for key in _KEYS if row[key] not in ("", 0)}


def _told(row: Row, zone: ZoneInfo | None = None) -> Row:
    """A row of lateness."""
    told = _keys(row)
    if zone is not None:
        told |= {"hour": _moment(row["hour_ms"], zone), "hour_ms": row["hour_ms"]}
    return told | {
        "delivered": row["n"],
        "early": row["early"],
        "late_over_slo": row["late"],
        "lateness_ms": _quantiles(row),
    }


def _counted(row: Row) -> Row:
    return _keys(row) | {"n": row["n"]}


def _durations(row: Row) -> Row:
    mean = row["total_ms"] / row["known"] if row["known"] else None
    return _counted(row) | {"ms": _quantiles(row) | {"mean": mean}}


def _consumption(sums: Sums, fact: str) -> Row:
    names = {1: "first", 2: "later"}
    rows = [
        _durations(row) | {"attempt": names[row["attempt"]]}
        for name in ("total", "group")
        for row in _rows(sums, fact, name)
    ]
    return {
        "recorded": bool(rows),
        "totals": [row for row in rows if "group" not in row],
        "rows": [row for row in rows if "group" in row],
    }


def _doubling(row: Row, zone: ZoneInfo) -> Row:
    doubling = row["doubling"]
    least = doubling if doubling < 1 else 1 << (doubling - 1)
    most = doubling if doubling < 1 else (1 << doubling) - 1
    return {
        "hour": _moment(row["hour_ms"], zone), "hour_ms": row["hour_ms"],
        "from_ms": least, "to_ms": max(most, upper_edge(-1)), "n": row["n"],
    }  # fmt: skip


def _gap(gap: Gap) -> Row:
    return {
        "start": gap.start,
        "end": gap.end,
        "after_ms": gap.after_ms,
        "before_ms": gap.before_ms,
        "after": None if gap.after_ms is None else _moment(gap.after_ms),
        "before": None if gap.before_ms is None else _moment(gap.before_ms),
    }
