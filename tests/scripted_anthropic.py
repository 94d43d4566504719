"""Anthropic Messages, as a client of it expects them. Knows no script and opens no socket."""

import json

from tests.scripted_step import Json, Step, tool_named
from tests.scripted_wire import REFUSAL, Dialect, Reply, assistant_messages, listed

ERRORS = {
    400: ("invalid_request_error", "scripted: bad request"),
    401: ("authentication_error", "invalid x-api-key"),
    403: ("permission_error", "scripted: not permitted"),
    404: ("not_found_error", "scripted: no such model"),
    429: ("rate_limit_error", "This request would exceed your account's rate limit. Please try again later."),
    500: ("api_error", "Internal server error"),
    529: ("overloaded_error", "Overloaded"),
}


def _tools(body: Json) -> dict[str, str]:
    return {str(tool.get("name")): "" for tool in listed(body, "tools")}


def _reply(body: Json, step: Step, serial: int) -> Reply:
    blocks = _blocks(body, step, serial)
    stop = "refusal" if step.refuse else "tool_use" if step.calls else "end_turn"
    usage = {
        "input_tokens": step.usage.input,
        "cache_creation_input_tokens": step.usage.cache_write,
        "cache_read_input_tokens": step.usage.cache_read,
        "output_tokens": step.usage.output,
    }
    whole: Json = {"id": f"msg_{serial}", "type": "message", "role": "assistant", "model": body.get("model")}
    whole |= {"content": blocks, "stop_reason": stop, "stop_sequence": None, "usage": usage}
    opening: Json = whole | {"content": [], "stop_reason": None, "usage": usage | {"output_tokens": 1}}
    events: list[Json] = [{"type": "message_start", "message": opening}]
    for index, block in enumerate(blocks):
        events += _block_events(index, block)
    delta = {"stop_reason": stop, "stop_sequence": None}
    events += [{"type": "message_delta", "delta": delta, "usage": {"output_tokens": step.usage.output}}]
    events += [{"type": "message_stop"}]
    return Reply(whole, [(event["type"], event) for event in events])


def _blocks(body: Json, step: Step, serial: int) -> list[Json]:
    text = step.text or (REFUSAL if step.refuse else "")
    blocks: list[Json] = [{"type": "text", "text": text}] if text else []
    for number, call in enumerate(step.calls):
        name = tool_named(call.tool, _tools(body), body)
        blocks += [{"type": "tool_use", "id": f"toolu_{serial}_{number}", "name": name, "input": call.filled(body)}]
    return blocks


def _block_events(index: int, block: Json) -> list[Json]:
    if block["type"] == "text":
        empty: Json = block | {"text": ""}
        delta: Json = {"type": "text_delta", "text": block["text"]}
    else:
        empty = block | {"input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
    return [
        {"type": "content_block_start", "index": index, "content_block": empty},
        {"type": "content_block_delta", "index": index, "delta": delta},
        {"type": "content_block_stop", "index": index},
    ]


def _error(status: int) -> Json:
    kind, message = ERRORS[status]
    return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_scripted"}


MESSAGES = Dialect(assistant_messages, _tools, _reply, _error)
