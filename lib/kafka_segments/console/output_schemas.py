"""The published schemas of what the verbs print as JSON: JSON Schema, one file a verb."""

from importlib.resources import files


def output_schema(verb: str) -> str:
    """Return the JSON Schema of a line that a verb prints by ``--output json``, as text.

    Args:
        verb: its words, such as ``divergence elect``.
    """
    name = f"{verb.replace(' ', '-')}.json"
    return files("kafka_segments").joinpath("schemas", "output", name).read_text("utf-8")
