"""How roles end, go on, fail over, wait and help: real processes of the shell agent on a real ledger."""

import json
import subprocess
from pathlib import Path

import pytest

from mcp_server.budgets import Caps
from mcp_server.endings import Patience
from mcp_server.ledger import Ledger, RoleRow, this_process
from tests.mcp_server.shell_agent import COUNTED, DONE, NO_WAIT, RUN, install, roles_of, says, spends
from toolkits.core.errors import BudgetExhausted, InvalidInput
from toolkits.core.process import started_at
from toolkits.core.schema import Json

pytestmark = pytest.mark.anyio
SLEEP = "exec sleep 1000\n"
API_ERROR = says(ending="api_error", note="overloaded")


@pytest.fixture(autouse=True)
def shell_agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path / "site", monkeypatch)


def attempts_told(ledger: Ledger) -> list[Json]:
    return [line.body for line in ledger.history(RUN, kinds=["role_attempt"])]


async def test_after_an_api_error_the_same_session_goes_on(tmp_path: Path) -> None:
    again = f'if [ $n = 2 ]; then echo "$SESSION" > session; echo "$PROMPT" > prompt; {DONE} exit; fi\n'
    async with roles_of(tmp_path / "lab") as (roles, ledger):
        started = await roles.spawn(RUN, "a", COUNTED + again + says(kind="session", text="s-1") + API_ERROR, "shell")
        ended = await roles.wait(started.role)
        assert (ended.state, ended.attempts) == ("done", 2)
        worktree = Path(ended.folder) / "worktree"
        assert (worktree / "session").read_text() == "s-1\n"
        assert "interrupted (overloaded)" in (worktree / "prompt").read_text()
        assert [(told["ending"], told["next"]["why"]) for told in attempts_told(ledger)] == [
            ("api_error", "retry 1 after api_error"),
            ("done", ""),
        ]
        result = json.loads((Path(ended.folder) / "result.json").read_text())
        assert [one["ending"] for one in result["attempts_made"]] == ["api_error", "done"]


async def test_a_refusal_goes_to_the_next_agent_with_its_own_model(tmp_path: Path) -> None:
    script = f'if [ "$MODEL" = m2 ]; then {DONE} exit; fi\n' + says(ending="refused", note="declined")
    async with roles_of(tmp_path / "lab") as (roles, _):
        started = await roles.spawn(RUN, "a", script, "shell:m1,other:m2")
        ended = await roles.wait(started.role)
        assert (ended.state, ended.agent, ended.attempts) == ("done", "other:m2", 2)
        alone = await roles.spawn(RUN, "b", script, "shell:m1")
        assert (await roles.wait(alone.role)).state == "refused"


async def test_a_quota_pauses_the_role_and_a_stop_wins_over_the_pause(tmp_path: Path) -> None:
    script = says(ending="quota", note="limit reached", quota_until="2999-01-01T00:00:00Z")
    patience = NO_WAIT.model_copy(update={"quota_longest_s": 1e12})
    async with roles_of(tmp_path / "lab", patience=patience) as (roles, ledger):
        started = await roles.spawn(RUN, "a", script, "shell")
        while not ledger.role(started.role).note:
            assert (await roles.wait(started.role, 0.1)).state == "running", ledger.role(started.role)
        assert "until the quota ends" in ledger.role(started.role).note
        assert (await roles.stop(started.role)).state == "stopped"
    async with roles_of(tmp_path / "lab2") as (roles, _):
        started = await roles.spawn(RUN, "a", script, "shell")
        ended = await roles.wait(started.role)
        assert ended.state == "quota" and "too long" in ended.note


