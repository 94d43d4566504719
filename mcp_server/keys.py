"""Keys of models: taken out of the server's environment, handed to the one role that needs them, and never written.

What is taken is told by the name of a variable alone, so no adapter has to be loaded for it: everything that ends like
a credential (API_KEY, AUTH_TOKEN, ACCESS_TOKEN, OAUTH_TOKEN, API_TOKEN, SECRET, SECRET_KEY, PASSWORD and the like), or
like the address that such a credential is meant for (BASE_URL, API_BASE, API_URL).
"""

import json
import re
from collections.abc import Iterable, Mapping, MutableMapping

_SECRET = re.compile(
    r"(^|_)(API_?KEY|(AUTH|ACCESS|OAUTH|API|SESSION|BEARER)_?TOKEN|SECRET|SECRET(_ACCESS)?_KEY|PASSWORD)$",
    re.IGNORECASE,
)
_ADDRESS = re.compile(r"(^|_)(BASE_?URL|API_BASE|API_URL)$", re.IGNORECASE)
SHORTEST_SECRET = 6
"""A shorter value would be found in every text."""
HIDDEN = "[secret]"


def taken(environment: MutableMapping[str, str]) -> dict[str, str]:
    """Remove every variable that looks like a key or its address; they are no longer inherited by anything."""
    names = [name for name in environment if _SECRET.search(name) or _ADDRESS.search(name)]
    return {name: environment.pop(name) for name in names}


def for_agent(wanted: Iterable[str], keys: Mapping[str, str], environment: Mapping[str, str]) -> dict[str, str]:
    """Of an agent's variables those that are set: among the keys, else still in the environment."""
    known = {**environment, **keys}
    return {name: known[name] for name in wanted if known.get(name)}


class Secrets:
    """All values that must not be written, and the way to write without them."""

    def __init__(self, keys: Mapping[str, str] | None = None) -> None:
        self._forms: set[str] = set()
        for name, value in (keys or {}).items():
            if not _ADDRESS.search(name) or "@" in value:
                self.add(value)

    def add(self, value: str) -> None:
        """From now on this value is hidden too, also as it looks inside a JSON string."""
        if len(value) >= SHORTEST_SECRET:
            self._forms |= {value, json.dumps(value)[1:-1]}

    def hidden(self, text: str) -> str:
        """The text without any secret."""
        return self._hidden(text.encode("utf-8", "surrogateescape")).decode("utf-8", "surrogateescape")

    def stream(self) -> "SecretStream":
        return SecretStream(self)

    def _hidden(self, data: bytes) -> bytes:
        for form in sorted(self._forms, key=len, reverse=True):
            data = data.replace(form.encode("utf-8", "surrogateescape"), HIDDEN.encode())
        return data

    def _open_end(self, data: bytes) -> int:
        """How many of the last bytes may be the beginning of a secret."""
        forms = [form.encode("utf-8", "surrogateescape") for form in self._forms]
        longest = max((len(form) for form in forms), default=1)
        for count in range(min(longest - 1, len(data)), 0, -1):
            if any(len(form) > count and form.startswith(data[-count:]) for form in forms):
                return count
        return 0


class SecretStream:
    """Chunks in, the same chunks without secrets out; what may be the beginning of one waits for the next chunk."""

    def __init__(self, secrets: Secrets) -> None:
        self._secrets = secrets
        self._kept = b""

    def add(self, chunk: bytes) -> bytes:
        data = self._secrets._hidden(self._kept + chunk)  # pyright: ignore[reportPrivateUsage]
        count = self._secrets._open_end(data)  # pyright: ignore[reportPrivateUsage]
        self._kept = data[len(data) - count :]
        return data[: len(data) - count]

    def rest(self) -> bytes:
        """What still waited, at the end of the stream."""
        rest, self._kept = self._kept, b""
        return rest
