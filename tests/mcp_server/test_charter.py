"""Charters: what programs read in the front matter, what models read below it."""

import pytest

from mcp_server.charter import Charter, parse, render
from toolkits.core.errors import InvalidInput

TEXT = """---
task: kmeans_assign
variants: [blocked]
space:
  blocked: {TILE: [8, 16]}
start: {blocked: {TILE: 8}}
seed: 7
evaluations: 20
---
Find the best tile.
---
This line is prose.
"""


def test_a_charter_has_settings_for_programs_and_prose_for_models() -> None:
    charter = parse(TEXT)
    assert charter.task == "kmeans_assign"
    assert charter.space == {"blocked": {"TILE": [8, 16]}}
    assert charter.start == {"blocked": {"TILE": 8}}
    assert (charter.seed, charter.evaluations) == (7, 20)
    assert charter.prose == "Find the best tile.\n---\nThis line is prose.\n"


def test_what_is_rendered_reads_back_as_the_same_charter() -> None:
    charter = parse(TEXT).model_copy(update={"run": 'first "light": 1'})
    assert parse(render(charter)) == charter


def test_prose_alone_is_a_charter_too() -> None:
    assert parse("Look at the profile.") == Charter(prose="Look at the profile.")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("---\ntask: x\nvariant: y\n---\n", "did you mean `variants`"),
        ("---\nseed: soon\n---\n", "field `seed`"),
        ("---\ntask: x\n", "never closes"),
        ("---\n- task\n---\n", "must be a mapping"),
        ("---\ntask: [\n---\n", "not valid YAML"),
    ],
)
def test_a_charter_that_does_not_fit_says_what_to_change(text: str, told: str) -> None:
    with pytest.raises(InvalidInput, match="charter") as caught:
        parse(text)
    assert told in str(caught.value)
