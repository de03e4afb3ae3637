"""`python -m postdate.supervisor.health [URL]`: a container's health check, and its supervisor.

Where no supervisor runs (one container a process), this looks at the locks of the store: a process
of this container that holds one and stands still for five seconds is killed, so that the container
is started again. It ends as soon as every holder has moved. With a URL, that must answer 200 too.
Exits 0 for healthy, 1 with a sentence for not.
"""

import os
import signal
import sys
import time
import urllib.request
from http import HTTPStatus
from pathlib import Path

from postdate.config import Config
from postdate.supervisor.progress import progress_reader
from postdate.supervisor.stalls import StallWatch
from postdate.supervisor.supervisor import ReadProgress

LOOK_S = 0.5
ANSWER_S = 3


def main() -> None:
    """Look, and exit with what was seen."""
    config = Config.load()
    stalled = stalled_processes(progress_reader(config.store_dir))
    for lock, process_id in stalled.items():
        if _is_ours(process_id, config.store_dir / "postdate" / "control"):
            os.kill(process_id, signal.SIGKILL)
            sys.exit(f"process {process_id} held the {lock} lock and stood still; it was killed")
    for url in sys.argv[1:]:
        if not _answers(url):
            sys.exit(f"{url} does not answer")


def stalled_processes(read_progress: ReadProgress) -> dict[str, int]:
    """Return the holders that stood still for the whole limit, by lock; at once if all move."""
    watch = StallWatch()
    first = read_progress()
    watch.observe(first, 0)
    while True:
        time.sleep(LOOK_S)
        now = read_progress()
        stalled = watch.observe(now, int(LOOK_S * 1000))
        standing = {lock for lock, seen in first.items() if seen[0] and now.get(lock) == seen}
        if stalled or not standing:
            return stalled


def _is_ours(process_id: int, control: Path) -> bool:
    """Whether that number is, in this container, a process that has the store open."""
    try:
        return str(control) in Path(f"/proc/{process_id}/maps").read_text()
    except OSError:
        return False


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=ANSWER_S) as answer:  # noqa: S310 (given by us)
            return bool(answer.status == HTTPStatus.OK)
    except OSError:
        return False


if __name__ == "__main__":
    main()
