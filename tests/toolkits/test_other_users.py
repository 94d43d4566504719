"""The lab for others than root, and where the kernel gives out no namespaces: a box, or a record that says why not."""

import json
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.toolkits.elsewhere import AS_NOBODY, NOBODY, for_root_only, home, run, verb
from toolkits.core import sandbox

__all__ = ["home"]

pytestmark = [
    for_root_only,
    pytest.mark.skipif(not sandbox.mechanism().bwrap, reason=sandbox.mechanism().why_not or "boxes work"),
]
ROOT_OF_ITS_OWN = ["unshare", "--user", "--map-root-user", "--"]
"""As in a container without other users."""
LISTING = "toolkit: python\nentry_point: main.py::rmsnorm\n"
LOOK = """
import os, torch

def rmsnorm(x, w, eps, y):
    assert not os.path.exists(HIDDEN), "the home is visible"
    seen = [name for name in os.listdir("/proc") if name.isdigit()]
    assert len(seen) == 2, seen
    rights = [line.split()[1] for line in open("/proc/self/status") if line.startswith(("CapEff", "CapPrm"))]
    assert not any(int(right, 16) for right in rights), rights
    scale = torch.rsqrt((x.double() ** 2).mean(-1, keepdim=True) + eps)
    y.copy_(x * scale * w)
"""


def checked(home: Path, *, prefix: Sequence[str] = AS_NOBODY, namespaces: bool = True) -> str:
    """What held an honest solution, which passed."""
    status, output = verb(home, "benchmark", "rmsnorm", "simd", "--check", prefix=prefix, namespaces=namespaces)
    assert status == 0, output
    [log] = (home / "lab" / "logs").glob("*.log")
    [held] = re.findall(r'"sandbox": "(.*)"', log.read_text(encoding="utf-8"))
    return str(held)


def test_a_user_who_is_not_root_gets_a_box(home: Path) -> None:
    assert checked(home).startswith("bwrap, this user, limits")


def test_root_of_its_own_namespace_gets_a_box_and_stays_who_it_is(home: Path) -> None:
    os.chown(home, 0, 0)
    assert checked(home, prefix=ROOT_OF_ITS_OWN).startswith("bwrap, this user, limits")


def test_without_namespaces_the_record_says_why_there_is_no_box(home: Path) -> None:
    held = checked(home, namespaces=False)
    assert held.startswith("limits only, this user (bwrap: Creating new namespace failed") and "max_" in held


@pytest.mark.parametrize("prefix", [AS_NOBODY, ROOT_OF_ITS_OWN])
def test_a_solution_of_such_a_user_sees_no_home_and_has_no_right(home: Path, prefix: list[str]) -> None:
    private = home / "private"
    private.write_text("sesame", encoding="utf-8")
    mine = home / "lab" / "mine"
    mine.mkdir(parents=True)
    (mine / "solution.yaml").write_text(LISTING, encoding="utf-8")
    (mine / "main.py").write_text(LOOK.replace("HIDDEN", repr(str(private))), encoding="utf-8")
    owner = NOBODY if prefix == AS_NOBODY else 0
    for path in (home, home / "lab", mine):
        os.chown(path, owner, owner)
    status, output = verb(home, "benchmark", "rmsnorm", str(mine), "--check", prefix=prefix)
    assert status == 0, output


def test_a_profile_counts_the_same_with_a_box_and_without_and_says_which(home: Path) -> None:
    answers: list[dict[str, Any]] = []
    for namespaces in (True, False):
        status, output = verb(home, "profile", "rmsnorm", "simd", "--json", namespaces=namespaces)
        assert status == 0, output
        answers.append(json.loads(output))
    boxed, open_ = answers
    assert boxed["instructions"] == open_["instructions"] > 1_000_000
    assert boxed["hot_lines"][0] == open_["hot_lines"][0]
    said = [[note for note in answer["notes"] if "without a box" in note] for answer in answers]
    assert said[0] == [] and "max_user_namespaces" in said[1][0]


def test_a_refusal_of_namespaces_is_described_with_its_remedy(home: Path) -> None:
    ask = "import json; from toolkits.core import sandbox; print(json.dumps(sandbox.describe()))"
    status, output = run(home, [*AS_NOBODY, sys.executable, "-c", ask], namespaces=False)
    described = json.loads(output)
    assert status == 0 and described["mechanism"] == "limits only"
    assert "ENOSPC" in described["missing"] and "user.max_user_namespaces" in described["remedy"]
