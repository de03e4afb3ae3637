"""Commands of analytics."""
