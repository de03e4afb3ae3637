"""Timed messages: RocketMQ's timing wheel and TimerLog, with millisecond precision (RIP-43).

Five stages, each a module, joined by bounded lists and run as steps of one loop:
`scan` → `enqueue` → `dequeue` → `load` → `handover`. `step.WheelStep` decides their turns.
Everything here is derived from the schedule table of the timer topic and comes back when deleted.
"""
