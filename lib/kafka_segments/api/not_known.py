"""What an answer of the API did not know, kept for who asks: on the command line, stderr has it."""

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from kafka_segments.console.not_known import noting


class Answering(Protocol):
    """What gives answers: ``_told`` has each line once that they told, in their order."""

    _told: dict[str, None]


_Of = TypeVar("_Of", bound=Answering)
_Given = ParamSpec("_Given")
_Answer = TypeVar("_Answer")


def keeps_told(
    ask: Callable[Concatenate[_Of, _Given], _Answer],
) -> Callable[Concatenate[_Of, _Given], _Answer]:
    """Let a method keep what ``tell_not_known`` says while it runs, also where it fails."""

    @wraps(ask)
    def asked(self: _Of, /, *args: _Given.args, **kwargs: _Given.kwargs) -> _Answer:
        with noting() as told:
            try:
                return ask(self, *args, **kwargs)
            finally:
                self._told.update(dict.fromkeys(told))

    return asked
