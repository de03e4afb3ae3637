"""What goes wrong with timed messages, whichever engine keeps them."""

from queues.store.errors import StoreError


class EngineBroken(StoreError):
    """The timer's own files do not hold what they should."""

    hint = "They are rebuilt from the schedule table by itself."


class EngineBusy(StoreError):
    """The engine takes nothing at the moment; it will in a few milliseconds."""


class StepNotOpened(StoreError):
    """The timer's step was asked to advance before it was opened."""
