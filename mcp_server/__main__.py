"""The command line. `serve` is dispatched before the terminal's libraries are imported: clients wait for it."""

import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> None:
    words = list(sys.argv[1:] if arguments is None else arguments)
    if _verb(words) == "serve" and not {"-h", "--help"} & set(words):
        from mcp_server.cli_serve import serve

        serve(words)
    else:
        from mcp_server.cli import run

        run(words)


def _verb(words: Sequence[str]) -> str:
    """The first word that is neither an option nor the value of `--root`."""
    rest = iter(words)
    for word in rest:
        if word == "--root":
            next(rest, "")
        elif not word.startswith("-"):
            return word
    return ""


if __name__ == "__main__":
    main()
