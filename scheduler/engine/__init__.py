"""What every engine for timed messages shares: the five stages, their lists, and the protocol.

An engine keeps the messages of the timer topic in the order of their due times. There are two,
`scheduler.wheel` (RocketMQ's files) and `scheduler.rocksdb`; both are derived from the schedule
table of the timer topic and come back when deleted. `step.TimerStep` runs the stages of either.
"""
