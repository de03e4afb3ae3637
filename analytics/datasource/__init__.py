"""Spark over a CommitLog: its records, and the facts folded from them.

`register(spark)` makes ``commitlog`` (batch and streaming, one row a record) known to a session;
`facts_of(spark, root)` are the rows of `analytics.log.facts`, folded in the workers.
"""

from analytics.datasource.facts import facts_of
from analytics.datasource.sources import register

__all__ = ["facts_of", "register"]
