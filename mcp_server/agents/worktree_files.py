"""Reading and changing the files of one folder, for models that have no file tools of their own.

Knows no model: a mistake is a LabError that tells the model what to do. Nothing outside the folder can be named.
"""

from itertools import accumulate
from pathlib import Path

from toolkits.core.errors import InvalidInput, NotInWorkspace

LONGEST_READ = 24_000
"""Characters of one answer; the rest is read from a later line on."""
LONGEST_WRITE = 1_000_000
MOST_ENTRIES = 400


class WorktreeFiles:
    """Each method but `inside` becomes a tool: its signature the schema, its docstring the description."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder.resolve()

    def list_files(self, path: str = ".") -> str:
        """List the files below a folder of your working directory, with their sizes in bytes."""
        folder = self.inside(path)
        if not folder.is_dir():
            raise NotInWorkspace(f"{path} is no folder: list_files without a path shows what there is")
        files = [file for file in sorted(folder.rglob("*")) if ".git" not in file.parts and file.is_file()]
        lines = [f"{file.relative_to(self._folder)}  {file.lstat().st_size}" for file in files[:MOST_ENTRIES]]
        more = [f"... and {len(files) - MOST_ENTRIES} more"] if len(files) > MOST_ENTRIES else []
        return "\n".join([*lines, *more]) or "no files yet"

    def read_file(self, path: str, first_line: int = 1) -> str:
        """Read a text file of your working directory, from a line on; a long one is cut and says where it goes on."""
        lines = self._text(path).splitlines(keepends=True)[max(first_line, 1) - 1 :]
        ends = list(accumulate(len(line) for line in lines))
        taken = max(sum(end <= LONGEST_READ for end in ends), 1)
        text = "".join(lines[:taken])[:LONGEST_READ]
        rest = f"\n[cut: {len(lines) - taken} more lines, read on with first_line={max(first_line, 1) + taken}]"
        return text + rest if taken < len(lines) else text

    def write_file(self, path: str, content: str) -> str:
        """Write a whole file in your working directory; folders are made and an old file is replaced."""
        file = self.inside(path)
        if len(content) > LONGEST_WRITE:
            raise InvalidInput(f"{len(content)} characters are more than a file may have here ({LONGEST_WRITE})")
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(content, encoding="utf-8")
        except (OSError, ValueError) as error:
            raise InvalidInput(f"{path} cannot be written: {error}") from error
        return f"{path} written, {len(content)} characters"

    def edit_file(self, path: str, old: str, new: str) -> str:
        """Replace one passage of a file; `old` must occur exactly once, so give enough of its surroundings."""
        text = self._text(path)
        found = text.count(old) if old else 0
        if found != 1:
            raise InvalidInput(f"`old` occurs {found} times in {path}: it must occur once, read the file again")
        return self.write_file(path, text.replace(old, new))

    def _text(self, path: str) -> str:
        try:
            return self.inside(path).read_text(encoding="utf-8", errors="replace")
        except OSError as error:
            raise NotInWorkspace(f"{path} cannot be read ({error.strerror}): list_files shows what there is") from error

    def inside(self, path: str) -> Path:
        """The real path; links that lead out are followed first, and refused."""
        try:
            real = (self._folder / path).resolve()
        except (OSError, ValueError, RuntimeError):
            raise InvalidInput(f"{path[:200]!r} is not a path that could exist here: give another") from None
        if not real.is_relative_to(self._folder) or ".git" in real.relative_to(self._folder).parts:
            raise NotInWorkspace(f"{path} lies outside your working directory: use paths relative to it")
        return real
