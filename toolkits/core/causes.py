"""Every cause code there is, with what it means and what to do about it. Imported on both sides of the judge: no torch.

A status says what became of a candidate, the cause says why, in a word that programs may compare. Signals are a family
of their own: `signal_11` and so on, one for each number.
"""

import re
import signal
from contextlib import suppress
from enum import StrEnum


class Cause(StrEnum):
    """A stable code; `meaning` is for whoever reads the code, `hint` for whoever has to act on it."""

    meaning: str
    hint: str

    def __new__(cls, code: str, meaning: str, hint: str = "") -> "Cause":
        cause = str.__new__(cls, code)
        cause._value_ = code
        cause.meaning, cause.hint = meaning, hint
        return cause

    # --- the candidate does not build or load ---
    COMPILE_ERROR = (
        "compile_error",
        "the solution does not build",
        "fix the first error; later ones often follow from it",
    )

    # --- the candidate's values are wrong ---
    WRONG_VALUES = ("wrong_values", "elements differ from the reference by more than the task allows")
    NAN_IN_OUTPUT = (
        "nan_in_output",
        "an element is NaN where the reference has none",
        "look for division by zero, exp overflow, or reads of memory that was not set",
    )
    NON_FINITE_DIFFERS = (
        "non_finite_differs",
        "an infinity stands where the reference has another value, or the other way round",
        "look for an overflow, a mask that is not applied, or a row without any element",
    )
    OUTPUT_NOT_WRITTEN = (
        "output_not_written",
        "an output still holds what the judge put there before the call",
        "write every element of every output: before each call they hold NaN, or 0x81 in every byte",
    )
    NOT_REPEATABLE = (
        "not_repeatable",
        "two calls on the same input gave different bytes",
        "look for a race, or for scratch memory that is used before it is set",
    )

    # --- the candidate does not run ---
    EXCEPTION = ("exception", "the function raised, or returned the wrong type", "the function raised: see detail")
    EXIT_EARLY = (
        "exit_early",
        "the solution ended its own process",
        "return from the function instead of calling exit, and leave the judge's descriptors open",
    )
    TIME_LIMIT = (
        "time_limit",
        "the call, or loading the solution, did not end within its limit",
        "the call did not return within the task's limit: look for an endless loop, or a far too slow path",
    )
    OUT_OF_BOUNDS_WRITE = (
        "out_of_bounds_write",
        "bytes before or after a tensor were overwritten",
        "a tile runs past the end of a tensor: mask the tail",
    )
    OOM = (
        "oom",
        "the solution wanted more memory than it may have",
        "use less scratch memory, give it back before returning, and keep nothing between calls; the detail says how"
        " much is allowed",
    )
    LAUNCH_FAILED = (
        "launch_failed",
        "a kernel did not start, or failed on the device",
        "check what every launch returns: sizes of grid, block and shared memory, and addresses past a tensor's end",
    )
    INPUT_MODIFIED = (
        "input_modified",
        "an input on the device held something else after the call",
        "inputs are read-only: write to outputs, or to memory of your own",
    )
    SANITIZER = (
        "sanitizer",
        "a sanitizer saw a memory error, a race or undefined behaviour",
        "mend the first finding and sanitize again; right values on this machine do not excuse it",
    )
    MISSING_WORKLOAD = (
        "missing_workload",
        "the result does not account for every workload that was asked for",
        "benchmark again; if it stays, the judge lost a workload: report it with the log",
    )

    # --- the candidate cheats ---
    STALE_CONTENT = (
        "stale_content",
        "right on first sight, wrong on new content at the same address",
        "right on first sight, wrong on new content at the same address: nothing may be cached over calls",
    )
    OUTPUT_CHANGED_AFTER_RETURN = (
        "output_changed_after_return",
        "outputs changed after the call had returned",
        "finish all work before returning",
    )
    CLOCK_MISMATCH = (
        "clock_mismatch",
        "the solution's clock and the judge's do not agree",
        "do all work inside the function and in its own process, and leave the clocks alone",
    )
    EXTRA_PROCESS = (
        "extra_process",
        "the solution left other processes running, or asked for one while it was timed",
        "start processes only while it is loaded or in the first call of a size, and wait for their end; in timed calls"
        " use threads, and join them",
    )

    # --- the task is at fault ---
    BAD_REFERENCE = (
        "bad_reference",
        "the task's own code raised, returned what task.yaml does not say, or cannot judge anybody",
        "the task is at fault, not the solution: mend its reference.py as the detail says, then benchmark again",
    )
    REFERENCE_TIMEOUT = (
        "reference_timeout",
        "the task's own code did not return within `reference_timeout_s`",
        "the task is at fault, not the solution: look for an endless loop in its reference.py, make it faster, use"
        " smaller sizes, or raise `reference_timeout_s` in task.yaml",
    )

    # --- the lab is at fault ---
    BASELINE_FAILED = (
        "baseline_failed",
        "the baseline failed, or does not pass its own task",
        "the solution is not to blame: choose another `baseline`, or mend this one",
    )
    JUDGE_NOT_STARTED = (
        "judge_not_started",
        "the judge's process did not start",
        "the solution is not to blame: run `kernel-lab doctor`",
    )
    JUDGE_DIED = (
        "judge_died",
        "the judge's process ended during an evaluation",
        "the solution is not to blame: benchmark again, the next evaluation starts another judge",
    )
    JUDGE_HUNG = (
        "judge_hung",
        "the judge's process said nothing for too long and was killed",
        "the solution is not to blame: benchmark again, the next evaluation starts another judge",
    )
    OUT_OF_MEMORY = (
        "out_of_memory",
        "the lab's own processes ran out of memory",
        "the solution is not to blame: free memory on this machine, or use a smaller workload, then benchmark again",
    )
    DISK_FULL = (
        "disk_full",
        "the lab cannot write: the disk is full, or a limit on file sizes is reached",
        "the solution is not to blame: make room under the workspace and the temporary folder, then benchmark again",
    )
    NOT_WRITABLE = (
        "not_writable",
        "the lab cannot write where it has to",
        "the solution is not to blame: make the folder in the detail writable, or name another by --root or TMPDIR",
    )
    DEVICE_FAILED = (
        "device_failed",
        "the GPU cannot be used, or its memory is not free",
        "the solution is not to blame: see who else uses the device (`kernel-lab devices`), then benchmark again",
    )
    LAB_FAILED = (
        "lab_failed",
        "the lab itself failed in a way that has no code of its own",
        "the solution is not to blame: benchmark again; if it stays, run `kernel-lab doctor`",
    )


