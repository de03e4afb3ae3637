"""API keys: issue, change, rotate, revoke. A secret is shown once; only its hash is kept."""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction

from queues.codes import Code
from queues.limits import (
    API_KEY_CHARACTERS_MAX,
    API_KEY_CHARACTERS_MIN,
    BURST_S_MAX,
    KEY_OVERLAP_S_MAX,
    PATTERNS_MAX,
    QUOTA_MAX,
)
from queues.models import ApiKey
from queues.problems import Problem
from queues.quotas import UNLIMITED, Quotas
from queues.selectors.control import hash_secret
from queues.services.audit import now, record_change

#: By which a key in a log or a chat is recognised as one of ours.
SECRET_PREFIX = "pd_"  # noqa: S105 (not a secret)
_SECRET_BYTES = 32
_SHOWN_CHARACTERS = 10


@dataclass(frozen=True, slots=True)
class Issued:
    """A new key."""

    key: ApiKey
    #: What the program is to send; it cannot be seen again.
    secret: str


def issue_key(
    *,
    name: str,
    by: str,
    scopes: Sequence[str] = ApiKey.ALL_SCOPES,
    topic_patterns: Sequence[str] = ("*",),
    group_patterns: Sequence[str] = ("*",),
    quotas: Quotas = UNLIMITED,
    expires_at: datetime | None = None,
    secret: str | None = None,
) -> Issued:
    """Make a key; with a `secret` of the operator's own, that one."""
    _check_name(name)
    _check_rights(scopes, topic_patterns, group_patterns)
    _check_quotas(quotas)
    secret = _new_secret() if secret is None else check_secret(secret)
    with transaction.atomic():
        key = ApiKey.objects.create(
            name=name,
            prefix=secret[:_SHOWN_CHARACTERS],
            secret_sha256=hash_secret(secret).hex(),
            scopes=list(scopes),
            topic_patterns=list(topic_patterns),
            group_patterns=list(group_patterns),
            expires_at=expires_at,
            created_at=now(),
            **asdict(quotas),
        )
        record_change(by=by, action="key.create", subject=name, after=tell_key(key))
    return Issued(key, secret)


def change_key(
    *,
    key_id: int,
    by: str,
    scopes: Sequence[str] | None = None,
    topic_patterns: Sequence[str] | None = None,
    group_patterns: Sequence[str] | None = None,
    quotas: Quotas | None = None,
    expires_at: datetime | None = None,
    never_expires: bool = False,
) -> ApiKey:
    """Change what it may and for how long; what is None stays. Raises `key_not_found`.

    Every process goes by it once this returned.
    """
    with transaction.atomic():
        key = _live_key(key_id)
        before = tell_key(key)
        rights = {
            "scopes": scopes,
            "topic_patterns": topic_patterns,
            "group_patterns": group_patterns,
        }
        fields = {name: list(value) for name, value in rights.items() if value is not None}
        for name, value in {**fields, **(asdict(quotas) if quotas is not None else {})}.items():
            setattr(key, name, value)
        if expires_at is not None or never_expires:
            key.expires_at = expires_at
        _check_rights(key.scopes, key.topic_patterns, key.group_patterns)
        _check_quotas(quotas or UNLIMITED)
        key.save()
        changed = _differences(before, tell_key(key))
        if any(changed):
            was, now_is = changed
            record_change(by=by, action="key.change", subject=key.name, before=was, after=now_is)
    return key


def rotate_key(*, key_id: int, by: str, overlap: timedelta, secret: str | None = None) -> Issued:
    """Give it a new secret; the one before is taken for `overlap` longer (0: not at all).

    The one before that is not taken any more. Raises `key_not_found`.
    """
    if not timedelta(0) <= overlap <= timedelta(seconds=KEY_OVERLAP_S_MAX):
        days = timedelta(seconds=KEY_OVERLAP_S_MAX).days
        raise Problem(Code.OUT_OF_BOUNDS, f"Secrets overlap for 0 to {days} days.")
    secret = _new_secret() if secret is None else check_secret(secret)
    with transaction.atomic():
        key = _live_key(key_id)
        before = tell_key(key)
        key.previous_sha256 = key.secret_sha256 if overlap else ""
        key.previous_until = now() + overlap if overlap else None
        key.secret_sha256 = hash_secret(secret).hex()
        key.prefix = secret[:_SHOWN_CHARACTERS]
        key.save()
        was, now_is = _differences(before, tell_key(key))
        record_change(by=by, action="key.rotate", subject=key.name, before=was, after=now_is)
    return Issued(key, secret)


