"""Numbers of the page as a person reads them."""

from kafka_segments.console.output import size_text

_LEAST_SHARE = 0.1


def round_size_text(size_bytes: float) -> str:
    """Return a round number of bytes as text, for the marks of an axis: without ".0"."""
    return size_text(size_bytes).replace(".0 ", " ")


def count_text(number: float) -> str:
    """Return a count as text, with its thousands set apart."""
    return f"{number:,.0f}"


def share_text(part: float, whole: float) -> str:
    """Return a part in percent of the whole as text; a small one gets a decimal."""
    share = 100 * part / whole if whole else 0
    if 0 < share < _LEAST_SHARE:
        return f"less than {_LEAST_SHARE} %"
    return f"{share:.1f} %" if 0 < share < 10 else f"{share:.0f} %"


def many(number: int, what: str) -> str:
    """Return a count with the name of what is counted, in the plural unless it is 1."""
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"
