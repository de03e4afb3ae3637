"""Small JSON files with a backup beside them, as RocketMQ keeps them under ``config/``.

RocketMQ writes fastjson's dialect: object keys that are integers come without quotes, and fastjson
2 may leave a comma before a closing bracket. Both are read here; what is written is strict JSON,
which RocketMQ reads too.

Example: ``read_json_lenient(b'{"offsetTable":{3:2,4:1}}') == {"offsetTable": {"3": 2, "4": 1}}``.
"""

import json
import re
from pathlib import Path
from typing import Any, Final

from queues.store.disk import Disk
from queues.store.errors import ConfigCorrupt

BACKUP_SUFFIX: Final = ".bak"

#: What a file holds whose write never reached the disk.
_BLANK: Final = b"\0 \t\r\n"

#: A string is stepped over whole, so nothing inside one is taken for a key or a comma.
_TOKENS: Final = re.compile(
    r"""(?P<string>"(?:[^"\\]|\\.)*")"""
    r"""|(?P<before>[{,]\s*)(?P<key>-?\d+)(?P<after>\s*:)"""
    r"""|,(?P<end>\s*[}\]])""",
    re.DOTALL,
)


def read_json_lenient(data: bytes) -> Any:
    """Return the value of JSON or of fastjson's dialect; integer keys become texts.

    Raises ``ConfigCorrupt`` for anything else.
    """
    try:
        text = data.decode("utf-8-sig")
        try:
            return json.loads(text)
        except json.JSONDecodeError:
            return json.loads(_TOKENS.sub(_strict, text))
    except (ValueError, RecursionError) as error:
        raise ConfigCorrupt(reason=str(error)) from error


def load_with_backup(disk: Disk, path: Path) -> Any | None:
    """Return the file's value, its backup's if the file is missing, empty or damaged, else None.

    Raises ``ConfigCorrupt`` when a file is there and neither can be read.
    """
    corrupt: ConfigCorrupt | None = None
    for candidate in (path, backup_of(path)):
        data = _bytes_of(disk, candidate)
        if not data.strip(_BLANK):
            continue
        try:
            return read_json_lenient(data)
        except ConfigCorrupt as error:
            corrupt = corrupt or ConfigCorrupt(path=candidate, **error.fields)
    if corrupt is not None:
        raise corrupt
    return None


def save_with_backup(disk: Disk, path: Path, data: Any) -> None:
    """Write the value as JSON, atomically, and keep what was there as the backup.

    The file is there at every moment: the backup is a copy, and each is replaced by a rename.
    """
    before = _bytes_of(disk, path)
    if before.strip(_BLANK):
        disk.replace(backup_of(path), before)
    disk.replace(path, json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode())


def backup_of(path: Path) -> Path:
    """Return the path of the file's backup."""
    return path.with_name(path.name + BACKUP_SUFFIX)


def _bytes_of(disk: Disk, path: Path) -> bytes:
    try:
        return disk.read_bytes(path)
    except FileNotFoundError:
        return b""


def _strict(match: re.Match[str]) -> str:
    if match["string"] is not None:
        return match["string"]
    if match["key"] is not None:
        return f'{match["before"]}"{match["key"]}"{match["after"]}'
    return match["end"]
