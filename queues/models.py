"""The models are the control plane: what operators declare, and who changed what.

Messages, schedules, leases and offsets are files of the store and never rows. Every row here is
read through `queues.selectors` and written through `queues.services`.
"""

from __future__ import annotations

from typing import Any, ClassVar

from django.db import models

from queues.limits import CONSUMER_ID_CHARACTERS_MAX, GROUP_NAME_MAX, TOPIC_NAME_MAX
from queues.quotas import BURST_S_DEFAULT


def any_pattern() -> list[str]:
    """The patterns of a key that may touch everything."""
    return ["*"]


class Topic(models.Model):
    """A topic is a name that messages are sent to, and its number of queues."""

    name = models.CharField(max_length=TOPIC_NAME_MAX, unique=True)
    queues = models.PositiveIntegerField()
    #: Queue to first offset that is this topic's own: those before belong to one deleted earlier.
    first_offsets: models.JSONField[dict[str, int], dict[str, int]] = models.JSONField(
        default=dict, blank=True
    )
    created_at = models.DateTimeField()

    class Meta:
        ordering = ("name",)

    def __str__(self) -> str:
        return self.name


class Group(models.Model):
    """A group is a set of consumers that share the messages of its subscriptions."""

    class Mode(models.TextChoices):
        """How its consumers share."""

        CLUSTERING = "clustering"
        BROADCASTING = "broadcasting"

    class StartFrom(models.TextChoices):
        """Where a new group begins in queues that hold messages already."""

        LATEST = "latest"
        EARLIEST = "earliest"

    name = models.CharField(max_length=GROUP_NAME_MAX, unique=True)
    #: `[{"topic": …, "tags": …}]`, in the order given.
    subscriptions: models.JSONField[Any, list[dict[str, str]]] = models.JSONField(
        default=list, blank=True
    )
    mode = models.CharField(max_length=16, choices=Mode.choices, default=Mode.CLUSTERING)
    ordered = models.BooleanField(default=False)
    max_retries = models.PositiveIntegerField()
    retry_queues = models.PositiveIntegerField()
    retry_policy: models.JSONField[Any, dict[str, Any]] = models.JSONField()
    start_from = models.CharField(
        max_length=16, choices=StartFrom.choices, default=StartFrom.LATEST
    )
    paused = models.BooleanField(default=False)
    created_at = models.DateTimeField()

    class Meta:
        ordering = ("name",)
        permissions = (("operate_group", "Can pause, resume and reset groups, and redrive"),)

    def __str__(self) -> str:
        return self.name


class Message(models.Model):
    """A message lies in the store and is no row: this is what Django's permissions hang on."""

    class Meta:
        managed = False
        default_permissions = ("view", "change")
        permissions = (
            ("view_body", "Can see message bodies"),
            ("send_message", "Can send messages"),
            ("bulk_message", "Can change many messages at once"),
        )

    def __str__(self) -> str:
        return "message"


class ApiKey(models.Model):
    """An API key is a secret that a program shows; of the secret only its hash is kept."""

    class Scope(models.TextChoices):
        """What a key may be used for (API.md, Conventions)."""

        SEND = "send"
        CONSUME = "consume"
        INSPECT = "inspect"
        MANAGE = "manage"

    ALL_SCOPES: ClassVar[tuple[str, ...]] = tuple(Scope.values)

    name = models.CharField(max_length=100)
    #: The first characters of the secret, by which people recognise it.
    prefix = models.CharField(max_length=16)
    #: SHA-256 of the whole secret, in hex.
    secret_sha256 = models.CharField(max_length=64, unique=True)
    scopes: models.JSONField[Any, list[str]] = models.JSONField(default=list)
    topic_patterns: models.JSONField[Any, list[str]] = models.JSONField(default=any_pattern)
    group_patterns: models.JSONField[Any, list[str]] = models.JSONField(default=any_pattern)
    #: While it is being rotated: the hash of the secret before, and how long that one is taken.
    previous_sha256 = models.CharField(max_length=64, blank=True, default="")
    previous_until = models.DateTimeField(null=True, blank=True)
    #: What it may use; None: no limit. `queues.quotas` says what they mean.
    requests_per_second = models.PositiveIntegerField(null=True, blank=True)
    messages_per_second = models.PositiveIntegerField(null=True, blank=True)
    messages_per_day = models.PositiveBigIntegerField(null=True, blank=True)
    burst_seconds = models.PositiveIntegerField(default=BURST_S_DEFAULT)
    created_at = models.DateTimeField()
    #: From then on nobody bears it; None: no such time.
    expires_at = models.DateTimeField(null=True, blank=True)
    #: Written at most once a minute, after the fact.
    last_used_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("name", "pk")
        verbose_name = "API key"

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"


