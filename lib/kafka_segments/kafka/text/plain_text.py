"""Names as text that a person reads: nothing in them acts on a terminal, or hides what they are."""

from collections.abc import Iterable

_MOST_DIRS = 4


def first_of(names: Iterable[object], most: int) -> str:
    """Return names for a sentence: ``a, b and 3 more``, where there are more than ``most``."""
    every = list(map(str, names))
    more = f" and {len(every) - most} more" if len(every) > most else ""
    return f"{', '.join(every[:most])}{more}"


def node_in_words(cluster: str, node_id: int, log_dirs: Iterable[object] = ()) -> str:
    """Name a node by its id and its cluster, as far as they are known, and its directories.

    ``cluster`` empty, ``node_id`` -1: not known.
    """
    broker = "a broker" if node_id < 0 else f"broker {node_id}"
    of_cluster = f" of cluster {cluster}" if cluster else ""
    dirs = first_of(log_dirs, _MOST_DIRS)
    return f"{broker}{of_cluster}, {dirs}" if dirs else f"{broker}{of_cluster}"


def plain(text: str) -> str:
    r"""Return a text in one line, with each sign that does not print written as its escape.

    A group id, a client id, a folder's name may hold anything: line ends, sequences by which a
    terminal recolours, retitles or fills its clipboard (ESC, C1), marks that turn the order of
    letters around (U+202E), signs that cannot be seen. They become ``\n``, ``\x1b``, ``\u202e``.
    """
    if text.isprintable():
        return text
    return "".join(sign if sign.isprintable() else _escape(sign) for sign in text)


def plain_lines(text: str) -> str:
    """Return a text as ``plain``, with its own line ends."""
    return "\n".join(map(plain, text.split("\n")))


def plain_json(line: str) -> str:
    """Return a line of JSON with the same values, in which every sign prints.

    JSON may hold C1, DEL and marks of direction as they are; each of these stands in a text.
    """
    if line.isprintable():
        return line
    return "".join(sign if sign.isprintable() else _json_escape(sign) for sign in line)


def _escape(sign: str) -> str:
    return sign.encode("unicode_escape").decode("ascii")


def _json_escape(sign: str) -> str:
    units = sign.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))
