"""The Celery application: `celery -A postdate worker` and `celery -A postdate beat`.

It carries ticks and nothing else, so it keeps no results and loses nothing when a tick is lost.
Worker and beat are configured here, and not by options, so that every way of starting them is the
same.
"""

import logging
import os
import warnings
from typing import Any

from celery import Celery, signals
from celery.exceptions import SecurityWarning

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "postdate.settings")
# The checks load every URL and view, for 25 MB in each worker that serves none; the web server and
# `make check` run them.
os.environ.setdefault("CELERY_SKIP_CHECKS", "true")

# It warns of root because of pickled messages; ticks are JSON, and nothing else is accepted.
warnings.filterwarnings("ignore", category=SecurityWarning)

app = Celery("postdate", set_as_current=True)

#: One tick a group, this often.
TICK_S = 1.0
#: The broker in a process's own memory; kombu warns about one without a host.
EMBEDDED_BROKER_URL = "memory://localhost//"
#: How often the embedded broker looks for a tick; no lateness hangs on it.
EMBEDDED_POLL_S = 0.1


def _defaults() -> dict[str, Any]:
    from django.conf import settings

    from scheduler.groups import group_names

    names = group_names(settings.POSTDATE.level_groups)
    broker_url = settings.POSTDATE.broker_url
    embedded = broker_url.startswith("memory:")
    return {
        "broker_url": EMBEDDED_BROKER_URL if embedded else broker_url,
        "broker_transport_options": {"polling_interval": EMBEDDED_POLL_S} if embedded else {},
        "broker_connection_retry_on_startup": True,
        "imports": ("scheduler.tasks",),
        "beat_scheduler": "scheduler.beat:MonotonicScheduler",
        "beat_schedule": {
            name: {
                "task": "scheduler.tick",
                "schedule": TICK_S,
                "args": (name,),
                # A tick that was not taken in time is stale: the next one is there.
                "options": {"expires": TICK_S, "ignore_result": True},
            }
            for name in names
        },
        "task_default_queue": "postdate-ticks",
        "task_ignore_result": True,
        "result_backend": "disabled://",
        "result_expires": None,
        # Threads share the store's mappings, hear a stop at once, and a store is unusable after
        # fork.
        "worker_pool": "threads",
        # A holder or standby of each group, and room for the ticks that find both places taken.
        "worker_concurrency": len(names) + 2,
        "worker_prefetch_multiplier": 1,
        "worker_enable_remote_control": not embedded,
        "worker_send_task_events": False,
        "worker_hijack_root_logger": False,
        "timezone": "UTC",
    }


app.add_defaults(_defaults)


@signals.setup_logging.connect
def _keep_django_logging(**_kwargs: Any) -> None:
    """Leave the log as Django's settings have it: Celery configures none when this is connected.

    Three ticks a second are no news; what fails in one is a warning.
    """
    for name in ("celery.worker.strategy", "celery.app.trace"):
        logging.getLogger(name).setLevel(logging.WARNING)


@signals.worker_shutting_down.connect
def _put_down(**_kwargs: Any) -> None:
    from postdate import wiring

    wiring.stop_groups()


@signals.worker_shutdown.connect
def _close(**_kwargs: Any) -> None:
    from postdate import wiring

    wiring.close()
