"""What an inspection brings to light: counts, and what is wrong with file and offset."""

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

#: Findings that are kept; beyond them they are only counted.
FINDINGS_MAX: Final = 1000


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong."""

    #: The file.
    path: Path
    #: The byte in the file; None when the whole file is meant.
    offset: int | None
    #: What is wrong with it.
    reason: str

    def __str__(self) -> str:
        place = "" if self.offset is None else f" at {self.offset}"
        return f"{self.path}{place}: {self.reason}"


@dataclass(slots=True)
class Report:
    """All that an inspection found."""

    #: How many of each thing there are.
    counts: Counter[str] = field(default_factory=Counter)
    #: The first of what is wrong.
    findings: list[Finding] = field(default_factory=list)
    #: How much is wrong in all.
    findings_total: int = 0
    #: What is worth knowing and not wrong.
    notes: list[str] = field(default_factory=list)

    @property
    def sound(self) -> bool:
        """Whether nothing is wrong."""
        return self.findings_total == 0

    def add(self, path: Path, offset: int | None, reason: str) -> None:
        """Take down what is wrong."""
        self.findings_total += 1
        if len(self.findings) < FINDINGS_MAX:
            self.findings.append(Finding(path, offset, reason))
