"""Properties of a Delta table that ask something of its writers, by their names in its log.

Source: delta-io/delta PROTOCOL.md, Writer Version Requirements; docs.delta.io, Table properties.
"""

from collections.abc import Mapping

APPEND_ONLY = "delta.appendOnly"
CHANGE_FEED = "delta.enableChangeDataFeed"
MEASURED_COLUMNS = "delta.dataSkippingStatsColumns"
"""Of these columns files have statistics; the others pass no file over."""
_CONSTRAINT = "delta.constraints."


def is_set(properties: Mapping[str, str], name: str) -> bool:
    """Tell whether a property is true."""
    return properties.get(name, "").lower() == "true"


def constraint_properties(constraints: Mapping[str, str]) -> dict[str, str]:
    """Return CHECK constraints, conditions by name, as properties."""
    return {f"{_CONSTRAINT}{name}": condition for name, condition in constraints.items()}


def constraints_among(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the CHECK constraints that properties have, conditions by name."""
    return {
        key.removeprefix(_CONSTRAINT): condition
        for key, condition in properties.items()
        if key.startswith(_CONSTRAINT)
    }
