"""Commands for operators of queues and store."""
