"""The ledger: what is acknowledged stays, what is written once stays as it was, dead owners are seen."""

import re
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import anyio
import pytest

from mcp_server.budgets import Caps
from mcp_server.ledger import ORPHANED, Ledger, full_text_search, owner_alive, owner_of, this_process
from toolkits.core.errors import BudgetExhausted, HarnessError, InvalidInput, LabError, NotInWorkspace
from toolkits.core.process import started_process
from toolkits.core.schema import BenchmarkResult, Interval, Solution, Stage, Status

SOLUTION = Solution(task="t", toolkit="cpp", entry_point="a.cpp::f", sources={"a.cpp": "void f() {}"})
RESULT = BenchmarkResult(
    task="t",
    solution=SOLUTION.id,
    mode="full",
    status=Status.PASSED,
    stage=Stage.DONE,
    speedup=Interval(value=1.5, low=1.4, high=float("inf")),
)
DEAD = "999999999:1"

WRITER = """
import sys
from pathlib import Path
from mcp_server.ledger import Ledger, this_process
from toolkits.core.schema import BenchmarkResult, Solution
ledger, name = Ledger(Path(sys.argv[1])), sys.argv[2]
solution, result = Solution.model_validate_json(sys.argv[3]), BenchmarkResult.model_validate_json(sys.argv[4])
ledger.open_run("r", "t", {})
for number in range(100_000):
    job, _ = ledger.open_job("benchmark", f"{name}-{number}", "r", name, {}, this_process())
    ledger.start_job(job.id)
    print(ledger.record_evaluation(job.id, "r", name, solution, result, {"n": number}, {"n": number}), flush=True)
"""


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "lab.db")


def evaluate(ledger: Ledger, key: str = "k", run: str = "r", role: str = "") -> str:
    job, _ = ledger.open_job("benchmark", key, run, role, {}, this_process())
    return ledger.record_evaluation(job.id, run, role, SOLUTION, RESULT, {"task": "t"}, {"status": "PASSED"})


def tamper(ledger: Ledger, table: str, *statements: str) -> None:
    """What someone with the file in hand can do: the guards come off first."""
    with closing(sqlite3.connect(ledger.path)) as db:
        for (trigger,) in db.execute(
            "SELECT name FROM sqlite_master WHERE type = 'trigger' AND tbl_name = ?", (table,)
        ).fetchall():
            db.execute(f"DROP TRIGGER {trigger}")
        for statement in statements:
            db.execute(statement)
        db.commit()


# --- runs and history -----------------------------------------------------------------------------------------------


def test_a_run_is_created_once_and_keeps_its_first_config(ledger: Ledger) -> None:
    first, created = ledger.open_run("r", "t", {"seed": 1})
    again, created_again = ledger.open_run("r", "t", {"seed": 2})
    assert (created, created_again) == (True, False)
    assert first == again
    assert again.config == {"seed": 1}
    assert [line.kind for line in ledger.history("r")] == ["run_opened"]


def test_a_run_name_is_not_reused_for_another_task(ledger: Ledger) -> None:
    ledger.open_run("r", "t", {})
    with pytest.raises(InvalidInput, match="choose another run name"):
        ledger.open_run("r", "other", {})


def test_an_unknown_run_is_answered_with_the_known_ones(ledger: Ledger) -> None:
    ledger.open_run("night-1", "t", {})
    with pytest.raises(NotInWorkspace, match="night-1"):
        ledger.history("night-2")


def test_a_run_is_finished_when_its_history_says_so(ledger: Ledger) -> None:
    ledger.open_run("r", "t", {})
    assert not ledger.run("r").finished
    ledger.append("r", "finished", {})
    assert ledger.run("r").finished
    assert [row.run for row in ledger.runs()] == ["r"]


def test_history_reads_on_from_where_it_stopped(ledger: Ledger) -> None:
    for number in range(5):
        ledger.append("", "note" if number % 2 else "mark", {"n": number}, role="r1")
    assert [line.seq for line in ledger.history("", after=1, limit=2)] == [2, 3]
    assert [line.body["n"] for line in ledger.history("", kinds=["note"])] == [1, 3]
    assert ledger.history("", after=5) == []


