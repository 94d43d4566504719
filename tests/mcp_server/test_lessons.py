"""Lessons: shipped ones read and are found, the user's own are laid over them, and none is ever replaced."""

from pathlib import Path

import pytest

from mcp_server import lessons
from mcp_server.workspace import Workspace
from toolkits.core.errors import InvalidInput, NotInWorkspace
from toolkits.core.schema import Lesson

MINE = Lesson(
    slug="cpu/my-finding",
    title="Unroll: by four, not 'eight'",
    applies_to={"language": ["cpp"], "op": ["zwiebelfisch"]},
    symptom="slow # at first",
    cause="- too many\nregisters",
    remedy="unroll by four: see evidence",
    evidence=["e0123456789ab"],
    body="---\nA rule in the body, and ümlauts.",
)


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path)


def slugs(workspace: Workspace, query: str, limit: int = 5) -> list[str]:
    return [lesson.slug for lesson in lessons.search(workspace, query, limit)]


def test_the_shipped_lessons_are_complete(workspace: Workspace) -> None:
    shipped = lessons.load(workspace)
    assert len(shipped) >= 14
    for lesson in shipped:
        assert lesson.applies_to.keys() - {"symptom"} == {"language", "op", "arch"}
        assert lesson.evidence
        assert len(lesson.body) > 200


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("AVX2 build is much slower than AVX-512", "cpu/vector-wider-than-isa"),
        ("nan_in_output masked row", "attention/masked-rows-and-infinities"),
        ("kmeans wrong index padded centroid", "clustering/padding-and-low-precision-norms"),
        ("recurrent state cache traffic", "cpu/state-rows-in-registers"),
        ("rel_shift transformer-xl", "attention/band-product-then-skew"),
        ("OpenMP threads slow", "cpu/one-thread-and-spinning"),
        ("when to stop optimising", "measurement/floors-before-kernels"),
    ],
)
def test_a_symptom_finds_its_lesson(workspace: Workspace, query: str, expected: str) -> None:
    assert expected in slugs(workspace, query, 3)


def test_an_empty_query_lists_all_by_slug(workspace: Workspace) -> None:
    everything = slugs(workspace, "", 1000)
    assert everything == sorted(workspace.lesson_files())
    assert slugs(workspace, "  ", 2) == everything[:2]


def test_a_query_in_query_syntax_is_only_words(workspace: Workspace) -> None:
    for query in ('"', "NOT (kmeans", "title: AND", "*", "^tile NEAR/2", "日本語"):
        assert isinstance(slugs(workspace, query), list)


def test_an_added_lesson_is_read_back_and_found(workspace: Workspace) -> None:
    path = lessons.add(workspace, MINE)
    assert path == workspace.root / "lessons" / "cpu" / "my-finding.md"
    assert lessons.get(workspace, MINE.slug) == MINE
    assert slugs(workspace, "zwiebelfisch") == [MINE.slug]
    assert [entry.name for entry in path.parent.iterdir()] == ["my-finding.md"]


def test_a_lesson_is_never_replaced(workspace: Workspace) -> None:
    lessons.add(workspace, MINE)
    for slug in (MINE.slug, next(iter(workspace.lesson_files()))):
        with pytest.raises(InvalidInput, match="exists already"):
            lessons.add(workspace, MINE.model_copy(update={"slug": slug, "title": "other"}))
    assert lessons.get(workspace, MINE.slug).title == MINE.title


def test_a_users_file_is_laid_over_the_shipped_lesson(workspace: Workspace) -> None:
    slug = next(iter(workspace.lesson_files()))
    written = lessons.add(workspace, MINE)
    written.rename(workspace.user_lesson_path(slug))
    assert lessons.get(workspace, slug).title == MINE.title


@pytest.mark.parametrize("slug", ["no-topic", "Cpu/x", "cpu/x/y", "../x", "cpu/../x", "cpu/", "", "cpu/a b", "-/-"])
def test_a_slug_must_be_topic_and_name(workspace: Workspace, slug: str) -> None:
    with pytest.raises(InvalidInput, match=r"cpu/x|slug|name"):
        lessons.add(workspace, MINE.model_copy(update={"slug": slug}))


def test_an_unknown_lesson_is_told(workspace: Workspace) -> None:
    with pytest.raises(NotInWorkspace, match="search with a query"):
        lessons.get(workspace, "cpu/nothing")


def test_a_broken_lesson_is_told_by_file_and_field(workspace: Workspace) -> None:
    path = workspace.user_lesson_path("cpu/broken")
    for text, told in (("no front matter", "front matter"), ("---\ntitle: x\n---\n", "field `symptom` is missing")):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(InvalidInput, match=told) as caught:
            lessons.search(workspace, "anything", 5)
        assert str(path) in str(caught.value)


def test_a_rendered_lesson_holds_everything(workspace: Workspace) -> None:
    text = lessons.render(MINE)
    for part in (MINE.slug, MINE.title, MINE.symptom, MINE.cause, MINE.remedy, MINE.body, *MINE.evidence, "cpp"):
        assert part in text
