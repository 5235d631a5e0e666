"""What verbs print as JSON, held against their published schemas."""

import json
from collections.abc import Iterable
from functools import cache
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match

from kafka_segments.console.output_schemas import output_schema


def schema_of(verb: str) -> dict[str, Any]:
    """Return the published schema of a verb's rows."""
    found: dict[str, Any] = json.loads(output_schema(verb))
    return found


def forms_of(schema: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the schemas of the forms that a verb's rows have."""
    forms: list[dict[str, Any]] = schema.get("anyOf", [schema])
    return forms


def misfits(verb: str, lines: Iterable[str]) -> list[str]:
    """Return in words why lines are not what a verb's schema says, fields beside it included."""
    validator = _strict_validator(verb)
    found = (best_match(validator.iter_errors(json.loads(line))) for line in lines)
    return [f"{error.json_path}: {error.message}" for error in found if error is not None]


@cache
def _strict_validator(verb: str) -> Draft202012Validator:
    return Draft202012Validator(
        _strict(schema_of(verb)), format_checker=Draft202012Validator.FORMAT_CHECKER
    )


def _strict(schema: Any) -> Any:
    """Allow no properties but those that a schema names: readers allow them, a test does not."""
    if isinstance(schema, list):
        return [_strict(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    inner = {name: _strict(each) for name, each in schema.items()}
    if isinstance(inner.get("properties"), dict) and "required" in inner:
        inner.setdefault("additionalProperties", False)
    return inner
