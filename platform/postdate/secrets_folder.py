"""The secrets folder: random keys made once, in `<data directory>/secrets/`, one file each.

The folder is 0700 and its files 0600. Processes that start together agree on one value: each writes
a file of its own and links it to the name, and the link that came first wins.
"""

import os
import secrets
from pathlib import Path

SECRET_BYTES = 48


def read_or_make_secret(folder: Path, name: str) -> str:
    """Return the secret called `name`, making it on first use."""
    path = folder / name
    try:
        return path.read_text().strip()
    except FileNotFoundError:
        write_once(path, secrets.token_urlsafe(SECRET_BYTES))
        return path.read_text().strip()


def write_once(path: Path, text: str) -> bool:
    """Write `text` to `path` unless it exists already; say whether this call wrote it."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    own = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    descriptor = os.open(own, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(text + "\n")
            file.flush()
            os.fsync(file.fileno())
        path.hardlink_to(own)
    except FileExistsError:
        return False
    finally:
        own.unlink()
    return True
