"""Child process that asks the GPU drivers of this machine and prints one line of JSON.

    python -P -m toolkits.core.gpu.listing_child

Knows no types of the lab's: it starts in the time of a bare interpreter.
"""

import json

from toolkits.core.gpu import listing_amd, listing_nvidia

MARK = "kernel-lab devices: "
"""Drivers and their packages print what they like."""


def main() -> None:
    found = [*listing_nvidia.listed(), *listing_amd.listed()]
    print(f"\n{MARK}{json.dumps(found)}", flush=True)  # noqa: T201 - the answer


if __name__ == "__main__":
    main()
