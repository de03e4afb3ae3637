"""Packing: what the jobs import, in one zip for `spark-submit --py-files`.

    python -m analytics.jobs.packing postdate.zip

It holds analytics' modules that know no Django and the store's, nothing else: executors need this,
numpy and pyarrow.
"""

import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_PACKED = (
    "analytics/__init__.py", "analytics/buckets.py", "analytics/session.py",
    "analytics/transforms.py", "analytics/datasource", "analytics/jobs", "analytics/log",
    "analytics/partials", "queues/__init__.py", "queues/store",
)  # fmt: skip


def pack(target: Path) -> int:
    """Write the zip; returns how many files it holds."""
    count = 0
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as packed:
        for path in _sources():
            packed.write(path, path.relative_to(ROOT))
            count += 1
    return count


def _sources() -> Iterator[Path]:
    for name in _PACKED:
        path = ROOT / name
        yield from sorted(path.rglob("*.py")) if path.is_dir() else [path]


if __name__ == "__main__":
    pack(Path(sys.argv[1]))
