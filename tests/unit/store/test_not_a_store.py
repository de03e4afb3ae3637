"""What holds no log is said to be no store, and stays as it is."""

from pathlib import Path

import pytest

from queues.store.errors import NotAStore
from queues.store.inspection.verify import verify_store


@pytest.mark.parametrize("kind", ["missing", "empty", "a file"])
def test_what_holds_no_log_is_not_a_store(tmp_path: Path, kind: str) -> None:
    root = tmp_path / "store"
    if kind != "missing":
        root.mkdir()
    if kind == "a file":
        (root / "commitlog").touch()
    with pytest.raises(NotAStore) as refused:
        verify_store(root)
    assert refused.value.path == root
    assert not (root / "postdate").exists()
