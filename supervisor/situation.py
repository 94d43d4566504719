"""Where a run stands when the next team is designed, and how that reads in a diagnosis. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from supervisor import space
from supervisor.schema import Evaluation, Plateau, Profile, RunState, TaskFacts, Team
from supervisor.state import best, searched
from toolkits.core.schema import Tunable

Limit = Literal["tunables", "structure", "unknown"]
LIMITS: dict[str, Limit] = {
    "compute": "tunables",
    "latency": "tunables",
    "memory": "structure",
    "branches": "structure",
}
"""A rule of thumb: tunables are mostly widths, unrolling and tile sizes, which set how many instructions run and how
they depend on each other; which data is walked in which order, and where code branches, is fixed by the variant."""


@dataclass(frozen=True)
class Situation:
    """All that a rule may look at."""

    facts: TaskFacts
    state: RunState
    agent: str
    evaluations: int
    """Left for searching."""
    window: int

    @property
    def number(self) -> int:
        return len(self.state.generations) + 1

    @property
    def plateau(self) -> Plateau | None:
        return self.state.generations[-1].plateau if self.state.generations else None

    @property
    def teams(self) -> list[Team]:
        return [generation.team for generation in self.state.generations]

    @property
    def tried(self) -> list[str]:
        """Variants that a team was set on, in order."""
        return list(dict.fromkeys(v for team in self.teams for role in team.roles for v in role.variants))

    @property
    def fresh(self) -> list[str]:
        return [variant for variant in self.facts.variants if variant not in self.tried]

    @property
    def profile(self) -> Profile | None:
        """The newest profile of the best candidate, when the profiler could tell something."""
        top = best(searched(self.state))
        seen = [p for p in self.state.profiles if top and p.solution == top.solution and p.verdict]
        return seen[-1] if seen else None

    @property
    def limit(self) -> Limit:
        """What moves the best candidate's bottleneck: its tunables, another structure, or nobody knows."""
        return "structure" if self.same_bottleneck else self._limit

    @property
    def same_bottleneck(self) -> bool:
        """Whether the team stalled on a bottleneck that the profile before it had named too."""
        last = [profile.bottleneck for profile in self.state.profiles[-2:]]
        return self.plateau is not None and self.plateau.kind == "profile" and len(set(last)) == 1

    @property
    def _limit(self) -> Limit:
        return LIMITS.get(self.profile.bottleneck, "unknown") if self.profile else "unknown"

    def tunables(self, variant: str) -> Mapping[str, Tunable]:
        return self.facts.variants[variant]

    def seen(self, variant: str) -> list[Evaluation]:
        return [e for e in searched(self.state) if e.variant == variant]

    def ranking(self) -> list[Evaluation]:
        """The best evaluation of each variant, fastest first."""
        tops = [top for variant in self.facts.variants if (top := best(self.seen(variant)))]
        return sorted(tops, key=lambda e: -low(e))


def what_happened(now: Situation) -> str:
    if now.plateau is None:
        return ""
    text = f"Team {now.teams[-1].number} stopped making progress ({now.plateau.kind}): {now.plateau.reason}."
    # The advice and the hot lines after the first semicolon are for those who write code: LEARNINGS.md has them.
    return f"{text} Profile of the best: {now.profile.verdict.split(';')[0]}." if now.profile else text


def evidence(now: Situation) -> list[str]:
    top = best(searched(now.state))
    cited = [*(now.plateau.evidence if now.plateau else []), *([top.id] if top else [])]
    return list(dict.fromkeys(cited))


def focused(now: Situation, top: Evaluation) -> bool:
    return any(team.focus == top.solution for team in now.teams)


def low(evaluation: Evaluation) -> float:
    return evaluation.speedup.low if evaluation.speedup else 0.0


def ratio(evaluation: Evaluation) -> str:
    s = evaluation.speedup
    return f"{s.value:.3f}x [{s.low:.3f}, {s.high:.3f}]" if s else "no figure"


def point(evaluation: Evaluation) -> str:
    return (
        f"{evaluation.variant} {' '.join(f'{name}={value}' for name, value in evaluation.parameters.items())}".strip()
    )


def points(now: Situation, variant: str) -> str:
    values = space.whole(now.tunables(variant))
    total = space.size(values)
    return f"{total - space.untried(values, now.seen(variant))} of its {total} points are measured"
