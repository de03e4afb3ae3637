"""Topics, groups, operations and the audit log in the console; changes go through the services."""

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest

from queues.admin.pages import ReadOnlyAdmin, acting, attempt
from queues.models import AuditEntry, Group, Operation, Topic
from queues.problems import Problem
from queues.selectors import control
from queues.selectors.backlog import lag_of
from queues.services import groups, topics


class TopicForm(forms.ModelForm):  # type: ignore[type-arg]  # as above
    """A topic; what the services refuse is said beside the form."""

    class Meta:
        model = Topic
        fields = ("name", "queues")


@admin.register(Topic)
class TopicAdmin(admin.ModelAdmin):  # type: ignore[type-arg]  # not generic in Django
    """Topics: made, widened, deleted."""

    form = TopicForm
    list_display = ("name", "queues", "created_at")
    search_fields = ("name",)
    actions = ("purge_and_delete",)

    def get_readonly_fields(
        self, request: HttpRequest, obj: Topic | None = None
    ) -> tuple[str, ...]:
        del request
        return () if obj is None else ("name", "created_at")

    def save_model(self, request: HttpRequest, obj: Topic, form: Any, change: bool) -> None:
        del form, change
        declared = topics.declare_topic(name=obj.name, queues=obj.queues, by=acting(request))
        obj.pk = Topic.objects.only("pk").get(name=declared.topic.name).pk

    def changeform_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        try:
            return super().changeform_view(request, *args, **kwargs)
        except Problem as problem:
            messages.error(request, problem.detail)
            return self.response_post_save_add(request, Topic())

    def delete_model(self, request: HttpRequest, obj: Topic) -> None:
        topics.delete_topic(name=obj.name, purge=False, by=acting(request))

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Topic]) -> None:
        for topic in queryset:
            self.delete_model(request, topic)

    def delete_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        try:
            return super().delete_view(request, *args, **kwargs)
        except Problem as problem:
            messages.error(request, problem.detail)
            return self.response_post_save_add(request, Topic())

    @admin.action(description="Delete, and cancel what waits")
    def purge_and_delete(self, request: HttpRequest, queryset: QuerySet[Topic]) -> None:
        for topic in queryset:
            name = topic.name

            def purge(name: str = name) -> None:
                topics.delete_topic(name=name, purge=True, by=acting(request))

            attempt(request, purge, f"{name} is deleted; what waited for it is cancelled.")


@admin.register(Group)
class GroupAdmin(ReadOnlyAdmin):
    """Groups: looked at, paused, resumed; they are declared by the programs that use them."""

    list_display = ("name", "mode", "paused", "topics", "waiting", "created_at")
    list_filter = ("paused",)
    search_fields = ("name",)
    actions = ("pause", "resume")

    @admin.display(description="Topics")
    def topics(self, group: Group) -> str:
        return ", ".join(subscription["topic"] for subscription in group.subscriptions)

    @admin.display(description="Ready / leased")
    def waiting(self, group: Group) -> str:
        try:
            found = lag_of(control.get_group(group.name))
        except Problem:
            return "-"
        return f"{sum(lag.ready for lag in found)} / {sum(lag.leased for lag in found)}"

    def has_pause_permission(self, request: HttpRequest) -> bool:
        """Whether the person may pause and resume."""
        return request.user.has_perm("queues.change_group")

    @admin.action(description="Pause", permissions=["pause"])
    def pause(self, request: HttpRequest, queryset: QuerySet[Group]) -> None:
        self._set_paused(request, queryset, paused=True)

    @admin.action(description="Resume", permissions=["pause"])
    def resume(self, request: HttpRequest, queryset: QuerySet[Group]) -> None:
        self._set_paused(request, queryset, paused=False)

    def _set_paused(self, request: HttpRequest, found: QuerySet[Group], *, paused: bool) -> None:
        for group in found:
            groups.set_paused(name=group.name, paused=paused, by=acting(request))
        word = "paused" if paused else "running"
        messages.success(request, f"{len(found)} groups are {word}.")


@admin.register(AuditEntry)
class AuditEntryAdmin(ReadOnlyAdmin):
    """The audit log."""

    list_display = ("at", "by", "action", "subject")
    list_filter = ("action",)
    search_fields = ("by", "subject")


@admin.register(Operation)
class OperationAdmin(ReadOnlyAdmin):
    """Long work and how far it is."""

    list_display = ("id", "kind", "state", "done", "total", "by", "created_at")
    list_filter = ("state", "kind")
