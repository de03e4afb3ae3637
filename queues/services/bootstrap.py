"""The first run: an administrator and an API key, made once and shown once."""

import secrets
from dataclasses import dataclass

from django.contrib.auth import get_user_model
from django.db import transaction

from queues.models import ApiKey
from queues.selectors.control import hash_secret
from queues.services.audit import record_change
from queues.services.keys import issue_key

BOOTSTRAP_KEY_NAME = "bootstrap"
_PASSWORD_BYTES = 12


@dataclass(frozen=True, slots=True)
class Bootstrapped:
    """What was made; None is what was there already, or was given and need not be shown."""

    #: A generated password of the new administrator.
    password: str | None
    #: A generated API key.
    secret: str | None
    #: An administrator was made.
    admin_created: bool
    #: A key was made.
    key_created: bool


def bootstrap(*, username: str, password: str | None, secret: str | None) -> Bootstrapped:
    """Make what is missing; repeating it changes nothing.

    A `secret` that is given is valid afterwards, whatever keys there are; without one a key is
    generated only if there never was any.
    """
    with transaction.atomic():
        made_password, admin_created = _ensure_admin(username, password)
        made_secret, key_created = _ensure_key(secret)
    return Bootstrapped(made_password, made_secret, admin_created, key_created)


def _ensure_admin(username: str, password: str | None) -> tuple[str | None, bool]:
    users = get_user_model()._default_manager  # noqa: SLF001 (Django's documented name for it)
    if users.filter(is_superuser=True).exists() or users.filter(username=username).exists():
        return None, False
    generated = secrets.token_urlsafe(_PASSWORD_BYTES) if password is None else None
    users.create_superuser(username, password=password or generated)
    record_change(by="command:bootstrap", action="user.create", subject=username)
    return generated, True


def _ensure_key(secret: str | None) -> tuple[str | None, bool]:
    if secret is not None:
        if ApiKey.objects.filter(secret_sha256=hash_secret(secret).hex()).exists():
            return None, False
        issue_key(name=BOOTSTRAP_KEY_NAME, by="command:bootstrap", secret=secret)
        return None, True
    if ApiKey.objects.exists():
        return None, False
    issued = issue_key(name=BOOTSTRAP_KEY_NAME, by="command:bootstrap")
    return issued.secret, True
