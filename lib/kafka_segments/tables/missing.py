"""What is said where a table, or the plan that a verb is to carry out, is not there."""

_MAKES_PLANS = {"migration_plans": "migrate plan", "retention_plans": "retention plan"}
_MADE_BY = {
    "internal_records": "internals --source",
    "metadata_": "internals --source",
    "offset_ranges": "build --digests",
    "remote_segments": "internals tier",
}
_WITHOUT_PLAN = {
    "migration_plans": "run `kafka-segments migrate plan`",
    "retention_plans": "see table retention_plans",
}


def missing_table(warehouse: str, name: str) -> str:
    """Return in words that a table is missing, and which verb makes it."""
    if name in _MAKES_PLANS:
        return f"{warehouse} has no plans: run `kafka-segments {_MAKES_PLANS[name]}`"
    made_by = next((verb for start, verb in _MADE_BY.items() if name.startswith(start)), "build")
    return f"{warehouse} has no table {name}: run `kafka-segments {made_by}`"


def missing_tables(warehouse: str) -> str:
    """Return in words that a warehouse is empty."""
    return f"{warehouse} has no tables: run `kafka-segments build`"


def missing_plan(warehouse: str, table: str, plan_id: str) -> str:
    """Return in words that no row of a table of plans has the id."""
    return f"{warehouse} has no plan {plan_id}: {_WITHOUT_PLAN[table]}"
