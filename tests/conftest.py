"""Fixtures that every test may use, and a core for each of pytest-xdist's workers."""

import atexit
import os
import shutil
import signal
import tempfile
from pathlib import Path

import pytest

from toolkits.core.device import _lock_path  # pyright: ignore[reportPrivateUsage] # where the product has it


def _stay_on_one_core(worker: str) -> None:
    """Two judges that time on the same core would disturb each other: the lease of a core is shared by its workers."""
    cores = sorted(os.sched_getaffinity(0))
    core = cores[int(worker.removeprefix("gw")) % len(cores)]
    os.sched_setaffinity(0, {core})
    lease = Path(tempfile.gettempdir()) / f"kernel-lab-tests-core{core}.lock"
    os.environ["TMPDIR"] = tempfile.tempdir = tempfile.mkdtemp(prefix=f"kernel-lab-tests-{worker}-")
    Path(tempfile.tempdir).chmod(0o755)  # tests start processes of other users
    lease.touch()
    _lock_path("cpu").symlink_to(lease)
    atexit.register(shutil.rmtree, tempfile.tempdir, ignore_errors=True)


# A shell starts what it puts in the background with Ctrl-C ignored, and every child of the tests would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
if found := os.environ.get("PYTEST_XDIST_WORKER"):
    _stay_on_one_core(found)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
