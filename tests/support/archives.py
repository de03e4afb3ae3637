"""Stores that a broker wrote, unpacked: also by Debian 12's own Python, 3.11.2."""

import tarfile
from pathlib import Path


def unpack_archive(path: Path, directory: Path) -> None:
    """Unpack an archive of the tests into a directory that is there."""
    with tarfile.open(path) as archive:
        # Python has filters since 3.11.4, and some distributions' 3.11 have them too.
        if hasattr(tarfile, "data_filter"):
            archive.extractall(directory, filter="data")
        else:
            archive.extractall(directory)  # noqa: S202 (the archives are ours)
