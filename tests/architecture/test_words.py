"""Committed text: no package index, no path of somebody's machine, nothing left undone."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
#: Written in pieces, so that this file does not hold what it forbids.
FORBIDDEN = {
    "a package index": r"py" r"pi\.org|files\.python" r"hosted|--(extra-)?index" r"-url",
    "a path of a machine": r"/wor" r"k/|/roo" r"t/|/hom" r"e/[a-z]",
    "something left undone": r"\b(TO" r"DO|FIX" r"ME|XX" r"X)\b",
}
#: RocketMQ's name for its holding topic holds one of them.
ALLOWED = re.compile(r"SCHEDULE_TOPIC_X+")


def committed_texts() -> list[tuple[str, str]]:
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True
    ).stdout.split("\0")
    texts = []
    for name in filter(None, listed):
        path = ROOT / name
        if path.is_file() and b"\0" not in (content := path.read_bytes())[:4096]:
            texts.append((name, content.decode(errors="replace")))
    return texts


@pytest.mark.parametrize("what", FORBIDDEN)
def test_no_committed_text_holds(what: str) -> None:
    pattern = re.compile(FORBIDDEN[what])
    found = [
        f"{name}:{number}: {line.strip()[:120]}"
        for name, text in committed_texts()
        for number, line in enumerate(text.splitlines(), 1)
        if pattern.search(ALLOWED.sub("", line))
    ]
    assert found == []
