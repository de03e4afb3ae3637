"""People in Django's own pages: who may come in, and which role they have."""

from typing import Any

from django import forms
from django.contrib import admin
from django.contrib.auth.admin import UserAdmin
from django.contrib.auth.models import User
from django.http import HttpRequest


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


admin.site.unregister(User)
admin.site.register(User, PeopleAdmin)
admin.site.site_header = admin.site.site_title = "Postdate"
