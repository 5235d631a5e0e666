"""What a job reads and writes, as OpenLineage names it: plain Python, without Airflow."""

from collections.abc import Iterable, Mapping
from typing import Any

_OBJECT_STORES = {"s3": "s3", "s3a": "s3", "s3n": "s3", "gs": "gs", "wasbs": "wasbs"}
_READ = ("source", "backup", "against")
_WRITTEN = ("index-dir",)


def dataset_of(uri: str) -> tuple[str, str]:
    """Return namespace and name of a place by OpenLineage's rules, without credentials.

    They are those of its integration for Spark, so that both name a Delta table alike.
    """
    scheme, is_uri, rest = uri.partition("://")
    authority, _, path = rest.partition("/")
    if not is_uri:
        return "file", uri.rstrip("/") or "/"
    user, _, host = authority.rpartition("@")
    authority, path = (host if ":" in user else authority), path.rstrip("/")
    if scheme in _OBJECT_STORES:
        return f"{_OBJECT_STORES[scheme]}://{authority}", path or "/"
    return (f"{scheme}://{authority}" if authority else scheme), f"/{path}"


def datasets(
    options: Mapping[str, Any], reads: Iterable[str], writes: Iterable[str]
) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Return inputs and outputs of a job, each as ``dataset_of`` gives it.

    Args:
        options: those of the verb, as it is called.
        reads: tables below the warehouse that are read.
        writes: tables below it that are written.
    """
    named = {key: options.get(key) for key in (*_READ, *_WRITTEN)}
    named["against"] = [copy.partition("=")[2] for copy in named["against"] or ()]
    warehouse = str(options.get("warehouse")).rstrip("/")
    return tuple(  # type: ignore[return-value]
        [
            *(dataset_of(uri) for key in keys for uri in _listed(named[key])),
            *(dataset_of(f"{warehouse}/{table}") for table in tables),
        ]
        for keys, tables in ((_READ, reads), (_WRITTEN, writes))
    )


def _listed(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else list(value or ())
