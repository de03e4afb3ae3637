"""Rules: how a group tries failed messages again, by what was declared."""

from queues import wires
from queues.durations import parse_duration
from queues.models import Group
from queues.selectors import control
from queues.selectors.control import GroupView
from queues.store.retryrules import RetryRule

#: By group: its view, and the rule that was made of it.
_rules: dict[str, tuple[GroupView, RetryRule]] = {}


def rule_of(group: GroupView) -> RetryRule:
    """How the group tries again."""
    known = _rules.get(group.name)
    if known is not None and known[0] is group:
        return known[1]
    rule = _make_rule(group)
    _rules[group.name] = group, rule
    return rule


def find_rule(name: str) -> RetryRule | None:
    """How a group tries again, by its name; None for one that never does (broadcasting, none)."""
    group = control.find_group(name)
    if group is None or group.mode == Group.Mode.BROADCASTING:
        return None
    return rule_of(group)


def _make_rule(group: GroupView) -> RetryRule:
    policy, levels = group.retry_policy, wires.wiring().get_rules().levels
    delays_ms, growth = None, None
    if policy.get("type") == "custom":
        delays_ms = tuple(_ms(delay) for delay in policy["delays"])
    elif policy.get("type") == "exponential":
        growth = (_ms(policy["initial"]), float(policy["factor"]), _ms(policy["max"]))
    return RetryRule(levels, group.max_retries, group.retry_queues, delays_ms, growth)


def _ms(duration: str) -> int:
    # It was checked when the group was declared.
    return parse_duration(duration) or 1
