"""`manage.py timer_rebuild`, and the refusal that names it."""

from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from postdate import wiring
from queues.store import Store
from queues.store.resizing import TimerSizesDiffer
from scheduler.engine.places import WHEEL_FILE
from scheduler.wheel.step import WheelStep
from tests.support.storeworld import send_timed


@pytest.fixture
def config(settings: Any, tmp_path: Path) -> Any:
    """A store with a wheel, at rest, and settings that ask for narrower slots."""
    config = settings.POSTDATE.model_copy(update={"data_dir": tmp_path})
    store = Store.open(config.store_dir, wiring.store_settings(config))
    step = WheelStep(store)
    step.open()
    step.advance(1_700_000_000_000)
    step.close()
    store.close()
    settings.POSTDATE = config.model_copy(update={"timer_precision_ms": 500})
    return settings.POSTDATE


def test_a_start_with_other_settings_is_refused_until_the_timer_is_rebuilt(
    config: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(TimerSizesDiffer, match="timer_rebuild"):
        wiring._open_store()
    with pytest.raises(CommandError, match="timer_rebuild"):
        call_command("bootstrap")
    call_command("timer_rebuild")
    told = capsys.readouterr().out
    assert "before  slots of 1s, 7d ahead" in told
    assert "after   slots of 500ms, 7d ahead" in told
    assert not (config.store_dir / WHEEL_FILE).exists()
    store = wiring._open_store()
    assert store.sizes.timer_precision_ms == 500
    store.close()


@pytest.mark.parametrize("data", [b"\xff\xff\xff", None], ids=["damaged", "missing"])
def test_bootstrap_stops_at_a_store_whose_sizes_are_lost(
    config: Any, settings: Any, data: bytes | None
) -> None:
    settings.POSTDATE = config.model_copy(update={"timer_precision_ms": 1000})
    with wiring._open_store() as store:
        send_timed(store, 1_000)
    path = config.store_dir / "postdate" / "format.json"
    path.unlink() if data is None else path.write_bytes(data)
    with pytest.raises(CommandError, match=r"format\.json.*from a backup"):
        call_command("bootstrap")
    assert not (config.data_dir / "postdate.sqlite3").exists()


def test_nothing_is_rebuilt_under_a_running_platform(
    config: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    before = config.model_copy(update={"timer_precision_ms": 1000})
    with Store.open(config.store_dir, wiring.store_settings(before)):
        with pytest.raises(SystemExit, match="2"):
            call_command("timer_rebuild")
        assert (config.store_dir / WHEEL_FILE).exists()
    assert "Stop Postdate first" in capsys.readouterr().err


def test_sizes_that_the_formats_cannot_hold_are_refused(
    config: Any, settings: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    settings.POSTDATE = config.model_copy(update={"timer_precision_ms": 200_000})
    with pytest.raises(SystemExit, match="2"):
        call_command("timer_rebuild")
    assert "timer_precision_ms" in capsys.readouterr().err
