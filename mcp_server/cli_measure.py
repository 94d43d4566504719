"""The verbs that compile, check, time and profile. Exit status 1: the candidate is not good."""

import re
from pathlib import Path
from typing import Annotated

import typer

from mcp_server.cli_verbs import AsJson, Task, done, settings_of, show
from mcp_server.jobs import ENDED
from mcp_server.schema import BenchmarkAnswer, CompileAnswer, JobAnswer
from toolkits.core.errors import LabError
from toolkits.core.schema import Mode, Status

Folder = Annotated[str, typer.Argument(help="Folder of a solution, or its name in the task.", show_default=False)]


def compile(
    context: typer.Context,
    what: Annotated[
        list[str],
        typer.Argument(help="TASK PATH, or a .cu file or a folder of them, of no task.", show_default=False),
    ],
    target: Annotated[
        list[str] | None, typer.Option(help="GPU architecture such as sm_90a or gfx942; may be repeated.")
    ] = None,
    json: AsJson = False,
) -> None:
    """Build a solution; show the compiler's diagnostics, and what it made of each GPU kernel."""
    if len(what) > 2:
        raise typer.BadParameter("give TASK and PATH, or one file or folder of no task")
    task, path = what if len(what) == 2 else ("", what[0])
    targets = target or []  # an option that is not given is None here
    _end(done(context, lambda lab, caller, report: lab.compile(caller, task, path, None, report, targets)), json)


def benchmark(
    context: typer.Context,
    task: Task,
    path: Folder,
    check: Annotated[bool, typer.Option("--check", help="Correctness only.")] = False,
    sanitize: Annotated[bool, typer.Option("--sanitize", help="Look for memory errors, races, overflow.")] = False,
    baseline: Annotated[str, typer.Option(help="Solution to compare with; else the task's first baseline.")] = "",
    fresh: Annotated[bool, typer.Option("--fresh", help="Draw all inputs anew.")] = False,
    workload: Annotated[list[str] | None, typer.Option(help="Time only this one; may be repeated.")] = None,
    json: AsJson = False,
) -> None:
    """Check a solution, time it against the baseline, record the result. Runs to the end."""
    if check and sanitize:
        raise typer.BadParameter("give --check or --sanitize: one compares values, the other looks for defects")
    mode: Mode = "sanitize" if sanitize else "check" if check else "full"
    chosen = workload or None  # an option that is not given is an empty list here
    _end(
        done(
            context,
            lambda lab, caller, report: lab.benchmark(caller, task, path, mode, baseline, fresh, None, report, chosen),
        ),
        json,
    )


def profile(
    context: typer.Context,
    what: Annotated[
        list[str],
        typer.Argument(
            help="TASK PATH, or `-- program arguments`, or a report, or an earlier and a later one.", show_default=False
        ),
    ],
    workload: Annotated[str, typer.Option(help="uuid of a workload; else the first.")] = "",
    json: AsJson = False,
) -> None:
    """Find what limits a solution or any program, or digest a report: profile TASK PATH, -- program, FILE [FILE]."""
    command = what if settings_of(context).dashes else []
    if not command and len(what) > 2:
        raise typer.BadParameter("give TASK and PATH, or `--` and a command line, or one or two reports")
    if command:
        task, path, against = "", "", ""
    elif len(what) == 1 or _is_report(what[0]):
        task, path, against = "", what[-1], what[0] if len(what) == 2 else ""
    else:
        (task, path), against = what, ""
    _end(
        done(
            context,
            lambda lab, caller, report: lab.profile(
                caller, task, path, workload, command, None, report, against, anywhere=caller.role is None
            ),
        ),
        json,
    )


def _is_report(name: str) -> bool:
    """Tasks have plain names: neither a file nor the id of a job."""
    return Path(name).is_file() or re.fullmatch(r"j[0-9a-f]{12}", name) is not None


def get_result(
    context: typer.Context,
    id: Annotated[str, typer.Argument(help="Id of a job or an evaluation.", show_default=False)],
    json: AsJson = False,
) -> None:
    """Wait for a job of any server on this root, or show a recorded evaluation."""
    _end(done(context, lambda lab, caller, report: lab.get_result(caller, id, None, report)), json)


def cancel(
    context: typer.Context,
    job: Annotated[str, typer.Argument(help="Id of a job.", show_default=False)],
    json: AsJson = False,
) -> None:
    """End a job, in whichever server it runs."""
    show(done(context, lambda lab, caller, _report: lab.cancel(caller, job)), json)


def _end(answer: JobAnswer, as_json: bool) -> None:
    """Show the answer; the exit status says whether the candidate is good."""
    if answer.state == "failed":
        raise LabError(answer.error)
    show(answer, as_json)
    if not _good(answer):
        raise typer.Exit(1)


def _good(answer: JobAnswer) -> bool:
    if answer.state not in ENDED or answer.state == "cancelled":
        return False
    if isinstance(answer, BenchmarkAnswer):
        return answer.status is Status.PASSED
    return not isinstance(answer, CompileAnswer) or bool(answer.ok)
