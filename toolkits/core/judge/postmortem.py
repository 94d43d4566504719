"""Why a judge ended: from its exit status and its last words to an error with a remedy. Pure functions over text."""

import re
import signal
from dataclasses import dataclass
from pathlib import Path

from toolkits.core.causes import Cause
from toolkits.core.errors import HarnessError

LAST_WORDS = 700
"""Characters of the judge's standard error that are shown."""
SIGNS: dict[Cause, re.Pattern[str]] = {
    Cause.OUT_OF_MEMORY: re.compile(r"[Cc]an(?:no|')t allocate memory|MemoryError|not enough memory|bad_alloc"),
    Cause.DISK_FULL: re.compile(
        r"No space left on device|File too large|Disk quota exceeded|disk is full|disk I/O error"
    ),
    Cause.NOT_WRITABLE: re.compile(
        r"Read-only file system|Permission denied|Not a directory|No usable temporary|readonly database"
        r"|unable to open database"
    ),
}
"""What the operating system and the tensor library say, in the text of whichever error brings it here."""
_FRAME = r'File "{file}", line (?P<line>\d+),? in (?P<function>\S+)'


@dataclass(frozen=True)
class Death:
    """What is known of a judge that is gone."""

    returncode: int | None
    """None: it still ran and was killed for its silence. Negative: ended by that signal."""
    said: str
    """The end of its standard error."""
    doing: str
    """What it said it was at, last."""

    def error(self) -> HarnessError:
        """For an evaluation that it was at work on."""
        cause = cause_of(self.said) or (Cause.JUDGE_HUNG if self.returncode is None else Cause.JUDGE_DIED)
        return HarnessError(f"{self._what()} while it was {self.doing or 'starting'}. {self._advice(cause)}", cause)

    def not_started(self, python: str) -> HarnessError:
        """For one that never was ready."""
        cause = cause_of(self.said) or Cause.JUDGE_NOT_STARTED
        if "No module named 'torch'" in self.said or "needs torch" in self.said:
            advice = f"Install torch and numpy for {python}: {_quoted(self.said)}"
        else:
            advice = self._advice(cause)
        return HarnessError(f"the judge did not start: {self._what()}. {advice}", cause)

    def in_reference(self, folder: Path) -> str:
        """Where in this task's code the time limit ended it; empty when it was elsewhere, or it ended otherwise."""
        if self.returncode != -signal.SIGALRM:
            return ""
        frame = re.search(_FRAME.format(file=re.escape(str(folder / "reference.py"))), self.said)
        return f"{frame['function']} (line {frame['line']})" if frame else ""

    def _what(self) -> str:
        if self.returncode is None:
            return "the judge's process gave no sign of life and was killed"
        if self.returncode >= 0:
            return f"the judge's process ended with exit code {self.returncode}"
        how = f"the judge's process was ended by {signal.Signals(-self.returncode).name}"
        killed = ", from outside or by the kernel for want of memory" if self.returncode == -signal.SIGKILL else ""
        return how + killed

    def _advice(self, cause: Cause) -> str:
        hint = cause.hint[:1].upper() + cause.hint[1:]
        return f"{hint}. {_quoted(self.said)}".strip()


def cause_of(text: str) -> Cause | None:
    """Which shortage of the machine a message speaks of."""
    return next((cause for cause, sign in SIGNS.items() if sign.search(text)), None)


def with_remedy(text: str) -> str:
    """The text of an error of this machine, and what to do about it."""
    return f"{text}; {(cause_of(text) or Cause.LAB_FAILED).hint}"


def _quoted(said: str) -> str:
    said = said.strip()
    return f"Its last words: {said[-LAST_WORDS:]}" if said else ""
