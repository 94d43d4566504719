"""The only module that knows paths: where everything lies under the workspace root, and which paths are allowed."""

import re
import shutil
import tempfile
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from pathlib import Path

from mcp_server.folders import SOLUTION_FILE, read_loose, read_solution, read_task, write_solution
from toolkits.core.errors import HarnessError, InvalidInput, NotInWorkspace
from toolkits.core.schema import Solution, Task

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class Workspace:
    """Paths of one workspace root; the user's tasks and lessons are laid over the shipped ones."""

    def __init__(self, root: Path, extra_roots: Sequence[Path] = ()) -> None:
        self.root = root.resolve()
        self._extra_roots = [path.resolve() for path in extra_roots]
        self._cwd = Path.cwd().resolve()

    # --- what may be read ---------------------------------------------------------------------------------------

    def allowed_roots(self) -> list[Path]:
        """Folders that a path given to a tool may lie in."""
        return [self._cwd, self.root, _shipped("kernels"), _shipped("lessons"), *self._extra_roots]

    def resolve(self, path: str, base: Path | None = None) -> Path:
        """The real path, if it lies in an allowed root; a relative one starts at `base`, else where the server does."""
        try:
            real = ((base or self._cwd) / path).resolve()
            real.exists()  # raises for what no file system can hold
        except (OSError, ValueError, RuntimeError):
            raise InvalidInput(f"{path[:200]!r} is not a path that could exist here: give another") from None
        if not any(real.is_relative_to(root) for root in self.allowed_roots()):
            roots = ", ".join(str(root) for root in dict.fromkeys(self.allowed_roots()))
            raise NotInWorkspace(f"{real} lies outside the allowed folders, work in one of: {roots}")
        return real

    # --- tasks and solutions ------------------------------------------------------------------------------------

    def tasks(self) -> list[str]:
        return sorted(self._task_folders())

    def task(self, name: str) -> Task:
        folder = self._task_folders().get(name)
        if folder is None:
            raise NotInWorkspace(f"no task {name!r}{_choice(name, self.tasks(), 'the tasks are')}")
        return read_task(folder)

    def solutions(self, task: Task) -> dict[str, Path]:
        """The solutions that come with a task."""
        return {file.parent.name: file.parent for file in sorted(task.folder.glob(f"solutions/*/{SOLUTION_FILE}"))}

    def solution(self, task: Task, path: str, base: Path | None = None) -> Solution:
        """Read a solution by the name it has in the task, else from its folder."""
        known = self.solutions(task)
        folder = known[path] if path in known else self.resolve(path, base)
        if not folder.exists():
            raise NotInWorkspace(f"no folder {folder}, nor a solution {path!r}{_choice(path, known, 'the task has')}")
        if not folder.is_dir():
            raise InvalidInput(f"{folder} is a file: give the folder that holds it and its {SOLUTION_FILE}")
        return read_solution(folder, task.name)

    def loose(self, path: str, base: Path | None = None) -> dict[str, str]:
        """Sources that belong to no task: a file, or a folder of them."""
        found = self.resolve(path, base)
        if not found.exists():
            raise NotInWorkspace(f"no file or folder {found}")
        return read_loose(found)

    def store(self, solution: Solution) -> Path:
        """Keep a solution under its content hash for ever, in a form that can be benchmarked by path."""
        folder = self.root / "solutions" / solution.id
        if not folder.exists():
            aside = Path(tempfile.mkdtemp(prefix=".aside-", dir=self._made(folder.parent)))
            try:
                write_solution(solution, aside)
                aside.chmod(0o755)
                _rename_once(aside, folder)
            finally:
                shutil.rmtree(aside, ignore_errors=True)
        return folder

    def stored(self, solution_id: str, task: Task) -> Solution:
        """A stored solution, seen to be unchanged."""
        folder = self.root / "solutions" / _name(solution_id)
        if not folder.is_dir():
            raise NotInWorkspace(f"no stored solution {solution_id!r}: only measured ones are stored")
        solution = read_solution(folder, task.name)
        if solution.id != solution_id:
            raise InvalidInput(f"{folder} was changed after it was stored: its content is now {solution.id}")
        return solution

    # --- lessons ------------------------------------------------------------------------------------------------

    def lesson_files(self) -> dict[str, Path]:
        """Slug -> file."""
        files = [(base, file) for base in self._layers("lessons") for file in base.glob("*/*.md")]
        return {file.relative_to(base).with_suffix("").as_posix(): file for base, file in files}

    def user_lesson_path(self, slug: str) -> Path:
        """Where the user's own lesson of that name lies; its folder exists."""
        topic, _, name = slug.partition("/")
        return self._made(self.root / "lessons" / _name(topic)) / f"{_name(name)}.md"

    # --- what the lab writes ------------------------------------------------------------------------------------

    @property
    def database(self) -> Path:
        return self.root / "lab.db"

    @property
    def builds(self) -> Path:
        return self._made(self.root / "builds")

    @property
    def fonts(self) -> Path:
        """What the library that draws knows of this machine's fonts, which takes it seconds to find out."""
        return self._made(self.root / "fonts")

    def run_folder(self, run: str) -> Path:
        return self._made(self.root / "runs" / _name(run))

    def repository(self, run: str) -> Path:
        """The run's own git repository; it may not exist."""
        return self.run_folder(run) / "repository"

    def team_folder(self, run: str, team: int) -> Path:
        return self._made(self.run_folder(run) / "teams" / f"{team:03d}")

    def role_folder(self, run: str, team: int, name: str) -> Path:
        return self._made(self.team_folder(run, team) / _name(name))

    def log_path(self, job: str) -> Path:
        """Where the whole log of a job goes; the file may not exist."""
        return self._made(self.root / "logs") / f"{_name(job)}.log"

    def profile_folder(self, job: str) -> Path:
        return self._made(self.root / "profiles" / _name(job))

    def _made(self, folder: Path) -> Path:
        make_root(self.root)
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise HarnessError(
                f"cannot make the folder {folder} ({error.strerror}): remove what lies there or make room, or name"
                " another workspace by --root or KERNEL_LAB_ROOT",
                "not_writable",
            ) from error
        return folder

    def _task_folders(self) -> dict[str, Path]:
        files = [file for base in self._layers("kernels") for file in base.glob("*/task.yaml")]
        return {file.parent.name: file.parent for file in files}

    def _layers(self, kind: str) -> list[Path]:
        """Shipped first, so that the user's own wins."""
        return [_shipped(kind), self.root / kind]


