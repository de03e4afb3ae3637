"""Selectors read: topics and messages as callers may see them, without changing anything."""
