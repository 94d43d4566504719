"""What a run of the supervisor is made of. Types only: no I/O, no MCP, no rules."""

from typing import Literal

from pydantic import Field

from toolkits.core.schema import Interval, Json, Record, Status, Tunable, Verdict

PlateauKind = Literal["correctness", "profile", "ideas", "measurement", "infrastructure"]
Move = Literal["start", "retry", "avoid_failures", "switch_variant", "add_tuner", "narrow", "deepen"]
EndReason = Literal["plateau", "done", "budget", "time"]
Space = dict[str, dict[str, list[int]]]
"""Variant -> tunable -> the values that may be tried."""


class RunConfig(Record):
    """What a run was told at its creation; frozen, so that a resumed run is the same run."""

    task: str
    agent: str = "tuner"
    evaluations: int = Field(default=60, ge=8)
    """All evaluations of the run: the start, the search and the five re-measures of the winner."""
    minutes: float = Field(default=5.0, gt=0)
    """Active time; the hours between an interruption and the resume do not count."""
    usd: float = Field(default=0.0, ge=0)
    """0: no cap; so for tokens."""
    tokens: int = Field(default=0, ge=0)
    reserve: float = Field(default=0.1, ge=0, lt=1)
    """Share of dollars, tokens, minutes and evaluations that the lab grants to no role: for verification and report."""


class TaskFacts(Record):
    """What the supervisor knows about a task: names and tunables, never sources."""

    name: str
    start: str
    start_path: str
    baseline: str
    variants: dict[str, dict[str, Tunable]]


# --- the run as its history tells it --------------------------------------------------------------------------------


class Evaluation(Record):
    """One evaluation of the run, seen from the supervisor."""

    id: str
    seq: int
    at_s: float
    """Active seconds of the run when it was recorded."""
    role: str
    """Name of the role; empty for the supervisor's own measurements."""
    purpose: Literal["start", "search", "final", "verify"]
    """`final`: one more session of a leading candidate, to choose between the leaders."""
    team: int
    solution: str
    mode: Literal["check", "full", "sanitize"]
    status: Status
    verdict: Verdict | None = None
    speedup: Interval | None = None
    worst: float | None = None
    partial: bool = False
    """Only a selection of the task's workloads was timed: it says nothing of the whole."""
    cause: str = ""
    variant: str = ""
    parameters: dict[str, int] = {}
    seconds: float = 0.0

    @property
    def timed(self) -> bool:
        """Whether it says how fast a correct kernel is, on all of the task."""
        whole = self.mode == "full" and not self.partial
        return whole and self.status == Status.PASSED and self.speedup is not None

    @property
    def faster(self) -> bool:
        """Whether the judge calls it faster: beyond its interval and beyond what the baseline shows against itself."""
        return self.timed and self.verdict == Verdict.FASTER

    @property
    def failed(self) -> bool:
        """Whether the candidate is to blame for having no result."""
        return self.status not in (Status.PASSED, Status.HARNESS_ERROR, Status.SKIPPED, Status.CANCELLED)


class Profile(Record):
    """What a profiler said about a candidate."""

    seq: int
    solution: str
    bottleneck: str
    verdict: str


class Plateau(Record):
    """Progress has stopped, of which kind, and the evidence."""

    kind: PlateauKind
    reason: str
    evidence: list[str] = []
    """Evaluation ids."""


# --- teams ----------------------------------------------------------------------------------------------------------


class Prediction(Record):
    """What a team is expected to bring; it can fail."""

    metric: Literal["best_speedup", "failure_share"]
    threshold: float
    basis: str = ""
    """Where the threshold comes from."""
    within: int = Field(ge=1)
    """Evaluations of the team until it is judged."""

    def __str__(self) -> str:
        if self.metric == "best_speedup":
            basis = f" ({self.basis})" if self.basis else ""
            return f"a speedup of at least {self.threshold:.3f}x{basis} within {self.within} evaluations"
        return f"at most {self.threshold:.0%} failing candidates among {self.within} evaluations"


class Outcome(Record):
    """What came of a prediction."""

    verdict: Literal["held", "failed", "undecided"]
    observed: str
    evidence: list[str] = []


class RoleSpec(Record):
    """A role before it is started: its mission and the settings its charter carries."""

    name: str
    agent: str
    mission: str
    variants: list[str]
    space: Space = {}
    """Narrowing; a variant or tunable that is absent may take every declared value."""
    start: dict[str, dict[str, int]] = {}
    """First trial of a variant."""
    seed: int = 0
    evaluations: int = Field(ge=1)


class Team(Record):
    """Who works on what, why, and what should come of it."""

    number: int
    move: Move
    roles: list[RoleSpec] = Field(min_length=1)
    plan: str
    diagnosis: str
    evidence: list[str] = []
    """Evaluation ids behind the diagnosis."""
    prediction: Prediction
    focus: str = ""
    """Solution that the team searches around; empty when it searches a whole space."""


class Spend(Record):
    """What a team or a run used."""

    evaluations: int = 0
    seconds: float = 0.0
    usd: float = 0.0


class Ended(Record):
    """How a generation ended."""

    reason: EndReason
    outcome: Outcome
    best: Interval | None = None
    """Best of the run after it."""
    gain: float | None = None
    """Best after over best before; null when there was none before."""
    spend: Spend = Spend()


class Generation(Record):
    """A team's stretch of work."""

    team: Team
    seq: int
    started_s: float
    plateau: Plateau | None = None
    ended: Ended | None = None


class Verification(Record):
    """A claim re-measured from its stored sources."""

    solution: str
    claim: str
    """Evaluation that the claim rests on."""
    evaluations: list[str] = []
    """Re-measures so far."""
    verdict: Literal["open", "promoted", "revoked"] = "open"
    body: Json = {}


class RunState(Record):
    """Everything that the history says about the run so far."""

    evaluations: list[Evaluation] = []
    generations: list[Generation] = []
    profiles: list[Profile] = []
    roles: dict[str, tuple[str, int]] = {}
    """Role id -> name and team."""
    finalists: list[str] = []
    """Solutions that get one more session each before the best is claimed."""
    verifications: list[Verification] = []
    active_s: float = 0.0
    """Time the supervisor was at work, all sessions, up to the last row."""
    last_seq: int = 0
    device: str = ""
    stopped_because: str = ""
    """Why the search ended, as the `finished` row says."""
    finished: bool = False
    interrupted: bool = False

    @property
    def open_generation(self) -> Generation | None:
        last = self.generations[-1] if self.generations else None
        return last if last and last.ended is None else None

    def of_team(self, number: int) -> list[Evaluation]:
        return [e for e in self.evaluations if e.purpose == "search" and e.team == number]
