"""The topics and properties that the store itself uses, by RocketMQ's names where it has one."""

#: Where level messages wait; the queue is level - 1.
SCHEDULE_TOPIC = "SCHEDULE_TOPIC_XXXX"
#: Where timed messages wait, in queue 0.
TIMER_TOPIC = "rmq_sys_wheel_timer"
#: Changes without a message of their own: cancels, parkings, traces.
JOURNAL_TOPIC = "rmq_sys_postdate_journal"
RETRY_PREFIX = "%RETRY%"
DEAD_LETTER_PREFIX = "%DLQ%"

#: Topics that a sender may not name (`MixAll` and `TopicValidator` of RocketMQ, and ours).
SYSTEM_TOPICS = frozenset(
    {
        "TBW102", SCHEDULE_TOPIC, "BenchmarkTest", "RMQ_SYS_TRANS_HALF_TOPIC",
        "RMQ_SYS_TRANS_OP_HALF_TOPIC", "RMQ_SYS_TRACE_TOPIC", "TRANS_CHECK_MAX_TIME_TOPIC",
        "SELF_TEST_TOPIC", "OFFSET_MOVED_EVENT", "CHECKPOINT_TOPIC",
    }
)  # fmt: skip
SYSTEM_PREFIX = "rmq_sys_"


def is_system_topic(topic: str) -> bool:
    """Whether RocketMQ or Postdate keeps this name for itself."""
    return topic in SYSTEM_TOPICS or topic.lower().startswith(SYSTEM_PREFIX)


def holds_schedule(topic: str) -> bool:
    """Whether the topic's queues have a schedule table beside them."""
    return topic in (SCHEDULE_TOPIC, TIMER_TOPIC) or topic.startswith(DEAD_LETTER_PREFIX)
