"""OpenAI Responses, as a client of it expects them. Knows no script and opens no socket."""

import json
from typing import cast

from tests.scripted_step import Json, Step, Usage4, tool_named
from tests.scripted_wire import REFUSAL, Dialect, Reply, listed

ERRORS = {
    400: ("invalid_request_error", "invalid_request", "scripted: bad request"),
    401: ("invalid_request_error", "invalid_api_key", "Incorrect API key provided."),
    403: ("invalid_request_error", "forbidden", "scripted: not permitted"),
    404: ("invalid_request_error", "model_not_found", "scripted: no such model"),
    429: ("insufficient_quota", "insufficient_quota", "You exceeded your current quota, please check your plan."),
    500: ("server_error", "server_error", "The server had an error while processing your request."),
    529: ("server_error", "overloaded", "The server is overloaded."),
}


def _tools(body: Json) -> dict[str, str]:
    """An MCP server's tools may be offered together, as one namespace."""
    found: dict[str, str] = {}
    for tool in listed(body, "tools"):
        members = listed(tool, "tools") if tool.get("type") == "namespace" else []
        found |= {str(member["name"]): str(tool["name"]) for member in members}
        if not members and tool.get("name"):
            found[str(tool["name"])] = ""
    return found


def _turns(body: Json) -> int:
    """Items of one reply count once: they follow each other, or their calls have the serial of one already seen."""
    turns, follows, seen = 0, False, set[str]()
    for item in listed(body, "input"):
        serial = str(item.get("call_id", "")).partition("-")[0] if item.get("type") == "function_call" else ""
        mine = bool(serial) or item.get("role") == "assistant"
        turns += mine and not follows and serial not in seen
        seen |= {serial} if serial else set()
        follows = mine
    return turns


def _reply(body: Json, step: Step, serial: int) -> Reply:
    items = _items(body, step, serial)
    whole: Json = {"id": f"resp_{serial}", "object": "response", "created_at": 0, "model": body.get("model")}
    whole |= {"status": "completed", "output": items, "usage": _usage(step.usage)}
    opening: Json = whole | {"status": "in_progress", "output": [], "usage": None}
    events: list[Json] = [{"type": "response.created", "response": opening}]
    for index, item in enumerate(items):
        events += _item_events(index, item)
    events += [{"type": "response.completed", "response": whole}]
    return Reply(whole, [(event["type"], event | {"sequence_number": n}) for n, event in enumerate(events)])


def _usage(usage: Usage4) -> Json:
    read_in = usage.input + usage.cache_read + usage.cache_write
    return {
        "input_tokens": read_in,
        "input_tokens_details": {"cached_tokens": usage.cache_read, "cache_write_tokens": usage.cache_write},
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": read_in + usage.output,
    }


def _items(body: Json, step: Step, serial: int) -> list[Json]:
    text = step.text or (REFUSAL if step.refuse else "")
    part = {"type": "refusal", "refusal": text} if step.refuse else _output_text(text)
    message = {"type": "message", "id": f"msg_{serial}", "role": "assistant", "status": "completed", "content": [part]}
    items: list[Json] = [message] if text else []
    tools = _tools(body)
    for number, call in enumerate(step.calls):
        name = tool_named(call.tool, tools, body)
        item: Json = {"type": "function_call", "id": f"fc_{serial}_{number}", "call_id": f"call{serial}-{number}"}
        item |= {"name": name, "arguments": json.dumps(call.filled(body)), "status": "completed"}
        items.append(item | ({"namespace": tools[name]} if tools.get(name) else {}))
    return items


def _output_text(text: str) -> Json:
    return {"type": "output_text", "text": text, "annotations": []}


def _item_events(index: int, item: Json) -> list[Json]:
    empty: Json = {"content": []} if item["type"] == "message" else {"arguments": ""}
    at = {"item_id": item["id"], "output_index": index}
    added = {"type": "response.output_item.added", "output_index": index}
    return [
        added | {"item": item | {"status": "in_progress"} | empty},
        *_inner_events(at, item),
        {"type": "response.output_item.done", "output_index": index, "item": item},
    ]


def _inner_events(at: Json, item: Json) -> list[Json]:
    if item["type"] == "function_call":
        kind = "response.function_call_arguments"
        done = {"type": f"{kind}.done", "name": item["name"], "arguments": item["arguments"]}
        return [at | {"type": f"{kind}.delta", "delta": item["arguments"]}, at | done]
    (part,) = cast(list[Json], item["content"])
    if part["type"] == "refusal":
        return []
    at = at | {"content_index": 0}
    return [
        at | {"type": "response.content_part.added", "part": _output_text("")},
        at | {"type": "response.output_text.delta", "delta": part["text"], "logprobs": []},
        at | {"type": "response.output_text.done", "text": part["text"], "logprobs": []},
    ]


def openai_error(status: int) -> Json:
    kind, code, message = ERRORS[status]
    return {"error": {"type": kind, "code": code, "message": message, "param": None}}


RESPONSES = Dialect(_turns, _tools, _reply, openai_error)