def test_history_and_evaluations_cannot_be_rewritten(ledger: Ledger) -> None:
    ledger.open_run("r", "t", {})
    evaluate(ledger)
    with closing(sqlite3.connect(ledger.path)) as db:
        for statement in (
            "UPDATE history SET body = '{}'",
            "DELETE FROM history",
            "INSERT OR REPLACE INTO history SELECT run, seq, at, role, 'forged', body, hash FROM history",
            "UPDATE evaluations SET result = '{}'",
            "DELETE FROM evaluations",
        ):
            with pytest.raises(sqlite3.IntegrityError):
                db.execute(statement)


def test_an_untouched_chain_verifies(ledger: Ledger) -> None:
    ledger.open_run("r", "t", {"title": "ümlaut \ud800 and infinity", "limit": float("inf")})
    evaluate(ledger)
    assert ledger.verify_chain("r") == []


@pytest.mark.parametrize(
    ("table", "statement", "told"),
    [
        ("history", "UPDATE history SET body = '{}' WHERE seq = 2", "row 2 .*hash does not fit"),
        ("history", "DELETE FROM history WHERE seq = 2", "row 2 is missing"),
        ("evaluations", "DELETE FROM evaluations", "its record is gone"),
        ("evaluations", "UPDATE evaluations SET result = replace(result, '1.5', '2.5')", "result was changed"),
        ("history", "DELETE FROM history WHERE kind = 'evaluation'", "the history does not know it"),
    ],
)
def test_tampering_is_told_in_words(ledger: Ledger, table: str, statement: str, told: str) -> None:
    ledger.open_run("r", "t", {})
    ledger.append("r", "note", {"text": "first"})
    ledger.append("r", "note", {"text": "second"})
    evaluate(ledger)
    tamper(ledger, table, statement)
    assert re.search(told, "\n".join(ledger.verify_chain("r")))


# --- jobs -----------------------------------------------------------------------------------------------------------


def test_the_same_work_is_joined_while_its_owner_lives(ledger: Ledger) -> None:
    first, joined = ledger.open_job("compile", "k", "", "", {"path": "p"}, this_process())
    second, joined_again = ledger.open_job("compile", "k", "", "", {}, this_process())
    assert (joined, joined_again) == (False, True)
    assert second.id == first.id
    assert second.request == {"path": "p"}
    ledger.finish_job(first.id, "done", {"ok": True})
    assert ledger.open_job("compile", "k", "", "", {}, this_process())[1] is False


def test_the_end_of_a_role_ends_its_jobs_but_not_what_another_joined(ledger: Ledger) -> None:
    alone, _ = ledger.open_job("benchmark", "alone", "r", "a", {}, this_process())
    common, _ = ledger.open_job("benchmark", "common", "r", "a", {}, this_process())
    assert ledger.open_job("benchmark", "common", "r", "b", {}, this_process()) == (ledger.job(common.id), True)
    ledger.cancel_jobs("a")
    assert [ledger.cancel_requested(job.id) for job in (alone, common)] == [True, False]


def test_a_cap_counts_what_living_processes_still_work_on(ledger: Ledger) -> None:
    ledger.open_run("r", "t", {})
    role = ledger.add_role("r", 1, "a", "tuner", "token", Caps(evaluations=1), Path("/somewhere")).id
    ledger.open_job("benchmark", "lost", "r", role, {}, DEAD)
    ledger.open_job("benchmark", "first", "r", role, {}, this_process())
    with pytest.raises(BudgetExhausted, match="all 1 evaluations"):
        ledger.open_job("benchmark", "second", "r", role, {}, this_process())
    assert ledger.open_job("benchmark", "first", "r", role, {}, this_process())[1] is True


def test_a_job_of_a_dead_owner_reads_as_failed_and_is_not_joined(ledger: Ledger) -> None:
    job, _ = ledger.open_job("compile", "k", "", "", {}, DEAD)
    ledger.start_job(job.id)
    assert (ledger.job(job.id).state, ledger.job(job.id).error) == ("failed", ORPHANED)
    assert ledger.open_job("compile", "k", "", "", {}, this_process())[1] is False


def test_a_reused_pid_is_not_taken_for_the_owner(ledger: Ledger) -> None:
    pid, _, ticks = this_process().partition(":")
    job, _ = ledger.open_job("compile", "k", "", "", {}, f"{pid}:{int(ticks) - 1}")
    assert ledger.job(job.id).state == "failed"


