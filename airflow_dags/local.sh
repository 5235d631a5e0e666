#!/usr/bin/env bash
# Run an airflow command on this machine: SQLite, no login, spark-submit of .venv on local[*], and
# the sample segments: airflow_dags/local.sh dags test kafka_segments_rebuild 2026-11-21
# `airflow_dags/local.sh start [DAG ...]` starts all of Airflow, those DAGs switched on.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
data=${AIRFLOW_DEMO:-$root/build/airflow}
venv=${JOBS_VENV:-$root/.venv}
port=${AIRFLOW__API__PORT:-8080}

export AIRFLOW_HOME=$data/home
export AIRFLOW__CORE__DAGS_FOLDER=$root/airflow_dags
export AIRFLOW__CORE__LOAD_EXAMPLES=False
# SQLite has one writer at a time: the others wait for their turn, longer than its 5 s.
export AIRFLOW__DATABASE__SQL_ALCHEMY_CONN="sqlite:///$AIRFLOW_HOME/airflow.db?timeout=60"
# On a machine that is busy a DAG takes longer to be read than Airflow waits for, which then has none.
export AIRFLOW__DAG_PROCESSOR__STALE_DAG_THRESHOLD=3600
export AIRFLOW__DAG_PROCESSOR__DAG_FILE_PROCESSOR_TIMEOUT=600 AIRFLOW__CORE__DAGBAG_IMPORT_TIMEOUT=300
export AIRFLOW__CORE__PARALLELISM=4 AIRFLOW__CORE__EXECUTOR=LocalExecutor
# Everyone who reaches the port is an admin: so it is bound to this machine.
export AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS=True
export AIRFLOW__API__HOST=127.0.0.1 AIRFLOW__API__PORT=$port AIRFLOW__API__BASE_URL=http://localhost:$port
export AIRFLOW__API__WORKERS=1
export AIRFLOW__USAGE_DATA_COLLECTION__ENABLED=False SCARF_ANALYTICS=false

export AIRFLOW_CONN_SPARK_DEFAULT='{"conn_type": "spark", "host": "local[*]"}'
export AIRFLOW_VAR_KAFKA_SEGMENTS_HOME=$root
export AIRFLOW_VAR_KAFKA_SEGMENTS_WAREHOUSE=$data/warehouse
export AIRFLOW_VAR_KAFKA_SEGMENTS_INDEX_DIR=$data/indexes
export AIRFLOW_VAR_KAFKA_SEGMENTS_LOG_DIRS=${AIRFLOW_VAR_KAFKA_SEGMENTS_LOG_DIRS:-"[{\"name\": \"broker-0\", \"sources\": [\"$data/broker/logs\"]}]"}

# What a worker needs: spark-submit on its PATH, the jobs' Python, Spark's settings.
export PATH=$root/.venv-airflow/bin:$PATH:$venv/bin
export PYSPARK_PYTHON=$venv/bin/python
export SPARK_CONF_DIR=$root/conf/spark
if [ "${1:-}" = start ]; then
  exec "$root/.venv-airflow/bin/python" "$root/airflow_dags/local_start.py" "${@:2}"
fi
exec airflow "$@"
