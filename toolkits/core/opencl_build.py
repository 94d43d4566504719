"""Child process that builds an OpenCL program in the current folder and says what the compiler says of it.

    python opencl_build.py        with opencl_host.py and the sources beside it; build.json asks, report.json answers

Knows neither a task nor a solution; runs no kernel.
"""

import json
from pathlib import Path
from typing import Any

import opencl_host  # pyright: ignore[reportMissingImports]  it lies beside this file where this file runs
import pyopencl as cl

Json = dict[str, Any]


def report(folder: Path, launch: Json) -> Json:
    """The build log, and each kernel with its arguments and what it needs."""
    device = opencl_host.device()
    context = cl.Context([device])
    seen: Json = {"toolchain": " ".join(device.platform.version.split(",")[0].split()), "device": device.name.strip()}
    seen |= {"most_work_items": device.max_work_group_size, "local_bytes": device.local_mem_size}
    try:
        program = opencl_host.program(context, folder, launch)
    except cl.Error as error:
        return seen | {"ok": False, "log": str(error), "kernels": []}
    log = program.get_build_info(device, cl.program_build_info.LOG)
    return seen | {"ok": True, "log": log, "kernels": [_kernel(kernel, device) for kernel in program.all_kernels()]}


def _kernel(kernel: Any, device: Any) -> Json:
    info = cl.kernel_work_group_info
    return {
        "name": kernel.function_name,
        "arguments": [
            {
                "name": kernel.get_arg_info(place, cl.kernel_arg_info.NAME),
                "type": kernel.get_arg_info(place, cl.kernel_arg_info.TYPE_NAME),
            }
            for place in range(kernel.num_args)
        ],
        "most_work_items": kernel.get_work_group_info(info.WORK_GROUP_SIZE, device),
        "local_bytes": kernel.get_work_group_info(info.LOCAL_MEM_SIZE, device),
        "wanted": list(kernel.get_work_group_info(info.COMPILE_WORK_GROUP_SIZE, device)),
    }


if __name__ == "__main__":
    where = Path.cwd()
    answer = report(where, json.loads((where / "build.json").read_text(encoding="utf-8")))
    (where / "report.json").write_text(json.dumps(answer), encoding="utf-8")
