"""Write dbt's description of a warehouse's tables, from the schemas of this package.

python conf/dbt/sources.py > conf/dbt/models/sources.yml
"""

import json
from collections.abc import Iterator

from kafka_segments.engine.tables.schemas import newest_versions, schema

_PATH = "{{ env_var('WAREHOUSE') }}"


def sources() -> Iterator[str]:
    """Give the lines: each table with its place, its columns, and what they hold."""
    yield "sources:"
    yield "  - name: kafka_segments"
    yield "    tables:"
    for name, version in sorted(newest_versions().items()):
        table = schema(f"{name}.v{version}")
        place = {"plugin": "delta", "delta_table_path": f"{_PATH}/{name}"}
        yield f"      - name: {name}"
        yield f"        config: {json.dumps({'meta': place})}"
        yield "        columns:"
        for column in table:
            said = column.metadata.get("comment", "")
            yield f"          - name: {column.name}"
            yield f"            description: {json.dumps(said)}"


if __name__ == "__main__":
    print("\n".join(sources()))
