"""Plans: which processes make up the platform on one machine, and how each is started."""

import os
import sys
from pathlib import Path

from postdate.config import ROOT, Config
from postdate.supervisor.child import ChildPlan

SCHEDULERS = 2
#: Requests that may wait in the server while all threads are busy.
WAITING_REQUESTS_MAX = 1024
#: Connections that may wait to be taken: as many consumers may come back at once after a restart.
BACKLOG = 4096
#: Seconds that the web server gives its worker to finish what it is answering.
WEB_STOP_SECONDS = 6


def plan_children(config: Config) -> list[ChildPlan]:
    """Return the web server and the pair of schedulers, in the order in which they start."""
    names = [f"scheduler-{number}" for number in range(1, SCHEDULERS + 1)]
    schedulers = [_plan(name, ["manage.py", "run_scheduler", "--name", name]) for name in names]
    return [*schedulers, _plan("web", ["-m", "granian", *_web_arguments(config)])]


def plan_analytics_install(config: Config) -> ChildPlan | None:
    """Return the installation of the reports' packages, or None when there is nothing to do."""
    requirements = ROOT / "requirements-analytics.txt"
    stamp = Path(sys.prefix) / ".installed-analytics"
    if not config.analytics_install or not requirements.exists() or _is_newer(stamp, requirements):
        return None
    log_path = config.data_dir / "log" / "analytics-install.log"
    log_path.parent.mkdir(parents=True, exist_ok=True)
    command = (
        f'"{sys.executable}" -m pip install --quiet --require-hashes -r "{requirements}"'
        f' && touch "{stamp}"'
    )
    return ChildPlan(
        name="analytics-install",
        command=["/bin/sh", "-c", command],
        environment=os.environ,
        directory=ROOT,
        is_kept_alive=False,
        log_path=log_path,
        nice=19,
    )


def _web_arguments(config: Config) -> list[str]:
    return [
        *("--interface", "wsgi"),
        # Looking out for HTTP/2 would cost 13 KB a connection; it has its use over TLS, at a proxy.
        *("--http", "1"),
        *("--host", config.host),
        *("--port", str(config.port)),
        *("--workers", str(config.web_processes)),
        # One that dies is replaced while the others go on.
        "--respawn-failed-workers",
        *("--blocking-threads", str(config.web_threads)),
        *("--backpressure", str(config.web_threads + WAITING_REQUESTS_MAX)),
        *("--backlog", str(BACKLOG)),
        *("--workers-kill-timeout", str(WEB_STOP_SECONDS)),
        # Its one warning speaks of the many threads, which are for consumers that wait.
        *("--log-level", "error"),
        "postdate.wsgi:application",
    ]


def _plan(name: str, arguments: list[str]) -> ChildPlan:
    paths = [str(ROOT), str(ROOT / "platform"), os.environ.get("PYTHONPATH", "")]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(path for path in paths if path),
        "PYTHONUNBUFFERED": "1",
        # One arena a core is enough; glibc's eight a core cost tens of megabytes with many threads.
        "MALLOC_ARENA_MAX": "2",
        # The web server's own allocator would keep over 100 KB for each thread that ever answered.
        "_RJEM_MALLOC_CONF": "tcache:false",
    }
    return ChildPlan(
        name=name, command=[sys.executable, *arguments], environment=environment, directory=ROOT
    )


def _is_newer(stamp: Path, source: Path) -> bool:
    return stamp.exists() and stamp.stat().st_mtime >= source.stat().st_mtime
