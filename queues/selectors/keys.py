"""API keys as people see them: everything but the secret."""

from queues.codes import Code
from queues.models import ApiKey
from queues.problems import Problem
from queues.quotas import UNLIMITED, Quotas


def list_keys() -> list[ApiKey]:
    """Every key, revoked ones too, by name."""
    return list(ApiKey.objects.all())


def quotas_of_key(key_id: int) -> Quotas:
    """What the key may use; no limits for one that is not there."""
    key = ApiKey.objects.filter(pk=key_id).first()
    return UNLIMITED if key is None else quotas_of(key)


def quotas_of(key: ApiKey) -> Quotas:
    """What the key may use."""
    return Quotas(
        requests_per_second=key.requests_per_second,
        messages_per_second=key.messages_per_second,
        messages_per_day=key.messages_per_day,
        burst_seconds=key.burst_seconds,
    )


def get_key(key_id: int) -> ApiKey:
    """The key, a revoked one too; raises `key_not_found`."""
    key = ApiKey.objects.filter(pk=key_id).first()
    if key is None:
        raise Problem(Code.KEY_NOT_FOUND, f"There is no API key {key_id}.")
    return key
