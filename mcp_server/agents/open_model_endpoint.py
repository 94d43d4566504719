"""The endpoint that an open model is behind: the client for it, and how much the model takes in. Knows no lab."""

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from openai import APIError, AsyncOpenAI
from openai.types import Model
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from mcp_server.agents.open_model import ADDRESS, KEY
from toolkits.core.schema import Record

NO_KEY = "none"
"""Servers at home ask for no key, but the protocol has a place for one."""
REPLY_TIMEOUT_S = 1800.0
"""A large prompt on a slow machine; a silence that means something is judged by the lab."""
ASK_TIMEOUT_S = 10.0


@asynccontextmanager
async def model_of(name: str) -> AsyncGenerator[OpenAIChatModel]:
    """Tries once: which errors are worth another try is decided in one place, and it is not the client."""
    async with AsyncOpenAI(
        api_key=os.environ.get(KEY) or NO_KEY,
        base_url=os.environ.get(ADDRESS) or None,
        max_retries=0,
        timeout=REPLY_TIMEOUT_S,
    ) as client:
        yield OpenAIChatModel(name, provider=OpenAIProvider(openai_client=client))


async def window_of(model: OpenAIChatModel) -> int:
    """Tokens, where the endpoint lists them (vLLM and llama.cpp do); 0: it does not say."""
    if not os.environ.get(ADDRESS):
        return 0
    try:
        listed = await model.client.models.list(timeout=ASK_TIMEOUT_S)
    except APIError:
        return 0
    return max((_window(one) for one in listed.data if one.id == model.model_name), default=0)


class _Meta(Record, extra="ignore"):
    n_ctx: int | None = None


class _Told(Record, extra="ignore"):
    max_model_len: int | None = None
    meta: _Meta | None = None


def _window(model: Model) -> int:
    """Fields beyond the protocol: `max_model_len` of vLLM, `meta.n_ctx` of llama.cpp."""
    told = _Told.model_validate(model.model_extra or {})
    return told.max_model_len or (told.meta and told.meta.n_ctx) or 0
