"""rocprofv3's JSON as dispatches. Pure; knows no file."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from toolkits.core.errors import InvalidInput
from toolkits.core.profilers.rocprof import Dispatch

ROOT = "rocprofiler-sdk-tool"
NOT_WHOLE = "the JSON is cut or damaged ({}): copy it again or record it anew"
UNKNOWN = "its JSON lacks {}, which every known version of rocprofv3 writes: record it anew, as CSV if it stays so"
EMPTY = (
    "no kernel dispatch is in it: record it by `rocprofv3 --kernel-trace --output-format json -- program`, and see that"
    " the program launches kernels in the process that is profiled"
)


@dataclass(frozen=True)
class Recording:
    """The dispatches, and the device of most of them."""

    dispatches: list[Dispatch]
    device: str
    architecture: str
    command: list[str]


def parse(text: str) -> Recording:
    """Every dispatch of every process in the file."""
    try:
        document: Any = json.loads(text, parse_constant=_refused)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(NOT_WHOLE.format(str(error)[:80])) from None
    try:
        processes: list[dict[str, Any]] = list(document[ROOT])
        found = [dispatch for process in processes for dispatch in _process(process)]
        agents = {_handle(agent["id"]): agent for process in processes for agent in process["agents"]}
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise InvalidInput(UNKNOWN.format(str(error)[:80])) from None
    if not found:
        raise InvalidInput(EMPTY)
    agent = agents.get(found[0].agent, {})
    command = [str(word) for word in processes[0].get("metadata", {}).get("command", [])]
    return Recording(found, str(agent.get("product_name", "")), str(agent.get("name", "")), command)


def _refused(word: str) -> float:
    raise ValueError(f"{word} is no measurement")


def _process(process: Mapping[str, Any]) -> Iterator[Dispatch]:
    symbols = {symbol["kernel_id"]: symbol for symbol in process["kernel_symbols"]}
    names = {_handle(counter["id"]): str(counter["name"]) for counter in process.get("counters", [])}
    counted: set[tuple[str, int]] = set()
    for record in process["callback_records"].get("counter_collection", []):
        held = record["dispatch_data"]
        counters: dict[str, float] = {}
        for value in record["records"]:
            name = names.get(_handle(value["counter_id"]), "")
            counters[name] = counters.get(name, 0.0) + float(value["value"])
        counted.add((_handle(held["dispatch_info"]["agent_id"]), held["dispatch_info"]["dispatch_id"]))
        yield _dispatch(held, symbols, counters)
    for record in process["buffer_records"]["kernel_dispatch"]:
        # A run that traces and counts lists its dispatches twice.
        if (_handle(record["dispatch_info"]["agent_id"]), record["dispatch_info"].get("dispatch_id")) not in counted:
            yield _dispatch(record, symbols, {})


def _dispatch(
    record: Mapping[str, Any], symbols: Mapping[int, Mapping[str, Any]], counters: Mapping[str, float]
) -> Dispatch:
    info = record["dispatch_info"]
    symbol = symbols[info["kernel_id"]]
    return Dispatch(
        name=str(symbol.get("formatted_kernel_name") or symbol["kernel_name"]).removesuffix(".kd"),
        start_ns=int(record["start_timestamp"]),
        end_ns=int(record["end_timestamp"]),
        grid=_size(info["grid_size"]),
        block=_size(info["workgroup_size"]),
        lds_bytes=info.get("group_segment_size"),
        scratch_bytes=info.get("private_segment_size"),
        registers=symbol.get("arch_vgpr_count"),
        accumulation_registers=symbol.get("accum_vgpr_count"),
        scalar_registers=symbol.get("sgpr_count"),
        agent=_handle(info["agent_id"]),
        number=info.get("dispatch_id"),
        counters=counters,
    )


def _size(held: Mapping[str, int]) -> tuple[int, int, int]:
    return int(held["x"]), int(held["y"]), int(held["z"])


def _handle(held: Mapping[str, int]) -> str:
    return str(held["handle"])
