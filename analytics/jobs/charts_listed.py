"""The charts of a report, by name; who shows them needs no library that draws."""

from typing import Final

CHART_TITLES: Final = {
    "lateness": "Lateness by hour",
    "distribution": "Distribution of lateness by hour",
    "topics": "Topics with the latest hand-overs",
    "levels": "Levels and timed messages compared",
    "throughput": "Messages in and out by hour",
    "failures": "Retries and dead letters by hour",
    "before": "Lateness against the period before",
}
