"""Spark data sources over a CommitLog: its records, and the facts folded from them.

`register(spark)` makes ``commitlog`` (batch and streaming, one row a record) and
``commitlog_facts`` (the rows of `analytics.log.facts`, folded in the workers) known to a session.
"""

from analytics.datasource.sources import register

__all__ = ["register"]
