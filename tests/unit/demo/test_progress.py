"""What is printed while a run goes on, and at its end."""

import io

from queues.demo.accounts import Accounts, Arrival
from queues.demo.progress import ProgressLine, progress_text, summary_text
from queues.demo.run import Outcome, Progress

DUE_MS = 1_000_000


def accounts_of_one_closed_and_one_waiting() -> Accounts:
    accounts = Accounts()
    accounts.accept("a", due_ms=DUE_MS)
    accounts.accept("b", due_ms=DUE_MS)
    accounts.receive(Arrival("a", 1, DUE_MS, DUE_MS + 3, None))
    return accounts


def progress(elapsed_s: float) -> Progress:
    return Progress(elapsed_s, accounts_of_one_closed_and_one_waiting().summary(), 2, 1)


def test_what_still_waits_is_not_shown_as_a_fault() -> None:
    text = progress_text(progress(4.5))
    assert "posted 2/2" in text
    assert "waiting 1" in text
    assert "p99 3 ms" in text
    assert "FAULTS" not in text


def test_without_a_terminal_there_is_a_line_now_and_then() -> None:
    out = io.StringIO()
    line = ProgressLine(out)
    for elapsed_s in (0.0, 0.5, 1.0, 2.0, 2.5):
        line.show(progress(elapsed_s))
    line.end()
    assert len(out.getvalue().splitlines()) == 2
    assert "\x1b" not in out.getvalue()


def test_the_summary_says_what_was_lost_and_that_it_is_not_right() -> None:
    summary = accounts_of_one_closed_and_one_waiting().summary()
    text = summary_text(Outcome(summary, 24.0, 0, "demo-1"))
    assert "NOT RIGHT" in text
    assert f"{'lost':<28}{1:>10}" in text
