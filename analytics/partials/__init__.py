"""Partials: the facts of byte ranges of a log, computed once and kept longer than the log."""
