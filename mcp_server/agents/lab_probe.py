"""Whether the lab is there for a role, asked as the role. For programs whose agent does not say so itself."""

from typing import cast

import anyio
import httpx2
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client

PATIENCE_S = 30.0
GONE = (MCPError, httpx2.HTTPError, OSError, TimeoutError, anyio.ClosedResourceError, anyio.BrokenResourceError)


async def lab_trouble(url: str, token: str) -> str:
    """What is wrong with the connection; empty: the lab lists its tools."""
    trouble = ""
    try:
        async with (
            httpx2.AsyncClient(
                headers={"Authorization": f"Bearer {token}"}, timeout=PATIENCE_S, trust_env=False
            ) as http,
            Client(streamable_http_client(url, http_client=http)) as client,
        ):
            await client.list_tools()
    except* GONE as problems:
        trouble = _first(problems)
    return trouble


def _first(problem: BaseException) -> str:
    if isinstance(problem, BaseExceptionGroup):
        return _first(cast("BaseExceptionGroup[BaseException]", problem).exceptions[0])
    return str(problem) or type(problem).__name__
