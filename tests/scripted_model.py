"""A model on loopback that plays a script to real clients. What it says is in the script, how is in the dialects.

    with ScriptedModel([Step(calls=[Call("list_tasks")]), Step(text="done")]) as model:
        ...  # Anthropic clients: model.url; OpenAI ones: model.url + "/v1"
        assert [request.path for request in model.requests]

The step is chosen by the number of the model's turns already in the conversation, so a resumed one goes on from there.
"""

import itertools
import json
import threading
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self, cast

from tests.scripted_anthropic import MESSAGES
from tests.scripted_chat import CHAT
from tests.scripted_responses import RESPONSES
from tests.scripted_step import Call, Json, Script, Step, Usage4, step_of
from tests.scripted_wire import Dialect, Reply

__all__ = ["Call", "Request", "ScriptedModel", "Step", "Usage4"]

DIALECTS = {"/messages": MESSAGES, "/responses": RESPONSES, "/chat/completions": CHAT}
"""By the end of the path that is posted to."""
SECRET_HEADERS = {"authorization", "x-api-key"}


@dataclass(frozen=True)
class Request:
    """One request for a reply, as it came."""

    path: str
    model: str
    body: dict[str, Any]
    headers: dict[str, str]
    """Lower case; of those that hold a secret only that they were there."""
    aside: bool
    """No tools were offered: a title or the like, not the conversation."""


class ScriptedModel:
    """Serves from entering to leaving; leaving ends every silence."""

    def __init__(self, script: Script) -> None:
        self.requests: list[Request] = []
        self.script = script
        """May be replaced while it serves."""
        self.leaving = threading.Event()
        self.serials = itertools.count()
        self._server = _Server(self)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def turns(self) -> list[Request]:
        """The requests that were about the conversation itself."""
        return [request for request in self.requests if not request.aside]

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.leaving.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Server(ThreadingHTTPServer):
    request_queue_size = 128
    daemon_threads = True

    def __init__(self, model: ScriptedModel) -> None:
        self.model = model
        super().__init__(("127.0.0.1", 0), _Connection)


class _Connection(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: what matters is in `requests`."""

    def handle(self) -> None:
        with suppress(ConnectionError):  # clients are killed on purpose
            super().handle()

    def do_HEAD(self) -> None:
        self._send(200, {})

    def do_GET(self) -> None:
        if self.path.split("?")[0].endswith("/models"):
            entry = {"id": "scripted", "object": "model", "type": "model", "display_name": "Scripted"}
            self._send(200, {"object": "list", "data": [entry], "models": [], "has_more": False})
        else:
            self._send(404, {"error": {"message": "scripted: no such page"}})

    def do_POST(self) -> None:
        path = self.path.split("?")[0]
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        body = cast(Json, json.loads(raw or b"{}"))
        dialect = next((found for end, found in DIALECTS.items() if path.endswith(end)), None)
        if path.endswith("/count_tokens"):
            self._send(200, {"input_tokens": 1234})
        elif dialect is None:
            self._send(404, {"error": {"message": "scripted: no such page"}})
        else:
            self._answer(path, body, dialect)

    def _answer(self, path: str, body: Json, dialect: Dialect) -> None:
        model = cast(_Server, self.server).model
        name, has_tools = str(body.get("model", "")), bool(dialect.tools(body))
        model.requests.append(Request(path, name, body, _shown(self.headers.items()), aside=not has_tools))
        step = step_of(model.script, name, dialect.turns(body), has_tools)
        if step.hang:
            model.leaving.wait()
            self.close_connection = True
        elif step.http:
            self._send(step.http, step.body or dialect.error(step.http), step.headers)
        else:
            reply = dialect.reply(body, step, next(model.serials))
            self._reply(reply, step, streamed=bool(body.get("stream")))

    def _reply(self, reply: Reply, step: Step, streamed: bool) -> None:
        if not streamed:
            return self._send(200, reply.whole, step.headers)
        self.close_connection = True
        self._head(200, {"content-type": "text/event-stream", "connection": "close", **step.headers})
        events = reply.events[: len(reply.events) // 2] if step.stream_cut else reply.events
        lines = [(f"event: {name}\n" if name else "") + f"data: {json.dumps(data)}\n\n" for name, data in events]
        lines += [f"data: {reply.end}\n\n"] if reply.end and not step.stream_cut else []
        self.wfile.write("".join(lines).encode())
        return None

    def _send(self, status: int, body: Json, headers: Mapping[str, str] | None = None) -> None:
        data = json.dumps(body).encode()
        self._head(status, {"content-type": "application/json", "content-length": str(len(data)), **(headers or {})})
        if self.command != "HEAD":
            self.wfile.write(data)

    def _head(self, status: int, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in {"request-id": "req_scripted", **headers}.items():
            self.send_header(name, value)
        self.end_headers()


def _shown(headers: Iterable[tuple[str, str]]) -> dict[str, str]:
    lower = {name.lower(): value for name, value in headers}
    return {name: "(set)" if name in SECRET_HEADERS else value for name, value in lower.items()}
