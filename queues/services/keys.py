"""API keys: issue and revoke. The secret is shown once; only its hash is kept."""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass

from django.db import transaction

from queues.codes import Code
from queues.limits import API_KEY_CHARACTERS_MAX, API_KEY_CHARACTERS_MIN, PATTERNS_MAX
from queues.models import ApiKey
from queues.problems import Problem
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
    secret: str | None = None,
) -> Issued:
    """Make a key; with a `secret` of the operator's own, that one."""
    _check(name, scopes, topic_patterns, group_patterns)
    if secret is None:
        secret = SECRET_PREFIX + secrets.token_urlsafe(_SECRET_BYTES)
    else:
        check_secret(secret)
    with transaction.atomic():
        key = ApiKey.objects.create(
            name=name,
            prefix=secret[:_SHOWN_CHARACTERS],
            secret_sha256=hash_secret(secret).hex(),
            scopes=list(scopes),
            topic_patterns=list(topic_patterns),
            group_patterns=list(group_patterns),
            created_at=now(),
        )
        detail = {"prefix": key.prefix, "scopes": key.scopes}
        record_change(by=by, action="key.create", subject=name, detail=detail)
    return Issued(key, secret)


def revoke_key(*, key_id: int, by: str) -> bool:
    """Revoke it; False if it was revoked before. No process takes it once this returned."""
    with transaction.atomic():
        key = ApiKey.objects.select_for_update().filter(pk=key_id, revoked_at=None).first()
        if key is None:
            return False
        key.revoked_at = now()
        key.save(update_fields=["revoked_at"])
        record_change(by=by, action="key.revoke", subject=key.name, detail={"prefix": key.prefix})
    return True


def check_secret(secret: str) -> None:
    """Raise unless it is long and printable enough to be a key."""
    fits = API_KEY_CHARACTERS_MIN <= len(secret) <= API_KEY_CHARACTERS_MAX
    if not fits or not all("!" <= character <= "~" for character in secret):
        detail = (
            f"An API key has {API_KEY_CHARACTERS_MIN} to {API_KEY_CHARACTERS_MAX} printable ASCII "
            "characters without spaces."
        )
        raise Problem(Code.FIELD_INVALID, detail)


def _check(
    name: str, scopes: Sequence[str], topic_patterns: Sequence[str], group_patterns: Sequence[str]
) -> None:
    if not 0 < len(name) <= len("x" * 100) or not name.isprintable():
        raise Problem(Code.FIELD_INVALID, "A key's name has 1 to 100 printable characters.")
    unknown = set(scopes) - set(ApiKey.ALL_SCOPES)
    if unknown or not scopes:
        detail = f"The scopes are {', '.join(ApiKey.ALL_SCOPES)}."
        raise Problem(Code.FIELD_INVALID, detail)
    for patterns in (topic_patterns, group_patterns):
        if len(patterns) > PATTERNS_MAX:
            raise Problem(Code.OUT_OF_BOUNDS, f"At most {PATTERNS_MAX} patterns.")
        if any(not pattern or not pattern.isprintable() for pattern in patterns):
            raise Problem(Code.FIELD_INVALID, "A pattern is a name in which * stands for anything.")
