"""What py4j knows of Spark's classes, it does not ask the JVM for again."""

import pytest
from py4j.clientserver import JavaClient
from py4j.java_gateway import GatewayClient
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from kafka_segments.spark.known_classes import know_classes


def test_a_function_is_looked_up_once(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[str] = []
    send = JavaClient.send_command

    def noted(client: GatewayClient, command: str, *given: object, **named: object) -> object:
        sent.append(command)
        return send(client, command, *given, **named)

    know_classes(spark)
    F.upper(F.col("a"))
    monkeypatch.setattr(JavaClient, "send_command", noted)

    column = F.upper(F.col("b"))

    calls = [command for command in sent if not command.startswith("m")]  # m: objects let go of
    assert [command.split("\n")[2] for command in calls] == ["col", "upper"]
    assert spark.createDataFrame([("x",)], "b string").select(column).first() == ("X",)
