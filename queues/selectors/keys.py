"""API keys as people see them: everything but the secret."""

from queues.models import ApiKey


def list_keys() -> list[ApiKey]:
    """Every key, revoked ones too, by name."""
    return list(ApiKey.objects.all())
