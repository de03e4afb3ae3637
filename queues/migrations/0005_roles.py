"""What Django's permissions hang on, and the roles that operators are given: viewer, operator, admin."""

from django.apps.registry import Apps
from django.contrib.auth.management import create_permissions
from django.contrib.contenttypes.management import create_contenttypes
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

_VIEWER = [
    "queues.view_message", "queues.view_topic", "queues.view_group", "queues.view_operation",
]  # fmt: skip
_OPERATOR = [
    *_VIEWER, "queues.view_body", "queues.send_message", "queues.change_message",
    "queues.bulk_message", "queues.change_operation", "queues.operate_group", "queues.add_topic",
    "queues.change_topic", "queues.add_group", "queues.change_group", "queues.view_auditentry",
]  # fmt: skip
_ADMIN = [
    *_OPERATOR, "queues.delete_topic", "queues.delete_group", "queues.view_apikey",
    "queues.add_apikey", "queues.change_apikey", "auth.view_user", "auth.add_user",
    "auth.change_user", "auth.delete_user", "auth.view_group",
]  # fmt: skip
ROLES = {"viewer": _VIEWER, "operator": _OPERATOR, "admin": _ADMIN}


def make_roles(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    alias = schema_editor.connection.alias
    # Django makes permissions after all migrations; the roles need them now.
    for label in ("queues", "auth"):
        app = apps.get_app_config(label)
        app.models_module = True  # type: ignore[assignment]
        create_contenttypes(app, verbosity=0, using=alias, apps=apps)
        create_permissions(app, verbosity=0, using=alias, apps=apps)
        app.models_module = None
    roles = apps.get_model("auth", "Group").objects.using(alias)
    permissions = apps.get_model("auth", "Permission").objects.using(alias)
    for name, wanted in ROLES.items():
        role, created = roles.get_or_create(name=name)
        if not created:
            continue  # An operator's own role of that name is left as it is.
        for permission in wanted:
            label, codename = permission.split(".")
            found = permissions.filter(content_type__app_label=label, codename=codename)
            role.permissions.add(*found)


class Migration(migrations.Migration):
    dependencies = [
        ("auth", "0012_alter_user_first_name_max_length"),
        ("contenttypes", "0002_remove_content_type_name"),
        ("queues", "0004_keys_and_audit"),
    ]

    operations = [
        migrations.CreateModel(
            name="Message",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
            ],
            options={
                "permissions": (
                    ("view_body", "Can see message bodies"),
                    ("send_message", "Can send messages"),
                    ("bulk_message", "Can change many messages at once"),
                ),
                "managed": False,
                "default_permissions": ("view", "change"),
            },
        ),
        migrations.AlterModelOptions(
            name="group",
            options={
                "ordering": ("name",),
                "permissions": (
                    ("operate_group", "Can pause, resume and reset groups, and redrive"),
                ),
            },
        ),
        migrations.RunPython(make_roles, migrations.RunPython.noop),
    ]
