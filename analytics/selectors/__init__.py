"""Selectors read: finished reports, their rows, their schedules."""