def test_a_job_ends_once(ledger: Ledger) -> None:
    job, _ = ledger.open_job("profile", "k", "", "", {}, this_process())
    assert ledger.job(job.id).state == "queued"
    ledger.start_job(job.id)
    ledger.heartbeat(job.id)
    assert ledger.job(job.id).state == "running"
    ledger.finish_job(job.id, "failed", None, error="broken \ud800 output")
    ledger.finish_job(job.id, "done", {"late": True})
    assert (ledger.job(job.id).state, ledger.job(job.id).answer) == ("failed", None)


def test_a_job_asked_to_stop_is_not_joined(ledger: Ledger) -> None:
    job, _ = ledger.open_job("compile", "k", "", "", {}, this_process())
    assert not ledger.cancel_requested(job.id)
    ledger.request_cancel(job.id)
    assert ledger.cancel_requested(job.id)
    assert ledger.open_job("compile", "k", "", "", {}, this_process())[1] is False


def test_an_unknown_job_is_the_callers_mistake(ledger: Ledger) -> None:
    with pytest.raises(NotInWorkspace, match="no job 'j0'"):
        ledger.finish_job("j0", "done", {})


# --- evaluations ----------------------------------------------------------------------------------------------------


def test_an_evaluation_is_recorded_once_a_job(ledger: Ledger) -> None:
    ledger.open_run("r", "t", {})
    job, _ = ledger.open_job("benchmark", "k", "r", "a", {}, this_process())
    ids = {ledger.record_evaluation(job.id, "r", "a", SOLUTION, RESULT, {"x": 1}, {}) for _ in range(2)}
    (id,) = ids
    assert ledger.evaluation(id).result == RESULT
    assert ledger.job(job.id).answer == {"x": 1, "evaluation": id}
    assert ledger.job(job.id).state == "done"
    assert [line.body["evaluation"] for line in ledger.history("r", kinds=["evaluation"])] == [id]
    assert ledger.count_evaluations("r") == 1


def test_evaluations_are_found_by_run_role_and_task(ledger: Ledger) -> None:
    ids = [evaluate(ledger, key=role + run, run=run, role=role) for run in ("r", "s") for role in ("a", "b", "a2")]
    assert [row.id for row in ledger.evaluations()] == ids
    assert [row.id for row in ledger.evaluations(run="s", role="b")] == [ids[4]]
    assert [row.id for row in ledger.evaluations(limit=2)] == ids[-2:]
    assert ledger.evaluations(task="other") == []
    assert (ledger.count_evaluations("r"), ledger.count_evaluations("r", "a")) == (3, 1)
    with pytest.raises(NotInWorkspace):
        ledger.evaluation("e0")


# --- roles ----------------------------------------------------------------------------------------------------------


def add_role(ledger: Ledger, token: str = "secret") -> str:
    return ledger.add_role("r", 1, "tuner", "tuner", token, Caps(evaluations=10, minutes=2.5), Path("/somewhere")).id


def test_a_token_names_its_role_and_is_not_stored(ledger: Ledger) -> None:
    id = add_role(ledger, "the-secret-token")
    found = ledger.role_by_token("the-secret-token")
    assert found is not None
    assert (found.id, found.state, found.evaluations, found.folder) == (id, "running", 10, Path("/somewhere"))
    assert ledger.role_by_token("") is None
    ledger.close()
    assert b"the-secret-token" not in ledger.path.read_bytes()


def test_a_role_whose_process_and_server_are_dead_reads_as_crashed(ledger: Ledger) -> None:
    id = add_role(ledger)
    ledger.set_role(id, "running", pid=999_999_999)
    assert ledger.role(id).state == "running"  # its server may start another attempt
    with sqlite3.connect(ledger.path) as db:
        db.execute("UPDATE roles SET watcher = ?", (DEAD,))
    assert ledger.role(id).state == "crashed"
    ledger.set_role(id, "done", note="improved")
    assert (ledger.role(id).state, ledger.role(id).note) == ("done", "improved")


def test_a_role_that_has_ended_stays_ended(ledger: Ledger) -> None:
    id = add_role(ledger)
    ledger.set_role(id, "stopped", note="asked to")
    ledger.set_role(id, "running")
    row = ledger.role(id)
    assert (row.state, row.note) == ("stopped", "asked to")
    assert row.ended_at >= row.started_at
    assert ledger.roles("r") == [row]


def test_spend_adds_up_by_run_and_role(ledger: Ledger) -> None:
    ledger.spend("r", "a", 0.25, 100, 1.0)
    ledger.spend("r", "b", 0.5, 10, 2.0)
    assert (ledger.spent("r").usd, ledger.spent("r").tokens, ledger.spent("r").seconds) == (0.75, 110, 3.0)
    assert ledger.spent("r", "b").tokens == 10
    assert ledger.spent("other").usd == 0


