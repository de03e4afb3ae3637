"""The form of a group: what it subscribes to, how it shares, how it tries again."""

from collections.abc import Mapping
from typing import Any

from django import forms

from queues.limits import RETRIES_DEFAULT, RETRIES_MAX, RETRY_QUEUES_MAX
from queues.selectors.control import GroupView
from queues.services.groups import GroupPlan
from queues.store.consuming import Subscription

_POLICIES = [
    ("levels", "by the delay levels: first after level 3, each time one level more"),
    ("exponential", "each time longer by a factor"),
    ("custom", "after delays of its own, the last of them repeated"),
]
_FACTOR_MIN, _FACTOR_MAX = 1.0, 100.0


class GroupForm(forms.Form):
    """A group as a person declares it."""

    name = forms.CharField(help_text="Letters, digits, _ and -.")
    subscriptions = forms.CharField(
        widget=forms.Textarea(attrs={"rows": 4, "spellcheck": "false"}),
        help_text="One topic a line; after a colon the tags that it takes: orders: paid || due",
    )
    mode = forms.ChoiceField(
        choices=[
            ("clustering", "one consumer each"),
            ("broadcasting", "every consumer each"),
        ],
        label="A message goes to",
    )
    start_from = forms.ChoiceField(
        choices=[("latest", "what comes from now on"), ("earliest", "what is there already, too")],
        label="Begins with",
    )
    ordered = forms.BooleanField(
        required=False,
        label="In order: one message of a sharding key at a time",
    )
    policy = forms.ChoiceField(
        required=False,
        choices=_POLICIES,
        widget=forms.RadioSelect,
        initial="levels",
        label="What failed is tried again",
    )
    first = forms.CharField(
        required=False, initial="5s", label="First after", help_text="Of a factor: such as 5s."
    )
    factor = forms.FloatField(
        required=False,
        min_value=_FACTOR_MIN,
        max_value=_FACTOR_MAX,
        initial=2,
        help_text="By which each wait is longer.",
    )
    longest = forms.CharField(
        required=False, initial="2h", label="At the longest after", help_text="Of a factor."
    )
    delays = forms.CharField(
        required=False, label="Delays of its own", help_text="With spaces: 10s 1m 5m 1h."
    )
    max_retries = forms.IntegerField(
        min_value=0,
        max_value=RETRIES_MAX,
        initial=RETRIES_DEFAULT,
        help_text="Then it is a dead letter.",
    )
    retry_queues = forms.IntegerField(
        required=False,
        min_value=1,
        max_value=RETRY_QUEUES_MAX,
        initial=1,
        help_text="More let more consumers work on retries side by side.",
    )

    def plan(self, before: GroupView | None = None) -> GroupPlan:
        """What the service takes; what a form does not say stays as it was."""
        fields = self.cleaned_data
        lines = [line for line in fields["subscriptions"].splitlines() if line.strip()]
        pairs = [line.partition(":") for line in lines]
        return GroupPlan(
            subscriptions=[
                Subscription(topic=topic.strip(), tags=tags.strip() or "*")
                for topic, _, tags in pairs
            ],
            mode=fields["mode"],
            ordered=fields["ordered"],
            max_retries=fields["max_retries"],
            retry_queues=fields["retry_queues"] or (before.retry_queues if before else 1),
            retry_policy=self._policy(before),
            start_from=fields["start_from"],
        )

    def _policy(self, before: GroupView | None) -> dict[str, Any]:
        fields = self.cleaned_data
        if before is not None and not fields["policy"]:
            return dict(before.retry_policy)
        if fields["policy"] == "exponential":
            return {
                "type": "exponential",
                "initial": fields["first"] or "5s",
                "factor": fields["factor"] or 2.0,
                "max": fields["longest"] or "2h",
            }
        if fields["policy"] == "custom":
            return {"type": "custom", "delays": fields["delays"].split()}
        return {"type": "levels"}


def told(group: GroupView) -> dict[str, Any]:
    """A group as the form shows it."""
    policy = group.retry_policy
    shown: dict[str, Any] = {
        name: getattr(group, name)
        for name in ("name", "mode", "ordered", "max_retries", "retry_queues", "start_from")
    }
    shown["subscriptions"] = "\n".join(
        one.topic if one.tags == "*" else f"{one.topic}: {one.tags}" for one in group.subscriptions
    )
    shown["policy"] = policy["type"]
    if policy["type"] == "exponential":
        shown |= {"first": policy["initial"], "factor": policy["factor"]}
        shown["longest"] = policy["max"]
    if policy["type"] == "custom":
        shown["delays"] = " ".join(policy["delays"])
    return shown


def told_policy(policy: Mapping[str, Any]) -> str:
    """How a group tries again, in words."""
    if policy["type"] == "exponential":
        factor = f"{policy['factor']:g}"
        return (
            f"first after {policy['initial']}, then {factor} times as long, up to {policy['max']}"
        )
    if policy["type"] == "custom":
        return f"after {', '.join(policy['delays'])}"
    return "by the delay levels"
