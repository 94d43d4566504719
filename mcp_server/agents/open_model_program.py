"""The program of `open_model`: a model and the lab's tools in a loop, told line by line on standard output.

Runs in the role's own process only: it loads pydantic-ai. What lines mean to the lab is said in `own_program`.
"""

import os
import sys
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import anyio
from pydantic_ai import Agent, CallToolsNode, FunctionToolCallEvent, FunctionToolResultEvent, UsageLimits
from pydantic_ai.capabilities import ProcessHistory
from pydantic_ai.exceptions import AgentRunError, ModelAPIError
from pydantic_ai.messages import AgentStreamEvent, ModelMessage, ModelResponse, ToolCallPart
from pydantic_ai.models.openai import OpenAIChatModel

from mcp_server.agents.agent import Ended, Usage
from mcp_server.agents.open_model import Job
from mcp_server.agents.open_model_endings import PASSING, LabGone, after, final, overflows
from mcp_server.agents.open_model_endpoint import model_of, window_of
from mcp_server.agents.open_model_history import History
from mcp_server.agents.open_model_tools import LOST, FileTools, LabTools
from mcp_server.agents.open_model_window import Window, size
from mcp_server.agents.own_program import RESULT_CHARACTERS, one_line, tell, tell_result, until_interrupted
from mcp_server.agents.worktree_files import WorktreeFiles

RETRIES_S = (0.4, 0.8, 1.6)
"""Waits before the further tries of a request that failed in passing; longer troubles are the lab's to wait out."""
TOOL_RETRIES = 8
"""Calls that fit no schema, in a row, that a small model may make before it counts as lost."""
FILE_TOOLS = {"list_files", "read_file", "write_file", "edit_file"}
NO_LIMITS = UsageLimits(request_limit=None)
"""Limits are the lab's: it sees what every reply costs."""


class Loop:
    """One session with a model, over as many runs as errors and a small context make necessary."""

    def __init__(self, job: Job, model: OpenAIChatModel, lab: LabTools, window: Window) -> None:
        self._job = job
        self._window = window
        self._history = History(job.sessions / f"{job.session}.json")
        self._failures = 0
        self._worked = any(_calls_lab(message) for message in self._history.messages)
        toolsets = [lab, FileTools(WorktreeFiles(job.worktree))]
        trimmed = ProcessHistory[object](window.fit)
        self._agent = Agent(model, toolsets=toolsets, retries=TOOL_RETRIES, capabilities=[trimmed])

    async def end(self) -> Ended:
        """Until the model is done or nothing more can be tried."""
        prompt: str | None = self._job.prompt
        while True:
            try:
                return await self._run(prompt)
            except ModelAPIError as problem:
                if not await self._another_try(problem):
                    return after(problem)
            except (AgentRunError, LabGone) as problem:
                return after(problem)
            prompt = None  # it is in the history by now

    async def _run(self, prompt: str | None) -> Ended:
        history = self._history
        async with self._agent.iter(prompt, message_history=history.messages, usage_limits=NO_LIMITS) as run:
            reply = ModelResponse(parts=[])
            try:
                async for node in run:
                    if isinstance(node, CallToolsNode):
                        reply = node.model_response
                        self._heard(reply, run.all_messages())
                        async with node.stream(run.ctx) as events:
                            await _tell_calls(events)
                    history.save(run.all_messages())
            finally:
                history.save(run.all_messages())
                history.mend()
        return final(reply.text or "", reply.finish_reason, self._worked)

    def _heard(self, reply: ModelResponse, messages: list[ModelMessage]) -> None:
        """Book a reply before any of its calls is made."""
        self._failures = 0
        self._worked = self._worked or _calls_lab(reply)
        asked = [message for message in messages if message is not reply]
        self._window.learn(asked, reply.usage.input_tokens)
        tell("reply", text=reply.text or "", finish=reply.finish_reason, usage=_usage(reply, asked, self._job.model))

    async def _another_try(self, problem: ModelAPIError) -> bool:
        if overflows(problem):
            tell("retry", text=f"the context is full and is cut: {problem}")
            return self._window.shrink(self._history.messages)
        if not isinstance(problem, PASSING) or self._failures >= len(RETRIES_S):
            return False
        tell("retry", text=str(problem))
        await anyio.sleep(RETRIES_S[self._failures])
        self._failures += 1
        return True


async def _tell_calls(events: AsyncIterator[AgentStreamEvent]) -> None:
    async for event in events:
        if isinstance(event, FunctionToolCallEvent):
            tell("tool_call", tool=event.part.tool_name, arguments=event.part.args_as_json_str())
        elif isinstance(event, FunctionToolResultEvent):
            text = one_line(event.part.model_response_str(), RESULT_CHARACTERS)
            tell("tool_result", tool=event.part.tool_name, outcome=event.part.outcome, text=text)


def _calls_lab(message: ModelMessage) -> bool:
    return any(isinstance(part, ToolCallPart) and part.tool_name not in FILE_TOOLS for part in message.parts)


def _usage(reply: ModelResponse, asked: list[ModelMessage], model: str) -> Usage:
    """Endpoints count what came from a cache, or went there, as input too; here the kinds do not overlap.

    Some count nothing at all: a cap on tokens holds for those too, by our own estimate.
    """
    used = reply.usage
    if not used.total_tokens:
        return Usage(model=model, input_tokens=size(asked), output_tokens=size([reply]))
    cached = used.cache_read_tokens + used.cache_write_tokens
    return Usage(
        model=model,
        input_tokens=max(used.input_tokens - cached, 0),
        cache_read_tokens=used.cache_read_tokens,
        cache_write_tokens=used.cache_write_tokens,
        output_tokens=used.output_tokens,
    )


async def play(job: Job, token: str) -> Ended:
    """The whole attempt, once the lab answers."""
    tell("session", text=job.session)
    lab = LabTools(job.url, token)
    try:
        async with model_of(job.model) as model, lab:
            window = Window(job.window or await window_of(model))
            return await Loop(job, model, lab, window).end()
    except LOST as problem:
        return after(LabGone(str(problem) or type(problem).__name__))


def main() -> int:
    job = Job.model_validate_json(Path(sys.argv[1]).read_text(encoding="utf-8"))
    token = os.environ.pop("KERNEL_LAB_TOKEN")
    return tell_result(anyio.run(until_interrupted, partial(play, job, token)))


if __name__ == "__main__":
    sys.exit(main())