def revoke_key(*, key_id: int, by: str) -> bool:
    """Revoke it; False if it was revoked before. No process takes it once this returned."""
    with transaction.atomic():
        key = ApiKey.objects.select_for_update().filter(pk=key_id, revoked_at=None).first()
        if key is None:
            return False
        key.revoked_at = now()
        key.save(update_fields=["revoked_at"])
        record_change(by=by, action="key.revoke", subject=key.name, before=tell_key(key))
    return True


def tell_key(key: ApiKey) -> dict[str, Any]:
    """The key as the audit log shows it: everything but its secret."""
    return {
        "prefix": key.prefix,
        "scopes": key.scopes,
        "topic_patterns": key.topic_patterns,
        "group_patterns": key.group_patterns,
        "requests_per_second": key.requests_per_second,
        "messages_per_second": key.messages_per_second,
        "messages_per_day": key.messages_per_day,
        "burst_seconds": key.burst_seconds,
        "expires_at": None if key.expires_at is None else key.expires_at.isoformat(),
        "previous_until": None if key.previous_until is None else key.previous_until.isoformat(),
    }


def _differences(
    before: Mapping[str, Any], after: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """What differs, as it was and as it is."""
    names = [name for name in before if before[name] != after[name]]
    return {name: before[name] for name in names}, {name: after[name] for name in names}


def _live_key(key_id: int) -> ApiKey:
    key = ApiKey.objects.select_for_update().filter(pk=key_id, revoked_at=None).first()
    if key is None:
        raise Problem(Code.KEY_NOT_FOUND, f"There is no API key {key_id} that is not revoked.")
    return key


def _new_secret() -> str:
    return SECRET_PREFIX + secrets.token_urlsafe(_SECRET_BYTES)


def check_secret(secret: str) -> str:
    """The secret; raises unless it is long and printable enough to be one."""
    fits = API_KEY_CHARACTERS_MIN <= len(secret) <= API_KEY_CHARACTERS_MAX
    if not fits or not all("!" <= character <= "~" for character in secret):
        detail = (
            f"An API key has {API_KEY_CHARACTERS_MIN} to {API_KEY_CHARACTERS_MAX} printable ASCII "
            "characters without spaces."
        )
        raise Problem(Code.FIELD_INVALID, detail)
    return secret


def _check_name(name: str) -> None:
    if not 0 < len(name) <= len("x" * 100) or not name.isprintable():
        raise Problem(Code.FIELD_INVALID, "A key's name has 1 to 100 printable characters.")


def _check_rights(
    scopes: Sequence[str], topic_patterns: Sequence[str], group_patterns: Sequence[str]
) -> None:
    unknown = set(scopes) - set(ApiKey.ALL_SCOPES)
    if unknown or not scopes:
        detail = f"The scopes are {', '.join(ApiKey.ALL_SCOPES)}."
        raise Problem(Code.FIELD_INVALID, detail)
    for patterns in (topic_patterns, group_patterns):
        if len(patterns) > PATTERNS_MAX:
            raise Problem(Code.OUT_OF_BOUNDS, f"At most {PATTERNS_MAX} patterns.")
        if any(not pattern or not pattern.isprintable() for pattern in patterns):
            raise Problem(Code.FIELD_INVALID, "A pattern is a name in which * stands for anything.")


def _check_quotas(quotas: Quotas) -> None:
    most = {"burst_seconds": BURST_S_MAX}
    for name, value in asdict(quotas).items():
        if value is not None and not 1 <= value <= most.get(name, QUOTA_MAX):
            detail = f"{name} is 1 to {most.get(name, QUOTA_MAX)}, or not set."
            raise Problem(Code.OUT_OF_BOUNDS, detail)
