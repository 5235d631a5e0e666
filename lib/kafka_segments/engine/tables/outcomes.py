"""What becomes of a log when a plan is carried out: values of columns ``status``."""

from enum import StrEnum


class Outcome(StrEnum):
    """How a step with one log ended."""

    DONE = "done"
    REFUSED = "refused"
    """The log is not as the step needs it; it is left alone."""
    FAILED = "failed"
    """The machine refused: the step can be run again."""
