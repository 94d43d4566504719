"""Child process: what the devices of one driver are, as JSON. Makes no context on any of them.

python -P -m toolkits.core.gpu.device_facts cuda /path/of/libcuda.so.1
"""

import json
import sys

from toolkits.core.gpu.device_driver import DeviceError, Driver


def main(api: str, library: str) -> None:
    """A list of facts; one object with `problem` where the driver is not to be had."""
    try:
        driver = Driver(api, library)
        print(json.dumps([driver.facts(index) for index in range(driver.count())]))  # noqa: T201 - the answer
    except (OSError, DeviceError) as error:
        print(json.dumps({"problem": str(error)}))  # noqa: T201


if __name__ == "__main__":
    main(*sys.argv[1:])
