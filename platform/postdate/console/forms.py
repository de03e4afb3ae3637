"""What people type into the console, and how it becomes what the services take."""

from django import forms

from queues import wires
from queues.admin.pages import read_moment
from queues.codes import Code
from queues.problems import Problem
from queues.services.delays import AT_ONCE, Due, resolve_delay

#: A moment as the browser's picker writes it; with the script a hidden `<name>_ms` says it exactly.
MOMENT_INPUT = forms.TextInput(attrs={"type": "datetime-local", "step": "1"})
MOMENT_HELP = "In the time zone that times are shown in."


class WhenForm(forms.Form):
    """When a message shall arrive."""

    delay = forms.CharField(
        required=False, label="After", help_text="A duration from now, such as 90s, 1h30m or 2d."
    )
    at = forms.CharField(
        required=False,
        label="Or at",
        widget=MOMENT_INPUT,
        help_text=MOMENT_HELP,
    )

    def due_ms(self, now_ms: int) -> int:
        """The moment that was asked for; raises a problem in words."""
        due = resolve_delay(
            delay_level=None,
            delay=self.cleaned_data["delay"] or None,
            delay_ms=None,
            delay_seconds=None,
            deliver_at=read_moment(self.data, "at"),
            now_ms=now_ms,
            rules=wires.wiring().get_rules(),
        )
        if due is None:
            raise Problem(Code.FIELD_REQUIRED, "Say after how long, or at which moment.")
        return now_ms if due.due_ms is None else due.due_ms

    def due(self, now_ms: int) -> Due:
        """The same, or at once where nothing is said."""
        due = resolve_delay(
            delay_level=self.cleaned_data.get("level"),
            delay=self.cleaned_data["delay"] or None,
            delay_ms=None,
            delay_seconds=None,
            deliver_at=read_moment(self.data, "at"),
            now_ms=now_ms,
            rules=wires.wiring().get_rules(),
        )
        return AT_ONCE if due is None else due


class SendForm(WhenForm):
    """A message that a person sends."""

    topic = forms.CharField(widget=forms.TextInput(attrs={"list": "topics", "autocomplete": "off"}))
    body = forms.CharField(widget=forms.Textarea(attrs={"rows": 6, "spellcheck": "false"}))
    level = forms.IntegerField(required=False, label="Or delay level", min_value=1)
    tag = forms.CharField(required=False)
    keys = forms.CharField(required=False, help_text="Several are separated by spaces.")
    properties = forms.CharField(
        required=False,
        widget=forms.Textarea(attrs={"rows": 2, "spellcheck": "false"}),
        help_text="One name=value a line.",
    )
    field_order = ("topic", "body", "delay", "at", "level", "tag", "keys", "properties")

    def property_map(self) -> dict[str, str]:
        """The properties by name."""
        lines = self.cleaned_data["properties"].splitlines()
        pairs = [line.partition("=") for line in lines if line.strip()]
        wrong = [name for name, equals, _ in pairs if not equals]
        if wrong:
            raise Problem(Code.FIELD_INVALID, f"Write name=value; {wrong[0][:40]!r} has no value.")
        return {name.strip(): value.strip() for name, _, value in pairs}
