"""A client is a keep-alive connection to the REST API that repeats a request until it is answered.

Every request of the demo may be sent twice: a post whose answer was lost makes a second message,
whose id the accounts tell apart; a cancel or an ack says the same the second time; messages of a
lost `receive` answer come again when their lease runs out. A refused or broken connection, 429 and
503 are repeated for `patience_s`; every other answer is the caller's to judge.
"""

import http.client
import json
import threading
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from queues.store.clock import SystemClock

#: Statuses that say "not now": the request has changed nothing.
NOT_NOW = frozenset({429, 503})
PAUSE_S = 0.05
#: Above the longest long poll, so that a silent server is noticed and a waiting one left alone.
TIMEOUT_S = 30.0


class ServerUnreachableError(Exception):
    """The server gave no usable answer for longer than the client's patience."""

    def __init__(self, method: str, path: str, reason: str) -> None:
        super().__init__(f"{method} {path}: {reason}")
        self.method = method
        self.path = path
        self.reason = reason


class UnexpectedAnswerError(Exception):
    """The server answered what the API does not promise for this request."""

    def __init__(self, method: str, path: str, answer: "Answer") -> None:
        super().__init__(f"{method} {path}: {answer.status} {answer.body!r}")
        self.method = method
        self.path = path
        self.answer = answer


@dataclass(frozen=True, slots=True)
class Answer:
    """A status and the JSON that came with it."""

    #: The HTTP status code.
    status: int
    #: The decoded JSON; None for an empty body.
    body: Any


class Client:
    """One connection for one thread."""

    def __init__(
        self, base_url: str, *, api_key: str, stop: threading.Event, patience_s: float = 60
    ) -> None:
        address = urlsplit(base_url)
        kind = (
            http.client.HTTPSConnection if address.scheme == "https" else http.client.HTTPConnection
        )
        self._connection = kind(address.hostname or "127.0.0.1", address.port, timeout=TIMEOUT_S)
        self._prefix = address.path.rstrip("/")
        self._headers = {"Authorization": f"Bearer {api_key}", "Content-Type": "application/json"}
        self._stop = stop
        self._patience_s = patience_s
        self._clock = SystemClock()
        #: Answers that never came or said "not now", for the summary of a run with faults.
        self.repeats = 0

    def request(self, method: str, path: str, body: object = None) -> Answer:
        """The first usable answer.

        Raises ServerUnreachableError when there is none within the patience, or the run stops.
        """
        give_up_ms = self._clock.monotonic_ms() + int(self._patience_s * 1000)
        reason = "the run was stopped"
        while not self._stop.is_set():
            answer, reason = self.try_once(method, path, body)
            if answer is not None and answer.status not in NOT_NOW:
                return answer
            self.repeats += 1
            if self._clock.monotonic_ms() > give_up_ms:
                break
            self._stop.wait(PAUSE_S)
        raise ServerUnreachableError(method, path, reason)

    def expect(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        statuses: tuple[int, ...] = (200,),
    ) -> Answer:
        """The answer, if its status is one of these; raises UnexpectedAnswerError otherwise."""
        answer = self.request(method, path, body)
        if answer.status not in statuses:
            raise UnexpectedAnswerError(method, path, answer)
        return answer

    def close(self) -> None:
        self._connection.close()

    def try_once(self, method: str, path: str, body: object = None) -> tuple[Answer | None, str]:
        """One request and its answer, whatever it is, or None; and a sentence for the reader."""
        payload = None if body is None else json.dumps(body).encode()
        try:
            self._connection.request(method, self._prefix + path, payload, self._headers)
            response = self._connection.getresponse()
            content = response.read()
            answer = Answer(response.status, json.loads(content) if content else None)
        except (OSError, http.client.HTTPException, ValueError) as error:
            self._connection.close()
            return None, f"{type(error).__name__}: {error}"
        return answer, f"status {answer.status} {answer.body!r}"
