"""Twins: the synchronous client is the asynchronous one without its `async` and `await`.

`python tests/support/twins.py` writes `postdate/client/sync` from `postdate/client/aio`;
`tests/unit/client/test_twins.py` compares the two.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
AIO, SYNC = ROOT / "platform/postdate/client/aio", ROOT / "platform/postdate/client/sync"
_CHANGES = (
    (r"\basync (def|with|for)\b", r"\1"),
    (r"\bawait ", ""),
    (r"\bAsync(?=[A-Z])", ""),
    (r"\bhttpx\.AsyncClient\b", "httpx.Client"),
    (r"\b__aenter__\b", "__enter__"),
    (r"\b__aexit__\b", "__exit__"),
    (r"\baclose\b", "close"),
    (r"\bapause\b", "pause"),
    (r"postdate\.client\.aio\b", "postdate.client.sync"),
)
_PACKAGE = '''"""The synchronous client, made from `postdate.client.aio`: change that, not this."""
'''


def twin_of(text: str) -> str:
    """The synchronous text of an asynchronous one, formatted."""
    for pattern, replacement in _CHANGES:
        text = re.sub(pattern, replacement, text)
    ruff = [Path(sys.executable).parent / "ruff"]
    for command in (["check", "--select", "I", "--fix", "--quiet"], ["format", "--quiet"]):
        text = subprocess.run(
            [*ruff, *command, "--stdin-filename", "platform/postdate/client/sync/x.py", "-"],
            cwd=ROOT,
            input=text,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
    return text


def twins() -> dict[Path, str]:
    """Each file of the synchronous client and what it must hold."""
    made = {SYNC / path.name: path.read_text() for path in sorted(AIO.glob("*.py"))}
    return {
        path: _PACKAGE if path.name == "__init__.py" else twin_of(text)
        for path, text in made.items()
    }


if __name__ == "__main__":
    for path, text in twins().items():
        path.write_text(text)
