"""The delay levels: what waits in the queues of `SCHEDULE_TOPIC_XXXX`, one queue a level."""
