"""A command without its database ends with a sentence, not a traceback."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.core.management.base import CommandError
from django.db import OperationalError, ProgrammingError

from queues.codes import Code
from queues.problems import Problem


@contextmanager
def needs_database(exit_code: int = 1) -> Iterator[None]:
    """Around what reads the database, or a `handle`: it may not be there, or lack its tables."""
    try:
        yield
    except (OperationalError, ProgrammingError) as error:
        raise _told(error, exit_code) from error
    except Problem as problem:  # The control plane's, which the API answers with 503.
        if problem.code is not Code.CONTROL_UNAVAILABLE:
            raise
        raise _told(problem.__cause__ or problem, exit_code) from problem


def _told(error: BaseException, exit_code: int) -> CommandError:
    reason = " ".join(str(error).split())
    return CommandError(
        f"The database cannot be used ({reason}): if it was never set up, run"
        " `manage.py bootstrap`, or `manage.py migrate` for its tables alone.",
        returncode=exit_code,
    )
