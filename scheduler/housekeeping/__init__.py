"""Housekeeping: what must be done every so often, off the path of any message."""
