"""Fixtures that every test may use, and a core with its own lease for each of pytest-xdist's workers."""

import atexit
import os
import shutil
import signal
import tempfile
from pathlib import Path

import pytest


def _stay_on_one_core(worker: str) -> None:
    """Two judges that time on the same core would disturb each other; the lease is per folder of temporary files."""
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[int(worker.removeprefix("gw")) % len(cores)]})
    os.environ["TMPDIR"] = tempfile.tempdir = tempfile.mkdtemp(prefix=f"kernel-lab-tests-{worker}-")
    Path(tempfile.tempdir).chmod(0o755)  # tests start processes of other users
    atexit.register(shutil.rmtree, tempfile.tempdir, ignore_errors=True)


# A shell starts what it puts in the background with Ctrl-C ignored, and every child of the tests would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
if found := os.environ.get("PYTEST_XDIST_WORKER"):
    _stay_on_one_core(found)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