async def test_an_agent_that_fails_too_often_in_a_run_is_left_alone_by_all_its_roles(tmp_path: Path) -> None:
    patience = Patience(backoff_s=(0.0,) * 9, circuit_failures=3)
    async with roles_of(tmp_path / "lab", patience=patience) as (roles, _):
        started = await roles.spawn(RUN, "a", "exit 7", "shell")
        ended = await roles.wait(started.role)
        assert (ended.state, ended.attempts) == ("crashed", 3)
        second = await roles.wait((await roles.spawn(RUN, "b", "exit 7", "shell")).role)
        assert (second.state, second.attempts) == ("crashed", 0)
        assert "left alone" in second.note
        third = await roles.spawn(RUN, "c", DONE, "shell,other")
        assert (await roles.wait(third.role)).agent == "other"


async def test_tokens_are_paid_by_the_price_table_until_the_agent_tells_dollars(tmp_path: Path) -> None:
    tokens = {"input_tokens": 1000, "cache_read_tokens": 2000, "cache_write_tokens": 400, "output_tokens": 100}
    script = spends("claude-sonnet-4-5-20250929", **tokens) + spends("gpt-5.1", **tokens) + SLEEP
    async with roles_of(tmp_path / "lab") as (roles, _):
        started = await roles.spawn(RUN, "a", script, "shell", caps=Caps(tokens=7000))
        ended = await roles.wait(started.role)
        expected = (
            1000 * 3 + 2000 * 0.3 + 400 * 3.75 + 100 * 15 + 1000 * 1.25 + 2000 * 0.125 + 400 * 1.25 + 1000
        ) / 1e6
        assert (ended.state, ended.tokens, ended.usd) == ("budget", 7000, round(expected, 6))
        said = spends("gpt-5.1", **tokens) + says(kind="spend", usd_total=0.5) + DONE
        told = await roles.wait((await roles.spawn(RUN, "b", said, "shell")).role)
        assert (told.state, told.usd) == ("done", 0.5)


async def test_a_cap_in_usd_needs_a_price_and_the_workspace_may_give_it(tmp_path: Path) -> None:
    script = spends("mine", input_tokens=1_000_000) + SLEEP
    lab = tmp_path / "lab"
    async with roles_of(lab) as (roles, _):
        with pytest.raises(InvalidInput, match=r"no price for the model 'mine'.*prices.yaml.*or give a token cap"):
            await roles.spawn(RUN, "a", script, "shell:mine", caps=Caps(usd=1))
        ended = await roles.wait((await roles.spawn(RUN, "a", script, "shell", caps=Caps(usd=1))).role)
        assert ended.state == "budget" and "no price for the model 'mine'" in ended.note
        (lab / "prices.yaml").write_text("models: {mine: {input: 2, cache_read: 0, cache_write: 0, output: 9}}\n")
        priced = await roles.wait((await roles.spawn(RUN, "b", script, "shell:mine", caps=Caps(usd=1))).role)
        assert (priced.state, priced.usd) == ("budget", 2.0)


async def test_the_cap_of_a_run_less_its_reserve_holds_over_all_its_roles(tmp_path: Path) -> None:
    reply = spends("gpt-5.1", output_tokens=5000)  # 0.05 USD
    script = f"while true; do {reply} sleep 0.3; done"
    async with roles_of(tmp_path / "lab", config={"usd": 1.0, "reserve": 0.5}) as (roles, ledger):
        names = [(await roles.spawn(RUN, name, script, "shell")).role for name in ("a", "b", "c")]
        ended = [await roles.wait(role) for role in names]
        assert [one.state for one in ended] == ["budget"] * 3
        assert 0.5 <= ledger.spent(RUN).usd <= 0.5 + 3 * 0.05 + 1e-9


async def test_a_helper_spends_from_its_parent_and_ends_with_it(tmp_path: Path) -> None:
    async with roles_of(tmp_path / "lab") as (roles, ledger):
        parent = await roles.spawn(RUN, "a", SLEEP, "shell", caps=Caps(usd=1))
        row: RoleRow = ledger.role(parent.role)
        idle = await roles.spawn(RUN, "idle", SLEEP, "shell", parent=row)
        costly = says(kind="spend", usd_total=1.5) + SLEEP
        helper = await roles.spawn(RUN, "h", costly, "shell", parent=row)
        assert (await roles.wait(helper.role)).state == "budget"
        ended = await roles.wait(parent.role)
        assert (ended.state, ended.usd) == ("budget", 1.5)
        assert ledger.role(idle.role).state in ("budget", "stopped")
        assert (idle.name, idle.parent) == ("a.idle", parent.role)
        with pytest.raises(BudgetExhausted, match="no budget is left for a helper"):
            await roles.spawn(RUN, "late", SLEEP, "shell", parent=row)


