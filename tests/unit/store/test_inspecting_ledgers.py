"""`store_verify` looks at what is not derived: the ledgers of groups, and saved offsets."""

from pathlib import Path

import pytest

from queues.store.inspection.verify import verify_store
from tests.support.chainworld import GROUP, Process
from tests.support.clock import ManualClock


@pytest.fixture
def root(tmp_path: Path) -> Path:
    clock = ManualClock()
    process = Process(tmp_path / "store", clock)
    process.send(4)
    receipts = [one.receipt for one in process.receive()]
    process.consuming.ack(GROUP, receipts, clock.now_ms())
    process.keep_house()
    process.close()
    return tmp_path / "store"


def findings(root: Path) -> list[tuple[str, int | None]]:
    _, report = verify_store(root)
    return [(str(one.path.relative_to(root)), one.offset) for one in report.findings]


def test_ledgers_in_order_are_sound(root: Path) -> None:
    assert len(list((root / "postdate/ledger" / GROUP / "orders").iterdir())) >= 2
    assert findings(root) == []


def test_a_damaged_header_of_a_ledger_is_told(root: Path) -> None:
    path = root / "postdate/ledger" / GROUP / "orders/0"
    with path.open("r+b") as file:
        file.seek(40)
        file.write(b"\xff\xff")
    assert findings(root) == [(f"postdate/ledger/{GROUP}/orders/0", 0)]


def test_a_directory_in_a_ledgers_place_is_told(root: Path) -> None:
    path = root / "postdate/ledger" / GROUP / "orders/1"
    path.unlink()
    path.mkdir()
    assert findings(root) == [(f"postdate/ledger/{GROUP}/orders/1", None)]


@pytest.mark.parametrize("name", ["config/consumerOffset.json", "checkpoint"])
def test_a_directory_in_a_saved_files_place_is_told(root: Path, name: str) -> None:
    (root / name).unlink(missing_ok=True)
    (root / name).mkdir()
    assert findings(root) == [(name, None)]
