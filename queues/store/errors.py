"""What can go wrong in the store: one base, one class a kind, fields instead of formatted text.

Absent, corrupt and full are three classes. Each carries a `hint`: what an operator does about it.
"""

from typing import Any, ClassVar


class StoreError(Exception):
    """The store could not do what it was asked."""

    hint: ClassVar[str] = ""

    def __init__(self, **fields: Any) -> None:
        self.fields = fields
        super().__init__(self.message)

    def __getattr__(self, name: str) -> Any:
        try:
            return self.__dict__["fields"][name]
        except KeyError:
            raise AttributeError(name) from None

    def __reduce__(self) -> tuple[Any, ...]:
        return _remade, (type(self), self.fields)

    @property
    def message(self) -> str:
        """The class's sentence, the fields, and the hint."""
        told = ", ".join(f"{name}={value}" for name, value in self.fields.items())
        sentence = (self.__doc__ or "").split("\n", 1)[0]
        return " ".join(part for part in (sentence, f"[{told}]" if told else "", self.hint) if part)


def _remade(kind: type[StoreError], fields: dict[str, Any]) -> StoreError:
    return kind(**fields)


class NotAStore(StoreError):
    """The directory holds no store."""

    hint = "Name the directory that holds `commitlog`."


class StoreUnsupported(StoreError):
    """The store cannot be opened for writing here."""


class StoreVersionUnknown(StoreUnsupported):
    """The store was written by a version of Postdate that this one does not know."""

    hint = "Upgrade Postdate, or open the store with the version that wrote it."


class NetworkFileSystem(StoreUnsupported):
    """The store lies on a network file system, where locks and shared memory do not hold."""

    hint = "Put POSTDATE_DATA_DIR on a local disk."


class HeldByBroker(StoreUnsupported):
    """A RocketMQ broker has this store open."""

    hint = "Stop the broker first, or name another directory."


class NotOurStore(StoreUnsupported):
    """The directory holds a store that a RocketMQ broker wrote; it can be read, not written."""

    hint = "Use store_verify and store_dump on it, or name another directory."


class FormatDamaged(StoreUnsupported):
    """The file that tells the version and the sizes of the store is missing or damaged."""

    hint = (
        "Put it back from a backup, or from a store that was made with the same sizes and timer "
        "settings: it tells nothing else. Without it nothing can be read; all else is untouched."
    )


class SettingsDiffer(StoreUnsupported):
    """A size of the store is fixed when it is made and differs from the setting."""

    hint = "Set it back, or make a new store."


class WrongFileSize(StoreUnsupported):
    """A file of the store has a length that it cannot have."""

    hint = (
        "Restore it; a derived file (all but commitlog and config) may be deleted and is rebuilt."
    )


class RecordCorrupt(StoreError):
    """A record in the log is damaged."""

    hint = "Good records after it stay readable; `manage.py store_verify` lists what is damaged."


class BodyUnreadable(StoreError):
    """A record's compressed body cannot be decompressed."""


class ConfigCorrupt(StoreError):
    """A configuration file is not JSON."""

    hint = "Restore it, or delete it together with its backup to begin anew."


class RecordGone(StoreError):
    """The record's segment was removed by retention."""


class DiskFull(StoreError):
    """The disk is full."""

    hint = "Free some space; sends work again by themselves."


class StoreFull(StoreError):
    """The store takes no new messages: the rest of the disk is kept for hand-overs and cancels."""

    hint = "Free some space; sends work again by themselves."


class StoreClosing(StoreError):
    """The store is closing or closed."""

    hint = "Try again in a moment."


class StoreForked(StoreError):
    """The store was opened before this process was forked; its locks belong to the parent."""

    hint = "Open the store in the process that uses it."


class StoreFailed(StoreError):
    """A write or sync failed and the store takes no more until it is reopened and verified."""

    hint = "Look at the disk, then restart Postdate."


class ScheduleDamaged(StoreFailed):
    """The schedule table says that a record settled the message, but the log ends before it."""

    hint = (
        "Stop Postdate and see what `manage.py store_verify` says; then delete `postdate/schedule`"
        " in the store's directory: it is rebuilt from the log at the next start."
    )


class MessageIllegal(StoreError):
    """The message cannot be stored."""


class LevelTableInvalid(StoreError):
    """The delay level string cannot be understood."""

    hint = "Write levels as `1s 5s 10s 30s 1m 2h 1d`, with one space between them."


class LedgerBusy(StoreError):
    """Another process has held a group's ledger for too long."""

    hint = "Try again; a process that stands still is restarted by its supervisor."


class MembersFull(StoreError):
    """A broadcasting group has as many consumers as it may."""

    hint = "Let consumers keep their consumer_id; one that was not seen for 7 days is forgotten."


class LedgerDamaged(StoreError):
    """The head of a group's ledger is damaged."""

    hint = "It is written anew from config/consumerOffset.json; some messages may come again."
