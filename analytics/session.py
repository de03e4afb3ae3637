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
    # What is shuffled was summed up before: planning it anew after each stage costs more than it.
    "spark.sql.adaptive.enabled": "false",
    # What workers send is taken in fewer, larger pieces than 64 KiB: a scan is a tenth quicker.
    "spark.buffer.size": "1048576",
}
JAVA_OPTIONS: Final = "spark.driver.extraJavaOptions"
#: A process lives too short for the second compiler; what is heavy is done in Python workers.
_SHORT: Final = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
#: What a session has that runs in this process's machine alone.
LOCAL_SETTINGS: Final = {
    "spark.master": "local[2]",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.sql.python.filterPushdown.enabled": "false",
    JAVA_OPTIONS: _SHORT,
}


def open_session(
    name: str, local: Mapping[str, str] | None = None, *, sources: bool = True
) -> SparkSession:
    """A session that knows our data source, unless that is not wanted: it takes two processes.

    `spark-submit` has set master and memory; `SPARK_REMOTE` names a Spark Connect server. With
    neither, Spark runs here, with `local` for settings: on two cores unless that says otherwise.
    """
    settings = dict(SETTINGS)
    if not os.environ.get("SPARK_REMOTE") and not _is_submitted():
        settings |= LOCAL_SETTINGS | dict(local or {})
        # Workers run what runs this, and not the first `python3` on the path.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        # Before Spark's JVM, its launcher starts one that only puts a command line together.
        os.environ.setdefault("SPARK_LAUNCHER_OPTS", _SHORT)
    builder = SparkSession.builder.appName(name)
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    if sources:
        register(spark)
    return spark


def _is_submitted() -> bool:
    """Whether `spark-submit` started this process and has chosen where it runs."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def application_of(spark: SparkSession) -> str | None:
    """Spark's name for what runs; a Connect server may keep it to itself."""
    try:
        return spark.conf.get("spark.app.id", None)
    except Exception:  # noqa: BLE001 (a name is no reason to fail)
        return None