class AuditEntry(models.Model):
    """An audit entry says who changed what in the control plane, and when; it is never edited."""

    at = models.DateTimeField(db_index=True)
    #: `key:…`, `user:…` or `command:…`.
    by = models.CharField(max_length=200)
    #: A verb and a noun, such as `topic.create`.
    action = models.CharField(max_length=64, db_index=True)
    subject = models.CharField(max_length=255)
    detail: models.JSONField[Any, dict[str, Any]] = models.JSONField(default=dict, blank=True)
    #: What it was before and is after; None: there was, or is, nothing.
    before: models.JSONField[Any, dict[str, Any] | None] = models.JSONField(null=True, blank=True)
    after: models.JSONField[Any, dict[str, Any] | None] = models.JSONField(null=True, blank=True)

    class Meta:
        ordering = ("-at", "-pk")
        verbose_name_plural = "audit entries"

    def __str__(self) -> str:
        return f"{self.action} {self.subject}"


class Operation(models.Model):
    """An operation is long work that a request began and housekeeping carries out."""

    class State(models.TextChoices):
        """Where it stands; the last three are final."""

        QUEUED = "queued"
        RUNNING = "running"
        SUCCEEDED = "succeeded"
        FAILED = "failed"
        ABORTED = "aborted"

    #: The states that nothing leads out of.
    FINAL: ClassVar[tuple[str, ...]] = (State.SUCCEEDED, State.FAILED, State.ABORTED)

    id = models.CharField(primary_key=True, max_length=32)
    kind = models.CharField(max_length=64)
    state = models.CharField(max_length=16, choices=State.choices, default=State.QUEUED)
    #: What it was asked to do.
    request: models.JSONField[Any, dict[str, Any]] = models.JSONField(default=dict)
    done = models.PositiveBigIntegerField(default=0)
    total = models.PositiveBigIntegerField(null=True, blank=True)
    error: models.JSONField[Any, Any] = models.JSONField(null=True, blank=True)
    result: models.JSONField[Any, Any] = models.JSONField(null=True, blank=True)
    #: An abort is asked for; whoever runs it stops at the next step.
    abort_asked = models.BooleanField(default=False)
    by = models.CharField(max_length=200)
    created_at = models.DateTimeField(db_index=True)
    #: When whoever runs it last wrote progress.
    touched_at = models.DateTimeField(null=True, blank=True)
    #: When it came to its final state.
    finished_at = models.DateTimeField(null=True, blank=True)
    #: How often it was taken up since it last got on.
    claims = models.PositiveIntegerField(default=0)
    #: The operation that this one takes back, and the one that takes this back; "" for none.
    undo_of = models.CharField(max_length=32, blank=True, default="")
    undone_by = models.CharField(max_length=32, blank=True, default="")

    class Meta:
        ordering = ("-created_at", "-id")

    def __str__(self) -> str:
        return f"{self.kind} {self.id}"


class SeenConsumer(models.Model):
    """A consumer is seen when it asks for messages: for which group, as whom, with which key."""

    group = models.CharField(max_length=GROUP_NAME_MAX)
    #: "" for one that does not name itself.
    consumer_id = models.CharField(max_length=CONSUMER_ID_CHARACTERS_MAX, blank=True)
    #: The key, as the audit log names it.
    by = models.CharField(max_length=200)
    seen_at = models.DateTimeField(db_index=True)

    class Meta:
        ordering = ("-seen_at",)
        constraints: ClassVar = [
            models.UniqueConstraint(fields=("group", "consumer_id", "by"), name="one_seen_consumer")
        ]

    def __str__(self) -> str:
        return f"{self.consumer_id or 'unnamed'} of {self.group}"


class BulkPlan(models.Model):
    """A bulk plan is a bulk change that was looked at and may be carried out, once, for a while."""

    #: The operation that carries it out has the same id, so there is at most one.
    id = models.CharField(primary_key=True, max_length=32)
    #: `cancel`, `reschedule`, `deliver-now` or `restore`.
    verb = models.CharField(max_length=16)
    #: The request that its operation gets.
    request: models.JSONField[Any, dict[str, Any]] = models.JSONField()
    #: Messages that it meant when it was made.
    count = models.PositiveBigIntegerField()
    by = models.CharField(max_length=200)
    expires_at = models.DateTimeField(db_index=True)

    class Meta:
        ordering = ("-id",)

    def __str__(self) -> str:
        return f"{self.verb} {self.id}"
