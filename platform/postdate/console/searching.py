"""A search for messages: what the address asks for, and what it finds."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from queues import wires
from queues.access import Caller, Patterns
from queues.admin.pages import read_moment
from queues.api.tokens import make_token, read_token
from queues.problems import Problem
from queues.selectors.listing import Filter, list_messages
from queues.selectors.scheduled import Window
from queues.store import MessageView
from queues.store.limits import DUE_MS_MAX

PAGE = 50
STATES = {
    "scheduled": "Waiting",
    "ready": "Delivered",
    "cancelled": "Cancelled",
    "parked": "Parked",
}


@dataclass(slots=True)
class Found:
    """What a search found."""

    views: list[MessageView] = field(default_factory=list)
    count: int = 0
    exact: bool = True
    #: The next page's token; empty: there is none.
    following: str = ""


class Search:
    """What is looked for."""

    def __init__(self, data: Mapping[str, str]) -> None:
        self.data = data
        self.text = data.get("q", "").strip()
        self.topic = data.get("topic", "").strip()
        self.tag = data.get("tag", "").strip()
        self.level = read_level(data.get("level", ""))
        self.kind = data.get("kind", "") if data.get("kind") in ("level", "timed") else ""
        if self.level is not None:
            self.kind = "level"
        self.state = data.get("state", "") if data.get("state") in STATES else ""
        self.problem = ""
        self.due_after_ms = self._moment("due_after")
        self.due_before_ms = self._moment("due_before")

    @property
    def states(self) -> list[tuple[str, str, bool]]:
        """The states to choose from: value, word, whether it is the chosen one."""
        return [(value, word, value == self.state) for value, word in STATES.items()]

    @property
    def levels(self) -> list[tuple[int, str, bool]]:
        """The delay levels to choose from: number, words, whether it is the chosen one."""
        return [(number, words, number == self.level) for number, words in level_choices()]

    @property
    def words(self) -> str:
        """How what was found is called."""
        if not self.state:
            return "with this key" if self.text else "waiting"
        return STATES[self.state].lower()

    @property
    def is_narrowed(self) -> bool:
        """Whether anything was asked for."""
        return any((self.text, self.topic, self.tag, self.kind, self.state)) or (
            self.due_after_ms is not None or self.due_before_ms is not None
        )

    def run(self, by: str) -> Found:
        """Look for it."""
        if self.problem:
            return Found()
        if self.state == "ready" and not self.text and not self.topic:
            self.problem = "Name a topic, or a key, to see what was delivered."
            return Found()
        window = Window(
            topic=self.topic or None,
            kind=self.kind or None,
            level=self.level,
            due_from_ms=_bounded(self.due_after_ms, 0),
            due_before_ms=_bounded(self.due_before_ms, DUE_MS_MAX),
        )
        # A key is in the index whatever became of its message: without a state, all are meant.
        state = self.state or (None if self.text else "scheduled")
        wanted = Filter(window, state=state, key=self.text or None, tag=self.tag or None)
        marks = ["console", self.topic, self.kind, self.level, self.text, self.tag, self.state,
                 self.due_after_ms, self.due_before_ms]  # fmt: skip
        try:
            position = read_token(marks, self.data.get("page") or None)
            listed = list_messages(wanted, caller=everyone(by), position=position, limit=PAGE)
        except Problem as problem:
            self.problem = problem.detail
            return Found()
        token = make_token(marks, listed.last) if listed.last else ""
        return Found(listed.views, listed.count, exact=listed.exact, following=token)

    def _moment(self, name: str) -> int | None:
        try:
            return read_moment(self.data, name)
        except Problem as problem:
            self.problem = problem.detail
            return None


def read_level(written: str) -> int | None:
    """A delay level as an address names it; None for anything that the table does not have."""
    if not (written.isascii() and written.isdecimal() and len(written) <= len("999")):
        return None
    level = int(written)
    return level if 1 <= level <= wires.wiring().get_rules().levels.max_level else None


def level_choices() -> list[tuple[int, str]]:
    """The delay levels with their delays in words."""
    delays = wires.wiring().get_rules().levels.text.split(" ")
    return [(level, f"{level}: {delay}") for level, delay in enumerate(delays, start=1)]


def _bounded(moment_ms: int | None, otherwise: int) -> int:
    return otherwise if moment_ms is None else max(0, min(moment_ms, DUE_MS_MAX))


def everyone(by: str) -> Caller:
    """A person with the permission sees every topic."""
    any_name = Patterns(["*"])
    return Caller(key_id=0, by=by, scopes=frozenset({"inspect"}), topics=any_name, groups=any_name)
