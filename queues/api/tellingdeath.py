"""Telling of dead letters: what every form of them shows."""

from typing import Any

from queues.api.bodyform import show_body
from queues.api.shapes.deadletters import DeadLetterDetail, DeathShown
from queues.api.telling import moment_or_none, tell_failures, user_properties
from queues.moments import format_moment
from queues.store.chainlookup import DeadLetter


def summary_fields(letter: DeadLetter) -> dict[str, Any]:
    """The fields of a dead letter without its body."""
    return {
        "id": letter.id,
        "group": letter.group,
        "topic": letter.topic,
        "queue": letter.queue_id,
        "tag": letter.record.tag,
        "keys": list(letter.record.keys),
        "failure_count": letter.attempts,
        "reason": letter.reason,
        "created_at": format_moment(letter.record.born_ms),
        "created_at_ms": letter.record.born_ms,
        "died_at": format_moment(letter.died_ms),
        "died_at_ms": letter.died_ms,
        "redriven_at": moment_or_none(letter.redriven_ms),
        "redriven_at_ms": letter.redriven_ms,
        "redriven_by": letter.redriven_by,
    }


def tell_letter(letter: DeadLetter) -> DeadLetterDetail:
    """Everything that is known of a dead letter."""
    record = letter.record
    body, encoding = show_body(record.decoded_body(), record.flag)
    return DeadLetterDetail(
        **summary_fields(letter),
        body=body,
        encoding=encoding,
        properties=user_properties(record.properties),
        failures=tell_failures(letter.failures),
        lineage=[
            DeathShown(
                died_at=format_moment(death.died_ms),
                died_at_ms=death.died_ms,
                attempts=death.attempts,
                reason=death.reason,
                redriven_at=format_moment(death.redriven_ms),
                redriven_at_ms=death.redriven_ms,
                redriven_by=death.by,
            )
            for death in letter.lineage
        ],
    )
