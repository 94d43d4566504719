"""A load generator: one busy process a core, for figures on a machine that has other work."""

import os
import sys
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from toolkits.core.process import started_process


@asynccontextmanager
async def busy_cores(busy: bool) -> AsyncGenerator[None]:
    """Keep every core that may be used busy meanwhile; without `busy`, nothing."""
    async with AsyncExitStack() as stack:
        for _ in os.sched_getaffinity(0) if busy else ():
            spin = [sys.executable, "-c", "while True: pass"]
            await stack.enter_async_context(started_process(spin, cwd=Path.cwd()))
        yield
