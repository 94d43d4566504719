"""`kernel-lab serve`, without Typer: a client counts every millisecond until the first answer."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from mcp_server.serving import serve_http, serve_stdio
from toolkits.core.errors import LabError


def root_of(given: str | None) -> Path:
    """The workspace root: what was given, else KERNEL_LAB_ROOT, else .kernel-lab here."""
    return Path(given or os.environ.get("KERNEL_LAB_ROOT") or ".kernel-lab")


def serve(words: Sequence[str]) -> None:
    import argparse

    parser = argparse.ArgumentParser(prog="kernel-lab", add_help=False, allow_abbrev=False)
    parser.add_argument("verb", choices=["serve"])
    parser.add_argument("--root")
    parser.add_argument("--http", action="store_true")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0)
    options = parser.parse_args(words)
    try:
        if options.http:
            serve_http(root_of(options.root), options.host, options.port)
        else:
            serve_stdio(root_of(options.root))
    except LabError as error:
        sys.stderr.write(f"kernel-lab: {error}\n")
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
