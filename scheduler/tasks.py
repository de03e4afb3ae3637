"""The Celery tasks: ticks. They carry no message, and it does no harm when one is lost."""

from celery import shared_task

from scheduler.groups import plugged_in


@shared_task(name="scheduler.tick", ignore_result=True)
def tick(group: str) -> None:
    """Run the group's loop for a term, or stand by for it, or end at once."""
    plugged_in().tick(group)
