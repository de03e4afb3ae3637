"""Spark sessions: local by default, a cluster's by `spark-submit`, a server's by `SPARK_REMOTE`."""

import os
import sys
from collections.abc import Mapping
from typing import Final

from pyspark.sql import SparkSession

from analytics.datasource import register

#: What every session of ours has, wherever it runs.
SETTINGS: Final = {
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    # A progress bar would overwrite lines of the log.
    "spark.ui.showConsoleProgress": "false",
    # The default of 128 groups turns aggregates to sorting.
    "spark.sql.objectHashAggregate.sortBased.fallbackThreshold": "100000",
    "spark.sql.shuffle.partitions": "2",
}
#: What a session has that runs in this process's machine alone.
LOCAL_SETTINGS: Final = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.sql.python.filterPushdown.enabled": "false",
    # A run is over before the second compiler would pay; the folding is done in Python workers.
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
}


def open_session(name: str, more: Mapping[str, str] | None = None) -> SparkSession:
    """A session that knows our data sources.

    `spark-submit` has set the master; `SPARK_REMOTE` names a Spark Connect server; with neither,
    Spark runs here.
    """
    builder = SparkSession.builder.appName(name)
    settings = dict(SETTINGS)
    is_local = not os.environ.get("SPARK_REMOTE") and not _is_submitted()
    if is_local:
        settings |= LOCAL_SETTINGS
        # Workers run what runs this, and not the first `python3` on the path.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    for key, value in {**settings, **(more or {})}.items():
        builder = builder.config(key, value)
    if is_local:
        builder = builder.master((more or {}).get("spark.master", "local[2]"))
    spark = builder.getOrCreate()
    register(spark)
    return spark


def _is_submitted() -> bool:
    """Whether `spark-submit` started this process and has chosen where it runs."""
    return "PYSPARK_GATEWAY_PORT" in os.environ
