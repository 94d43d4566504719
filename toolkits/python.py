"""Python solutions: a function on torch CPU tensors. Reads the source and never runs it."""

import ast
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

from toolkits.core.builds import content_key, find, keep, work_folder, write_sources
from toolkits.core.diagnostics import MOST
from toolkits.core.errors import InvalidInput
from toolkits.core.schema import CompileResult, Diagnostic, Solution, Task
from toolkits.core.signature import plan_of, python_plan_signature, python_signature
from toolkits.core.toolkit import Purpose, Toolkit

SOURCES = "src"


class PythonToolkit:
    """Checks syntax and entry function, and keeps the sources where the worker imports them."""

    name = "python"

    def missing(self) -> str:
        return ""

    async def compile(self, task: Task, solution: Solution, builds: Path, purpose: Purpose = "run") -> CompileResult:
        """Check the sources and write them under `builds`; both purposes are the same build."""
        if solution.flags or solution.tunables:
            raise InvalidInput("a python solution has neither compiler flags nor tunables: use constants in its source")
        plan = python_plan_signature(task) if plan_of(task, solution) else ""
        folder = builds.resolve() / content_key("python sources", solution.id, python_signature(task), plan)
        if found := find(folder):
            return found
        started = time.monotonic()
        diagnostics = check_sources(task, solution)
        ok = not any(diagnostic.severity == "error" for diagnostic in diagnostics)
        with work_folder(builds) as work:
            write_sources(work / SOURCES, solution.sources)
            result = CompileResult(
                loads_as="python",
                ok=ok,
                solution=solution.id,
                toolkit="python",
                artifact=work / SOURCES if ok else None,
                diagnostics=diagnostics[:MOST],
                log="\n".join(f"{d.file}:{d.line}:{d.column}: {d.severity}: {d.message}" for d in diagnostics[:MOST]),
                build_ms=(time.monotonic() - started) * 1e3,
            )
            return keep(work, folder, result)


def check_sources(task: Task, solution: Solution) -> list[Diagnostic]:
    """Errors of every file, then of the entry function, then warnings."""
    errors: list[Diagnostic] = []
    cautions: list[Diagnostic] = []
    for name in sorted(source for source in solution.sources if source.endswith(".py")):
        module = _parse(name, solution.sources[name], errors, cautions)
        if module and name == solution.entry_file:
            errors += _entry_errors(module, task, solution)
    if not solution.entry_file.endswith(".py"):
        errors.append(_error(solution.entry_file, "the entry file of a python solution must end in .py"))
    if solution.plan_function and not solution.plan_entry_point.startswith(f"{solution.entry_file}::"):
        errors.append(_error(solution.entry_file, "plan and run of a python solution must be in the same file"))
    return [*errors, *cautions]


def _parse(name: str, text: str, errors: list[Diagnostic], cautions: list[Diagnostic]) -> ast.Module | None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            module = ast.parse(text, filename=name)
            compile(text, name, "exec", dont_inherit=True)
        except SyntaxError as error:
            errors.append(_error(name, error.msg, error.lineno, error.offset))
            return None
        except (ValueError, RecursionError, MemoryError) as error:
            errors.append(_error(name, f"does not parse: {error or type(error).__name__}"))
            return None
    cautions += [
        Diagnostic(severity="warning", message=str(warning.message), file=name, line=warning.lineno)
        for warning in caught
    ]
    return module


def _entry_errors(module: ast.Module, task: Task, solution: Solution) -> list[Diagnostic]:
    planned, outputs = bool(solution.plan_function), task.outputs if solution.destination_passing_style else ()
    passed = [*(["plan"] if planned else []), *task.inputs, *outputs]
    signature = python_signature(task, planned=planned).replace("def run(", f"def {solution.entry_function}(")
    errors = _function_errors(module, solution.entry_file, solution.entry_function, signature, passed)
    if task.plan and planned:
        signature = python_plan_signature(task).replace("def plan(", f"def {solution.plan_function}(")
        errors += _function_errors(module, solution.entry_file, solution.plan_function, signature, task.plan.inputs)
    return errors


def _function_errors(module: ast.Module, file: str, wanted: str, signature: str, passed: list[str]) -> list[Diagnostic]:
    bindings = list(_bindings(module.body))
    if not any(name in (wanted, "*") for name, _ in bindings):
        return [_error(file, f"no function {wanted!r} at the top level: define `{signature}`")]
    last = [node for name, node in bindings if name == wanted][-1:]
    return [error for node in last if isinstance(node, ast.FunctionDef) for error in _arity(node, file, passed)]


def _arity(function: ast.FunctionDef, file: str, passed: list[str]) -> list[Diagnostic]:
    """Whether the function takes what the task passes; a decorator may change that, so it is believed."""
    if function.decorator_list:
        return []
    takes = len(function.args.posonlyargs) + len(function.args.args)
    needs = takes - len(function.args.defaults)
    if needs <= len(passed) and (takes >= len(passed) or function.args.vararg):
        return []
    message = f"{function.name} takes {takes} arguments, the task passes {len(passed)}: {', '.join(passed)}"
    return [_error(file, message, function.lineno, function.col_offset + 1)]


def _bindings(body: list[ast.stmt]) -> Iterator[tuple[str, ast.stmt]]:
    """Names that the module's own statements bind, `*` for a star import."""
    for node in body:
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                yield name, node
            case ast.Assign(targets=targets):
                yield from ((target.id, node) for target in targets if isinstance(target, ast.Name))
            case ast.AnnAssign(target=ast.Name(id=name)):
                yield name, node
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                yield from ((alias.asname or alias.name, node) for alias in names)
            case ast.If() | ast.With() | ast.Try():
                yield from _bindings(
                    [child for child in ast.walk(node) if isinstance(child, ast.stmt) and child is not node]
                )
            case _:
                pass


def _error(file: str, message: str, line: int | None = None, column: int | None = None) -> Diagnostic:
    return Diagnostic(severity="error", message=message, file=file, line=line, column=column)


TOOLKIT: Toolkit = PythonToolkit()
