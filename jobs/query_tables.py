"""Run one query over a warehouse's tables: `kafka-segments sql`."""

from kafka_segments.verbs.tell.sql.command import sql

if __name__ == "__main__":
    sql(prog_name="query_tables.py")
