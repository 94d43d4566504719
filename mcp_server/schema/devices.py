"""What a caller is told of this machine."""

from toolkits.core.schema import Device, Record


class DevicesAnswer(Record):
    devices: list[Device]
    toolkits: dict[str, str]
    """Toolkit -> empty when usable, else what is missing."""
    profilers: dict[str, str]
