"""People: who may come in, and which role they have; made and changed in Django's own pages."""

from typing import Any

from django import forms
from django.contrib import admin
from django.contrib.auth.admin import UserAdmin
from django.contrib.auth.models import User
from django.http import HttpRequest

from postdate.console.pages import Context, page

_PAGE = 100


class PeopleAdmin(UserAdmin):  # type: ignore[type-arg]  # not generic in Django
    """Users, with the roles viewer, operator and admin; single permissions for special cases."""

    list_display = ("username", "email", "roles", "is_active", "is_superuser", "last_login")
    list_filter = ()
    filter_horizontal = ()
    fieldsets = (
        (None, {"fields": ("username", "password")}),
        ("Who it is", {"fields": ("first_name", "last_name", "email")}),
        (
            "What they may do",
            {"fields": ("is_active", "is_staff", "groups", "is_superuser", "user_permissions")},
        ),
    )

    @admin.display(description="Roles")
    def roles(self, user: User) -> str:
        return ", ".join(group.name for group in user.groups.all()) or "none"

    def get_form(
        self, request: HttpRequest, obj: Any = None, change: bool = False, **options: Any
    ) -> Any:
        form = super().get_form(request, obj, change=change, **options)
        for name, words in (("groups", "Roles"), ("is_staff", "May enter the console")):
            if name in form.base_fields:
                form.base_fields[name].label = words
        return form

    def formfield_for_manytomany(self, db_field: Any, request: HttpRequest, **options: Any) -> Any:
        if db_field.name == "groups":
            options["widget"] = forms.CheckboxSelectMultiple
        return super().formfield_for_manytomany(db_field, request, **options)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        """Only a superuser makes superusers, or hands out what no role holds."""
        del obj
        return () if request.user.is_superuser else ("is_superuser", "user_permissions", "groups")


@page("console/people.html", permission="auth.view_user")
def people_page(request: HttpRequest) -> Context:
    """Everybody who may log in, or once might."""
    wanted = request.GET.get("q", "").strip()
    after = request.GET.get("after", "")
    found = User.objects.filter(username__icontains=wanted).order_by("username")
    rows = list(found.filter(username__gt=after).prefetch_related("groups")[: _PAGE + 1])
    return {
        "title": "People",
        "lead": "Who may enter the console, and as what. Programs have API keys instead.",
        "rows": [_told(user) for user in rows[:_PAGE]],
        "count": found.count(),
        "query": wanted,
        "after": rows[_PAGE - 1].username if len(rows) > _PAGE else "",
        "is_later_page": bool(after),
    }


def _told(user: User) -> dict[str, Any]:
    seen = user.last_login
    roles = [group.name for group in user.groups.all()]
    return {
        "user": user,
        "roles": ["superuser", *roles] if user.is_superuser else roles,
        "may_enter": user.is_active and user.is_staff,
        "seen_ms": None if seen is None else round(seen.timestamp() * 1000),
    }


admin.site.unregister(User)
admin.site.register(User, PeopleAdmin)
admin.site.site_header = admin.site.site_title = "Postdate"
