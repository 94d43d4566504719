"""Things that happen at a certain point of a conversation, and not merely about then."""

from collections.abc import Callable

from tests.scripted_model import Request, ScriptedModel


class _Requests(list[Request]):
    def __init__(self, number: int, happens: Callable[[], object]) -> None:
        super().__init__()
        self._number = number
        self._happens = happens

    def append(self, request: Request) -> None:
        super().append(request)
        if len(self) == self._number:
            self._happens()


def at_request(model: ScriptedModel, number: int, happens: Callable[[], object]) -> None:
    """It happens when the model has got its request of that number (from 1), and before it answers."""
    model.requests = _Requests(number, happens)
