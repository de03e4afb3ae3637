"""The console's template tags: moments, durations, numbers, sizes, states, icons, the menu."""

from typing import Any

from django import template
from django.http import HttpRequest
from django.templatetags.static import static
from django.utils.html import format_html
from django.utils.safestring import SafeString

from postdate.console.navigation import sections_for
from queues.moments import MOMENT_MS_MAX, format_moment

register = template.Library()

_NONE = SafeString('<span class="nil">&ndash;</span>')
_UNITS_MS = (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000))
_SIZES = ("bytes", "KiB", "MiB", "GiB", "TiB")
_KIB = 1024
#: From here on a number's fraction says nothing.
_WHOLE_FROM = 100
#: What of a written moment stands under an axis.
_TICKS = {"second": (11, 19), "minute": (11, 16), "date": (5, 10)}
#: The colour of a state's word.
_TONES = {
    "scheduled": "info", "ready": "ok", "delivered": "ok", "cancelled": "", "parked": "bad",
    "running": "ok", "stuck": "bad", "not running": "bad", "queued": "", "succeeded": "ok",
    "failed": "bad", "aborted": "warn", "leased": "info", "acked": "ok", "expired": "warn",
    "retrying": "warn", "dead": "bad", "paused": "warn", "live": "ok", "revoked": "",
    "aborting": "warn", "redriven": "",
    "behind": "warn", "on time": "ok", "level": "info", "timed": "info",
    "immediate": "", "expiring": "warn", "idle": "",
}  # fmt: skip


@register.simple_tag
def icon(name: str) -> SafeString:
    """A drawing; the words beside it say what it means."""
    return format_html(
        '<svg class="icon" aria-hidden="true"><use href="{}#{}"></use></svg>',
        static("console/icons.svg"),
        name,
    )


@register.simple_tag
def moment(at_ms: int | None, show: str = "both") -> SafeString:
    """A moment: UTC as it is sent, in the viewer's zone once the script has run.

    `show` is `both` (with "in 4 m 12 s" behind it), `clock`, `exact` (to the millisecond, with the
    distance), `dated` (with its day, also today), `relative`, `coming` (the same, and "now" once it
    has come), or under an axis `second`, `minute` or `date`.
    """
    if at_ms is None:
        return _NONE
    # What lies behind the year 9999 cannot be written, and must not cost the rest of the page.
    written = format_moment(min(int(at_ms), MOMENT_MS_MAX))
    if show in _TICKS:
        begin, end = _TICKS[show]
        return format_html(
            '<time datetime="{}" data-ms="{}" data-show="{}">{}</time>',
            written,
            at_ms,
            show,
            written[begin:end],
        )
    shown = written.replace("T", " ").replace("Z", " UTC")
    if show != "exact":
        shown = shown[:19] + " UTC"
    if show in ("clock", "relative", "coming"):
        return format_html(
            '<time datetime="{}" data-ms="{}" data-show="{}">{}</time>', written, at_ms, show, shown
        )
    if show == "dated":
        return format_html(
            '<time datetime="{}" data-ms="{}" data-day>{}</time>', written, at_ms, shown
        )
    return format_html(
        '<time datetime="{}" data-ms="{}"{}><span class="clock">{}</span>'
        ' <span class="rel"></span></time>',
        written,
        at_ms,
        SafeString(" data-exact") if show == "exact" else "",
        shown,
    )


@register.simple_tag
def chip(state: str, word: str = "") -> SafeString:
    """A state's word on its colour."""
    return format_html('<span class="chip {}">{}</span>', _TONES.get(state, ""), word or state)


@register.filter
def number(value: float | None) -> Any:
    """A number with its thousands apart."""
    if value is None:
        return _NONE
    if isinstance(value, int) or value >= _WHOLE_FROM:
        return f"{value:,.0f}"
    return f"{value:,.1f}"


@register.filter
def duration(length_ms: float | None) -> Any:
    """A length of time in its two largest units."""
    if length_ms is None:
        return _NONE
    whole = int(length_ms)
    if whole < _UNITS_MS[-1][1]:
        return f"{whole} ms"
    if whole < 10 * _UNITS_MS[-1][1]:
        return f"{whole / 1000:.1f}".removesuffix(".0") + " s"
    parts, rest = [], whole
    for name, unit_ms in _UNITS_MS:
        count, rest = divmod(rest, unit_ms)
        if count:
            parts.append(f"{count} {name}")
    return " ".join(parts[:2])


@register.filter
def size(count: float | None) -> Any:
    """A size in bytes, in its largest fitting unit."""
    if count is None:
        return _NONE
    value = float(count)
    for name in _SIZES:
        if abs(value) < _KIB or name == _SIZES[-1]:
            return f"{value:,.0f} {name}" if name == _SIZES[0] else f"{value:,.1f} {name}"
        value /= _KIB
    return _NONE


@register.filter
def words(name: str) -> str:
    """A name of the wire as people write it: `retry_delivered` as `retry delivered`."""
    return name.replace("_", " ")


@register.filter
def plural(count: int, noun: str) -> str:
    """A count with its noun: `1 message`, `2 messages`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


@register.inclusion_tag("console/menu.html", takes_context=True)
def menu(context: dict[str, Any]) -> dict[str, Any]:
    """The menu of this person."""
    request: HttpRequest | None = context.get("request")
    return {"sections": sections_for(request) if request is not None else []}
