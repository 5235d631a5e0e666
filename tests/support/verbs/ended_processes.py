"""Processes that end in the middle of what they do, as one that is killed."""

import os
from collections.abc import Callable

KILLED = 9


def is_ended(arm: Callable[[], None], act: Callable[[], object]) -> bool:
    """Act in a process of its own that ``arm`` lets end early; tell whether it did.

    ``arm`` has it end by ``os._exit(KILLED)``.
    """
    child = os.fork()
    if child == 0:
        try:
            arm()
            act()
            os._exit(0)
        finally:
            os._exit(1)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status in (0, KILLED), status
    return status == KILLED
