"""OpenAI Chat Completions, as a client of them expects them. Knows no script and opens no socket."""

import json

from tests.scripted_responses import openai_error
from tests.scripted_step import Json, Step, Usage4, tool_named
from tests.scripted_wire import REFUSAL, Dialect, Reply, assistant_messages, listed


def _tools(body: Json) -> dict[str, str]:
    return {str(tool["function"]["name"]): "" for tool in listed(body, "tools") if tool.get("type") == "function"}


def _reply(body: Json, step: Step, serial: int) -> Reply:
    calls = _calls(body, step, serial)
    finish = "content_filter" if step.refuse else "tool_calls" if calls else "stop"
    text = step.text or (REFUSAL if step.refuse else "")
    base: Json = {"id": f"chatcmpl-{serial}", "created": 0, "model": body.get("model")}
    message: Json = {"role": "assistant", "content": text or None} | ({"tool_calls": calls} if calls else {})
    choice = {"index": 0, "message": message, "finish_reason": finish}
    whole = base | {"object": "chat.completion", "choices": [choice], "usage": _usage(step.usage)}
    deltas: list[Json] = [{"role": "assistant", "content": ""}]
    deltas += [{"content": text}] if text else []
    deltas += [{"tool_calls": [{"index": index} | call]} for index, call in enumerate(calls)]
    chunk = base | {"object": "chat.completion.chunk"}
    choices: list[Json] = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
    choices += [{"index": 0, "delta": {}, "finish_reason": finish}]
    chunks = [chunk | {"choices": [choice]} for choice in choices]
    chunks += [chunk | {"choices": [], "usage": _usage(step.usage)}]
    return Reply(whole, [("", each) for each in chunks], end="[DONE]")


def _calls(body: Json, step: Step, serial: int) -> list[Json]:
    return [
        {
            "id": f"call_{serial}_{number}",
            "type": "function",
            "function": {
                "name": tool_named(call.tool, _tools(body), body),
                "arguments": json.dumps(call.filled(body)),
            },
        }
        for number, call in enumerate(step.calls)
    ]


def _usage(usage: Usage4) -> Json:
    read_in = usage.input + usage.cache_read + usage.cache_write
    return {
        "prompt_tokens": read_in,
        "prompt_tokens_details": {"cached_tokens": usage.cache_read, "cache_write_tokens": usage.cache_write},
        "completion_tokens": usage.output,
        "total_tokens": read_in + usage.output,
    }


CHAT = Dialect(assistant_messages, _tools, _reply, openai_error)
