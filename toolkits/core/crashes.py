"""Explains the death of a C++ solution: it runs once more, in a box, under gdb, from a build with debug information.

Signal, source line, arguments and the calls that led there. Never for timing, and never the reason of a status.
"""

import re
import shutil
import signal
from collections.abc import Collection
from pathlib import Path
from tempfile import TemporaryDirectory

from toolkits.core.errors import LabError
from toolkits.core.native_profile import built_driver
from toolkits.core.profile_box import room
from toolkits.core.profile_child import child_environment
from toolkits.core.rounds import named_round, recorded, rounds_of
from toolkits.core.schema import Solution, Task, Workload
from toolkits.core.toolkit import get_toolkit

MOST_FRAMES = 5
RUN_LIMIT_S = 5.0
FRAME_CHARS = 160
DRIVER_FLAGS = ("-g", "-DKERNEL_LAB_READ_ONLY")
COMMANDS = (
    *("set width 0", "set debuginfod enabled off", "set print thread-events off", "set startup-with-shell off"),
    *("set print frame-arguments scalars", "run", f"bt {MOST_FRAMES + 3}"),
)
_SIGNAL = re.compile(
    r"^(?P<thread>Program|Thread \S+).* received signal (?P<name>SIG\w+), (?P<what>.*?)\.$", re.MULTILINE
)
_FRAME = re.compile(
    r"^#\d+ +(?:0x[0-9a-f]+ in )?(?P<call>.+?\)) at (?P<place>\S+:\d+)$|^#\d+ +(?:0x[0-9a-f]+ in )?(?P<other>.+)$"
)
_OURS = ("call (", "kernel_lab_measured_call", "call_plan (")
"""Frames of the driver: what lies beyond is nobody's business."""


def missing() -> str:
    """Empty when crashes can be explained here, else what to install."""
    return "" if shutil.which("gdb") else "gdb: `apt install gdb`"


async def explained(task: Task, solution: Solution, builds: Path, where: str) -> str:
    """What gdb says of the first round in which it dies again, that of the judge first; empty: nothing is known."""
    if solution.toolkit != "cpp" or solution.binding or missing():
        return ""
    try:
        return await _explained(task, solution, builds, where)
    except LabError:  # an explanation is a help; what the judge saw stands without it
        return ""


async def _explained(task: Task, solution: Solution, builds: Path, where: str) -> str:
    build = await get_toolkit("cpp").compile(task, solution, builds, "debug")
    if not build.artifact:
        return ""
    driver = await built_driver(task, solution, builds, DRIVER_FLAGS)
    first = named_round(task, where)
    rounds = [*([first] if first else []), *rounds_of(task)]
    with TemporaryDirectory(prefix="kernel-lab-") as name:
        folder = Path(name)
        folder.chmod(0o755)  # whoever runs in a box may be another user
        for one, inputs in zip(rounds, await recorded(task, rounds, folder), strict=True):
            command = [str(driver), str(build.artifact), str(inputs)]
            reads = [driver, build.artifact, inputs]
            if await _dies(command, reads, folder):
                return await _under_gdb(command, reads, folder, one, solution.sources)
    return f"it did not die again in {len(rounds)} rounds of a build with -g: benchmark it with mode sanitize"


async def _dies(command: list[str], reads: list[Path], folder: Path) -> bool:
    with room(folder, reads) as own:
        done = await own.run(command, child_environment(own.outside), RUN_LIMIT_S)
    code = done.returncode or 0
    return code < 0 or (code - 128) in signal.valid_signals()


async def _under_gdb(
    command: list[str], reads: list[Path], folder: Path, one: Workload, sources: Collection[str]
) -> str:
    gdb = [str(shutil.which("gdb")), "-batch", "-nx", *(word for line in COMMANDS for word in ("-ex", line)), "--args"]
    with room(folder, reads) as own:
        done = await own.run([*gdb, *command], child_environment(own.outside), 2 * RUN_LIMIT_S)
    return told(done.output, sources, one.uuid)


def told(output: str, sources: Collection[str], where: str) -> str:
    """gdb's words in a few lines; empty when it saw no signal."""
    seen = _SIGNAL.search(output)
    if not seen:
        return ""
    frames = _frames(output[seen.end() :])
    own = next((frame for frame in frames if _is_own(frame, sources)), next(iter(frames), "an unknown place"))
    thread = f" in {seen['thread'].lower()}" if seen["thread"] != "Program" else ""
    head = f"{seen['name']}{thread} at {own.removeprefix('#0 ')} (gdb, a build with -g, {where})"
    return "\n".join([head, *(f"  #{number} {frame}" for number, frame in enumerate(frames))])


def _is_own(frame: str, sources: Collection[str]) -> bool:
    return frame.rpartition(" at ")[2].rpartition(":")[0] in sources


def _frames(text: str) -> list[str]:
    """The innermost calls with their arguments, up to the driver's."""
    found: list[str] = []
    for line in text.splitlines():
        match = _FRAME.match(line)
        if not match:
            continue
        call = match["call"] or match["other"]
        if call.startswith(_OURS) or len(found) == MOST_FRAMES:
            break
        place = f" at {match['place'].removeprefix('./')}" if match["place"] else ""
        found.append(f"{call[:FRAME_CHARS].replace(' (', '(', 1)}{place}")
    return found
