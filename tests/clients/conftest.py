"""What the tests of clients share: one lab over HTTP."""

from collections.abc import Iterator

import pytest

from tests.clients.people import Served, served


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("server")) as lab:
        yield lab