def worktree_of(role_folder: Path) -> Path:
    """Where a role works."""
    return role_folder / "worktree"


def make_root(root: Path) -> None:
    """Create the workspace root when it is missing, invisible to the git repository it may lie in."""
    try:
        root.mkdir(parents=True, exist_ok=True)
        if not any(root.iterdir()):
            (root / ".gitignore").write_text("*\n", encoding="utf-8")
    except OSError as error:
        raise HarnessError(
            f"cannot make the workspace {root} ({error.strerror}): name another by --root or KERNEL_LAB_ROOT"
        ) from error


def _rename_once(aside: Path, folder: Path) -> None:
    """Another process may have put the same content there meanwhile: as good."""
    try:
        aside.rename(folder)
    except OSError:
        if not folder.is_dir():
            raise


def _shipped(kind: str) -> Path:
    """Inside the installed package, else in the checkout that this file is part of."""
    packaged = Path(__file__).parent.resolve() / "shipped" / kind
    return packaged if packaged.is_dir() else Path(__file__).resolve().parents[1] / kind


def _name(text: str) -> str:
    """A name that is safe as a part of a path."""
    if not _NAME.fullmatch(text):
        raise InvalidInput(f"{text[:80]!r} does not serve as a name: use letters, digits, '.', '_' and '-', at most 64")
    return text


def _choice(wanted: str, known: Iterable[str], label: str) -> str:
    names = sorted(known)
    near = get_close_matches(wanted, names, n=1, cutoff=0.5)
    return f": {f'did you mean {near[0]!r}? ' if near else ''}{label} {', '.join(names) or 'none'}"
