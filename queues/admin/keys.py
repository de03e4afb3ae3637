"""API keys in the console: issued with the secret shown once, revoked, never edited or deleted."""

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest

from queues.admin.pages import acting
from queues.models import ApiKey
from queues.problems import Problem
from queues.quotas import BURST_S_DEFAULT, Quotas
from queues.services.keys import issue_key, revoke_key

#: What `Quotas` holds.
_LIMITS = ("requests_per_second", "messages_per_second", "messages_per_day", "burst_seconds")


class ApiKeyForm(forms.ModelForm):  # type: ignore[type-arg]  # as above
    """What a new key may be used for."""

    scopes = forms.MultipleChoiceField(
        choices=ApiKey.Scope.choices,
        initial=list(ApiKey.ALL_SCOPES),
        widget=forms.CheckboxSelectMultiple,
    )
    topic_patterns = forms.CharField(
        initial="*", widget=forms.Textarea(attrs={"rows": 2}), help_text="One a line; * is any."
    )
    group_patterns = forms.CharField(
        initial="*", widget=forms.Textarea(attrs={"rows": 2}), help_text="One a line; * is any."
    )

    burst_seconds = forms.IntegerField(required=False, initial=BURST_S_DEFAULT, min_value=1)

    class Meta:
        model = ApiKey
        fields = ("name", *_LIMITS, "expires_at")


@admin.register(ApiKey)
class ApiKeyAdmin(admin.ModelAdmin):  # type: ignore[type-arg]  # not generic in Django
    """API keys."""

    list_display = ("name", "prefix", "scopes", "created_at", "last_used_at", "revoked_at")
    search_fields = ("name", "prefix")
    actions = ("revoke",)

    def get_form(
        self, request: HttpRequest, obj: Any = None, change: bool = False, **options: Any
    ) -> Any:
        if obj is None:
            options["form"] = ApiKeyForm
            rights = ("scopes", "topic_patterns", "group_patterns")
            options["fields"] = ("name", *rights, *_LIMITS, "expires_at")
        return super().get_form(request, obj, change, **options)

    def save_model(self, request: HttpRequest, obj: ApiKey, form: Any, change: bool) -> None:
        del change
        fields = form.cleaned_data
        issued = issue_key(
            name=fields["name"],
            by=acting(request),
            scopes=fields["scopes"],
            topic_patterns=fields["topic_patterns"].split(),
            group_patterns=fields["group_patterns"].split(),
            quotas=Quotas(**{name: fields[name] for name in _LIMITS if fields[name]}),
            expires_at=fields["expires_at"],
        )
        obj.pk = issued.key.pk
        messages.warning(request, f"Note the key now, it is never shown again: {issued.secret}")

    def changeform_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        try:
            return super().changeform_view(request, *args, **kwargs)
        except Problem as problem:
            messages.error(request, problem.detail)
            return self.response_post_save_add(request, ApiKey())

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        del request, obj
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        del request, obj
        return False

    def has_revoke_permission(self, request: HttpRequest) -> bool:
        """Whether the person may revoke keys."""
        return request.user.has_perm("queues.change_apikey")

    @admin.action(description="Revoke", permissions=["revoke"])
    def revoke(self, request: HttpRequest, queryset: QuerySet[ApiKey]) -> None:
        revoked = sum(revoke_key(key_id=key.pk, by=acting(request)) for key in queryset)
        messages.success(request, f"{revoked} keys are revoked.")
