"""The tuner's search, without a lab: every point once, failures avoided, good regions first."""

import math

import pytest

from mcp_server.agents.search import Point, Search, Space

SPACE: Space = {
    "blocked": {"TILE": [8, 16, 32, 64, 128, 256], "UNROLL": [1, 2, 4, 8, 16], "VECTOR": [4, 8, 16]},
    "streamed": {"CHUNK": [16, 64, 256]},
    "naive": {},
}
SIZE = 6 * 5 * 3 + 3 + 1
SMALL: Space = {"blocked": {"TILE": [64, 128, 256], "UNROLL": [4, 8], "VECTOR": [8]}, "streamed": {"CHUNK": [16, 64]}}
SMALL_SIZE = 6 + 2


def landscape(point: Point) -> float | None:
    """One hill among the blocked configurations; large products do not compile."""
    values = point.parameters
    if point.variant != "blocked":
        return 0.9
    if values["TILE"] * values["UNROLL"] > 1024:
        return None
    off = abs(math.log2(values["TILE"] / 64)) + abs(math.log2(values["UNROLL"] / 4)) + (values["VECTOR"] != 8)
    return 3.0 * math.exp(-0.3 * off)


def measured(search: Search, count: int) -> list[Point]:
    points: list[Point] = []
    while len(points) < count and (point := search.next()):
        assert search.tell(point, landscape(point))
        points.append(point)
    return points


def test_a_space_is_exhausted_with_every_point_proposed_once() -> None:
    search = Search(SMALL, seed=0)
    points = measured(search, 10 * SMALL_SIZE)
    assert search.size == SMALL_SIZE
    assert len({point.key for point in points}) == len(points) == SMALL_SIZE
    assert search.next() is None


def test_starting_points_come_first_in_their_order() -> None:
    first = [Point(variant="streamed", parameters={"CHUNK": 64}), Point(variant="naive", parameters={})]
    assert measured(Search(SPACE, seed=0, first=first), 2) == first


def test_what_is_known_already_is_never_proposed() -> None:
    before = measured(Search(SMALL, seed=0), 5)
    resumed = Search(SMALL, seed=0, first=before[:1])
    for point in before:
        resumed.tell(point, landscape(point))
    after = measured(resumed, SMALL_SIZE)
    assert not {point.key for point in before} & {point.key for point in after}
    assert len(before) + len(after) == SMALL_SIZE


def test_the_same_history_and_seed_propose_the_same_point() -> None:
    assert measured(Search(SPACE, seed=3), 15) == measured(Search(SPACE, seed=3), 15)


def test_points_outside_a_narrowed_space_are_ignored() -> None:
    search = Search({"streamed": {"CHUNK": [16, 64]}}, seed=0)
    assert not search.tell(Point(variant="streamed", parameters={"CHUNK": 256}), 2.0)
    assert not search.tell(Point(variant="elsewhere", parameters={"CHUNK": 16}), 2.0)
    assert not search.tell(Point(variant="streamed", parameters={}), 2.0)
    assert {point.parameters["CHUNK"] for point in measured(search, 5)} == {16, 64}


def test_a_second_report_of_a_point_changes_nothing() -> None:
    search = Search(SPACE, seed=0)
    point = Point(variant="naive", parameters={})
    assert search.tell(point, 1.0)
    assert not search.tell(point, 5.0)
    assert search.measured == 1


@pytest.mark.parametrize("seed", range(3))
def test_the_top_of_the_hill_is_found_in_a_third_of_the_space(seed: int) -> None:
    values = [landscape(point) or 0.0 for point in measured(Search(SPACE, seed), SIZE // 3)]
    assert max(values) == 3.0


def test_failing_regions_are_visited_less_than_their_share() -> None:
    points = measured(Search(SPACE, seed=1), SIZE // 3)
    failing = [point for point in points if landscape(point) is None]
    assert len(failing) / len(points) < 3 * 3 / SIZE  # three (TILE, UNROLL) pairs fail with any of three VECTORs
