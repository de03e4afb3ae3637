"""The store as its consumers see it: queues to read, and chains of failed messages to write."""

from pathlib import Path
from typing import Protocol

from queues.store.disk import Disk
from queues.store.failing import ChainWriter, FailedStore
from queues.store.ordering import ChainReader, OrderedReader


class _Chains(ChainWriter, ChainReader, Protocol):
    """What consuming needs of the chains."""


class ConsumedStore(FailedStore, OrderedReader, Protocol):
    """What consuming needs of a store."""

    @property
    def chains(self) -> _Chains:
        """What writes and reads the chains."""

    @property
    def root(self) -> Path:
        """The store's directory."""

    @property
    def disk(self) -> Disk:
        """Where it lies."""

    def flush(self) -> int:
        """Put the log on the device."""