async def test_a_stalled_role_is_ended_with_all_its_processes_but_not_while_its_job_is_at_work(tmp_path: Path) -> None:
    charter = "---\nquiet_minutes: 0.01\n---\necho $$ > pid\n" + SLEEP
    async with roles_of(tmp_path / "lab", patience=Patience(backoff_s=())) as (roles, ledger):
        started = await roles.spawn(RUN, "a", charter, "shell")
        job, _ = ledger.open_job("compile", "k", RUN, started.role, {}, this_process())
        assert (await roles.wait(started.role, 2.0)).state == "running"
        ledger.finish_job(job.id, "done", {})
        ended = await roles.wait(started.role)
        assert ended.state == "stalled" and "no output for 0.01 minutes" in ended.note
        assert started_at(int((Path(ended.folder) / "worktree" / "pid").read_text())) is None


async def test_what_the_charter_lists_must_be_read_and_is_asked_for_once(tmp_path: Path) -> None:
    charter = "---\nread: [history]\n---\n" + COUNTED + 'echo "$PROMPT" > prompt$n\n' + DONE
    async with roles_of(tmp_path / "lab") as (roles, ledger):
        ended = await roles.wait((await roles.spawn(RUN, "a", charter, "shell")).role)
        assert (ended.state, ended.attempts) == ("done", 2)
        worktree = Path(ended.folder) / "worktree"
        assert "Read before you end: history" in (worktree / "prompt1").read_text()
        assert "has not seen you open history" in (worktree / "prompt2").read_text()
        assert [told["next"]["why"] for told in attempts_told(ledger)] == ["history is not read", ""]


async def test_no_key_is_in_any_file_that_the_lab_wrote(tmp_path: Path) -> None:
    key = 'sk-dummy-"secret"-0123456789'
    script = 'printf "%s" "$SHELL_API_KEY" | head -c 9; sleep 0.2; printf "%s" "$SHELL_API_KEY" | tail -c +10\n'
    script += 'echo; echo "$SHELL_API_KEY $KERNEL_LAB_TOKEN" >&2\n'
    lab = tmp_path / "lab"
    async with roles_of(lab, keys={"SHELL_API_KEY": key}, patience=Patience(backoff_s=())) as (roles, _):
        ended = await roles.wait((await roles.spawn(RUN, "a", script, "shell")).role)
        assert ended.state == "crashed" and "[secret] [secret]" in ended.note
        assert (Path(ended.folder) / "transcript.jsonl").read_text() == "[secret]\n"
    files = [path for path in lab.rglob("*") if path.is_file()]
    forms = [form.encode() for form in (key, json.dumps(key)[1:-1])]
    assert not [path for path in files if any(form in path.read_bytes() for form in forms)]


async def test_a_worktree_is_a_branch_of_the_run_with_the_start_solution_to_edit(tmp_path: Path) -> None:
    script = "git log --format=%s > before; echo '// faster' >> solution/kernel.cpp; rm .git; mkdir .git\n" + DONE
    async with roles_of(tmp_path / "lab") as (roles, _):
        ended = await roles.wait((await roles.spawn(RUN, "a", script, "shell")).role)
        worktree = Path(ended.folder) / "worktree"
        assert (worktree / "before").read_text().startswith("start from solution ")
        repository = tmp_path / "lab" / "runs" / RUN / "repository"
        log = ["git", "-C", str(repository), "log", "-p", "--format=%an %s", "team-001/a"]
        told = subprocess.run(log, capture_output=True, text=True, check=True).stdout
        assert told.startswith("kernel-lab attempt of shell ended: done") and "+// faster" in told
