"""Every client where an evaluation takes long, and where it dies meanwhile. The device is held by another process."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.clients.at_work import Client, Scripted, Small, device_held, until
from tests.clients.people import served
from tests.clients.results import jobs, recorded
from tests.scripted_model import ScriptedModel

pytestmark = pytest.mark.slow

NAMES = ("claude", "codex", "opencode")


@pytest.fixture(scope="module")
def temporary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where leases lie for all of them, and for no one else."""
    return tmp_path_factory.mktemp("temporary")


@pytest.fixture(scope="module")
def clients(tmp_path_factory: pytest.TempPathFactory, temporary: Path) -> Iterator[list[Client]]:
    """Three over stdio, each with a lab of its own, and the small model over HTTP."""
    home = tmp_path_factory.mktemp("clients")
    with ExitStack() as stack:
        models = {name: stack.enter_context(ScriptedModel([])) for name in NAMES}
        lab = stack.enter_context(served(home / "server", TMPDIR=str(temporary)))
        attached = [Scripted(name, home / name, model, temporary) for name, model in models.items()]
        yield [Small(home / "small", lab), *attached]


def test_an_evaluation_that_takes_90_seconds_reaches_every_client(clients: list[Client], temporary: Path) -> None:
    with ExitStack() as stack:
        release = stack.enter_context(device_held(temporary))
        processes = [stack.enter_context(client.measuring()) for client in clients]
        until(lambda: all(client.calls >= 3 for client in clients))  # two calls have waited 45 s each
        release()
        for client, process in zip(clients, processes, strict=True):
            assert process.wait() == 0, client.told()
            assert "PASSED" in client.told() and set(recorded(client.root)) == {"PASSED"}


def test_a_client_that_is_killed_in_the_middle_of_a_call_finds_the_result_afterwards(
    clients: list[Client], temporary: Path
) -> None:
    earlier = {job for client in clients for job in jobs(client.root)}
    with ExitStack() as stack:
        release = stack.enter_context(device_held(temporary))
        processes = [stack.enter_context(client.measuring()) for client in clients]
        until(lambda: all(set(jobs(client.root)) - earlier for client in clients))
        for process in processes:
            assert process.poll() is None
            process.kill()
            process.wait()
        release()
        for client in clients:
            (job,) = set(jobs(client.root)) - earlier
            client.asking_for(job)
            assert "PASSED" in client.told() and set(recorded(client.root)) == {"PASSED"}
