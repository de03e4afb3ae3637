"""The demo's client repeats a request until the server answers it."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from queues.demo.client import Client, ServerUnreachableError, UnexpectedAnswerError
from queues.demo.launching import free_port


class Scripted(BaseHTTPRequestHandler):
    """Answers each request with the next status of a script, and then with 200."""

    protocol_version = "HTTP/1.1"
    script: list[int]

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        status = self.script.pop(0) if self.script else 200
        body = b'{"ok": true}'
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: the test says what it expects."""


@pytest.fixture
def server() -> Iterator[HTTPServer]:
    server = HTTPServer(("127.0.0.1", 0), type("One", (Scripted,), {"script": []}))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def client(server: HTTPServer) -> Iterator[Client]:
    client = Client(
        f"http://127.0.0.1:{server.server_port}", api_key="k", stop=threading.Event(), patience_s=30
    )
    yield client
    client.close()


def scripted(server: HTTPServer, *statuses: int) -> None:
    server.RequestHandlerClass.script.extend(statuses)  # type: ignore[attr-defined]


def test_a_store_that_says_not_now_is_asked_again(server: HTTPServer, client: Client) -> None:
    scripted(server, 503, 429, 201)
    assert client.request("POST", "/x", {}).status == 201
    assert client.repeats == 2


def test_an_answer_that_was_not_promised_is_an_error(server: HTTPServer, client: Client) -> None:
    scripted(server, 422)
    with pytest.raises(UnexpectedAnswerError, match="POST /x: 422"):
        client.expect("POST", "/x", {}, statuses=(201,))


def test_a_server_that_is_not_there_is_given_up_after_the_clients_patience() -> None:
    stop = threading.Event()
    client = Client(f"http://127.0.0.1:{free_port()}", api_key="k", stop=stop, patience_s=0)
    with pytest.raises(ServerUnreachableError, match="POST /x"):
        client.request("POST", "/x", {})


def test_a_stopped_run_sends_nothing_more(client: Client) -> None:
    client._stop.set()
    with pytest.raises(ServerUnreachableError, match="the run was stopped"):
        client.request("POST", "/x", {})
