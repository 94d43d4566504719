"""Lessons: one Markdown file each, shipped or the user's own, found by full-text search."""

import os
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path

from mcp_server.ledger import full_text_search
from mcp_server.reading import record, text_of, yaml_mapping, yaml_text
from mcp_server.workspace import Workspace
from toolkits.core.errors import InvalidInput, NotInWorkspace
from toolkits.core.schema import Lesson

_SLUG = re.compile(r"[a-z0-9-]+/[a-z0-9-]+")
_FRONT = re.compile(r"---\n(?P<front>.*?)\n---\n(?P<body>.*)", re.DOTALL)


def load(workspace: Workspace) -> list[Lesson]:
    """All lessons, by slug."""
    return [_read(slug, file) for slug, file in sorted(workspace.lesson_files().items())]


def search(workspace: Workspace, query: str, limit: int) -> list[Lesson]:
    """The lessons that share words with the query, best first; an empty query lists all by slug."""
    lessons = {lesson.slug: lesson for lesson in load(workspace)}
    documents = [(slug, lesson.title, _searchable(lesson)) for slug, lesson in lessons.items()]
    return [lessons[slug] for slug in full_text_search(documents, query, limit)]


def matching(workspace: Workspace, symptoms: Sequence[str], limit: int) -> list[Lesson]:
    """The lessons that name one of a profile's symptoms, in the order of the symptoms."""
    known = load(workspace)
    found = [one for code in symptoms for one in known if code in one.applies_to.get("symptom", [])]
    return list({one.slug: one for one in found}.values())[:limit]


def get(workspace: Workspace, slug: str) -> Lesson:
    file = workspace.lesson_files().get(slug)
    if file is None:
        raise NotInWorkspace(f"no lesson {slug!r}: search with a query, or list all with an empty one")
    return _read(slug, file)


def add(workspace: Workspace, lesson: Lesson) -> Path:
    """Write a new lesson of the user's own; an existing one is never replaced."""
    if not _SLUG.fullmatch(lesson.slug):
        raise InvalidInput(f"slug {lesson.slug!r} must be `topic/name` in lower-case letters, digits and '-'")
    if lesson.slug in workspace.lesson_files():
        raise InvalidInput(_exists(lesson.slug))
    file = workspace.user_lesson_path(lesson.slug)
    with tempfile.NamedTemporaryFile("w", dir=file.parent, prefix=".aside-", encoding="utf-8") as aside:
        aside.write(_file_text(lesson))
        aside.flush()
        Path(aside.name).chmod(0o644)
        try:
            # A link, unlike a rename, fails when another process was quicker.
            os.link(aside.name, file)
        except FileExistsError:
            raise InvalidInput(_exists(lesson.slug)) from None
    return file


def render(lesson: Lesson) -> str:
    """The whole lesson as Markdown to read."""
    applies = "; ".join(f"{name}: {', '.join(values)}" for name, values in lesson.applies_to.items() if values)
    parts = [
        f"# {lesson.title}\n`{lesson.slug}`" + (f" (applies to {applies})" if applies else ""),
        f"**Symptom.** {lesson.symptom}",
        f"**Cause.** {lesson.cause}",
        f"**Remedy.** {lesson.remedy}",
        lesson.body,
        "\n".join(["**Evidence.**", *(f"- {item}" for item in lesson.evidence)]) if lesson.evidence else "",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _read(slug: str, file: Path) -> Lesson:
    match = _FRONT.fullmatch(text_of(file))
    if match is None:
        raise InvalidInput(f"{file} must start with YAML front matter between two lines `---`")
    front = yaml_mapping(match["front"], str(file))
    return record(Lesson, front | {"slug": slug, "body": match["body"].strip()}, str(file))


def _file_text(lesson: Lesson) -> str:
    front = yaml_text(lesson.model_dump(exclude={"slug", "body"}))
    return f"---\n{front}---\n{lesson.body}\n"


def _searchable(lesson: Lesson) -> str:
    applies = [value for values in lesson.applies_to.values() for value in values]
    return "\n".join([lesson.slug, *applies, lesson.symptom, lesson.cause, lesson.remedy, lesson.body])


def _exists(slug: str) -> str:
    return f"lesson {slug!r} exists already: read it, and give yours another slug"
