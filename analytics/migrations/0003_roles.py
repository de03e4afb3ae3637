"""What the roles of the console may do with reports and their schedules."""

from django.apps.registry import Apps
from django.contrib.auth.management import create_permissions
from django.contrib.contenttypes.management import create_contenttypes
from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

_MAY = {
    "viewer": ["view_reportrun"],
    "operator": ["view_reportrun", "add_reportrun", "view_reportschedule"],
    "admin": [
        "view_reportrun",
        "add_reportrun",
        "view_reportschedule",
        "add_reportschedule",
        "change_reportschedule",
        "delete_reportschedule",
    ],
}


def give(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    alias = schema_editor.connection.alias
    app = apps.get_app_config("analytics")
    app.models_module = True  # type: ignore[assignment]
    create_contenttypes(app, verbosity=0, using=alias, apps=apps)
    create_permissions(app, verbosity=0, using=alias, apps=apps)
    app.models_module = None
    roles = apps.get_model("auth", "Group").objects.using(alias)
    permissions = apps.get_model("auth", "Permission").objects.using(alias)
    for name, codenames in _MAY.items():
        for role in roles.filter(name=name):
            found = permissions.filter(content_type__app_label="analytics", codename__in=codenames)
            role.permissions.add(*found)


class Migration(migrations.Migration):
    dependencies = [
        ("analytics", "0002_usual_schedules"),
        ("queues", "0005_roles"),
    ]

    operations = [migrations.RunPython(give, migrations.RunPython.noop)]