SIGNAL_HINTS = {
    signal.SIGSEGV: "invalid memory access: sizes that are not multiples of the tile, alignment, or a write to an input"
    " (inputs are mapped read-only)",
    signal.SIGILL: "illegal instruction: the code was built for another CPU",
    signal.SIGABRT: "abort: a failed assertion, or memory that was freed twice",
    signal.SIGFPE: "arithmetic fault: an integer division by zero",
    signal.SIGBUS: "access to a mapping that is not there any more, or memory is full",
    signal.SIGKILL: "killed twice in a row: it kills itself, or uses more memory than there is",
}
_SIGNAL = re.compile(r"signal_(\d+)")


def signal_cause(number: int) -> str:
    """The code of a process that was ended by a signal."""
    return f"signal_{number}"


def is_known(code: str) -> bool:
    """Whether `code` is a cause, or one of the family of signals."""
    match = _SIGNAL.fullmatch(code)
    return int(match[1]) in signal.valid_signals() if match else bool(_found(code))


def hint(code: str) -> str:
    """What to do about a cause; empty where the detail alone says it."""
    if match := _SIGNAL.fullmatch(code):
        return next((text for number, text in SIGNAL_HINTS.items() if number == int(match[1])), "")
    found = _found(code)
    return found.hint if found else ""


def _found(code: str) -> Cause | None:
    with suppress(ValueError):
        return Cause(code)
    return None