def test_reads_are_remembered_in_order_once(ledger: Ledger) -> None:
    for what in ("charter", "lesson:cpu/x", "charter"):
        ledger.note_read("r", "a", what)
    assert ledger.reads("r", "a") == ["charter", "lesson:cpu/x"]


# --- the file -------------------------------------------------------------------------------------------------------


def test_nothing_is_opened_before_it_is_used(tmp_path: Path) -> None:
    Ledger(tmp_path / "root" / "lab.db")
    assert not (tmp_path / "root").exists()


def test_the_database_of_a_newer_version_is_refused(ledger: Ledger) -> None:
    ledger.runs()
    ledger.close()
    with closing(sqlite3.connect(ledger.path)) as db:
        db.execute("PRAGMA user_version = 99")
    with pytest.raises(LabError, match="newer kernel-lab"):
        ledger.runs()


def test_a_damaged_database_is_a_failure_of_the_lab(tmp_path: Path) -> None:
    (tmp_path / "lab.db").write_bytes(b"not a database at all" * 100)
    with pytest.raises(HarnessError, match=r"lab\.db cannot be used"):
        Ledger(tmp_path / "lab.db").runs()


def test_an_error_inside_a_transaction_leaves_nothing_behind(ledger: Ledger) -> None:
    job, _ = ledger.open_job("benchmark", "k", "r", "", {}, this_process())
    with pytest.raises(TypeError):
        ledger.record_evaluation(job.id, "r", "", SOLUTION, RESULT, {"not json": object()}, {})
    assert ledger.evaluations() == []
    assert ledger.job(job.id).state == "queued"


@pytest.mark.anyio
async def test_nothing_acknowledged_is_lost_when_writers_are_killed(tmp_path: Path) -> None:
    """Four processes race to create the database and write to it, each is killed at another moment."""
    ledger = Ledger(tmp_path / "lab.db")
    printed: list[str] = []

    async def write_until_killed(name: str, lines: int) -> None:
        command = [sys.executable, "-P", "-c", WRITER, str(ledger.path), name]
        command += [SOLUTION.model_dump_json(), RESULT.model_copy(update={"speedup": None}).model_dump_json()]
        async with started_process(command, cwd=tmp_path) as process:
            assert process.stdout
            text = b""
            async for chunk in process.stdout:
                text += chunk
                if text.count(b"\n") >= lines:
                    process.kill()
                    break
            async for chunk in process.stdout:
                text += chunk
        printed.extend(text.decode().rpartition("\n")[0].split("\n"))

    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            for number in range(4):
                group.start_soon(write_until_killed, f"w{number}", 5 + 10 * number)
    stored = [row.id for row in ledger.evaluations()]
    assert len(printed) >= 80
    assert set(printed) <= set(stored)
    assert len(stored) <= len(printed) + 4
    assert ledger.verify_chain("r") == []


def test_a_process_that_is_not_there_owns_nothing() -> None:
    assert owner_of(999_999_999) == "999999999:0"
    assert not owner_alive(owner_of(999_999_999))


# --- search ---------------------------------------------------------------------------------------------------------

DOCUMENTS = [
    ("b", "Vector width", "wide vectors spill"),
    ("a", "Spilling registers", "the accumulators of a tile"),
    ("c", "Other", "nothing in common, café"),
]


def test_search_stems_words_and_prefers_titles() -> None:
    assert full_text_search(DOCUMENTS, "spills", 10) == ["a", "b"]
    assert full_text_search(DOCUMENTS, "spills", 1) == ["a"]
    assert full_text_search(DOCUMENTS, "CAFE", 10) == ["c"]


@pytest.mark.parametrize("query", ["", "   ", "***", '"', "-", "()", "\ud800"])
def test_a_query_without_words_lists_all(query: str) -> None:
    assert full_text_search(DOCUMENTS, query, 10) == ["a", "b", "c"]


@pytest.mark.parametrize(
    "query",
    ['"spill', "spill OR", "NOT spill", "NEAR(spill, 2)", "title:spill*", "^spill", "spill\0", "²spill", "a" * 9999],
)
def test_no_query_breaks_the_syntax(query: str) -> None:
    assert set(full_text_search(DOCUMENTS, query, 10)) <= {"a", "b", "c"}
