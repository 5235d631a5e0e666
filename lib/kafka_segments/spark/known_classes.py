"""Classes of Spark's JVM whose methods are looked up once a session, and not at each call.

py4j asks the JVM what a name is each time that one is read: of a function of Spark, whether there
is such a class, and whether it has such a method. That is half of what a column costs.
"""

from typing import Any

from py4j.java_gateway import JavaClass
from pyspark.sql import SparkSession

_KNOWN = {
    "org.apache.spark.sql.functions": "functions",
    "org.apache.spark.sql.expressions.Window": None,
    "org.apache.spark.api.python.PythonUtils": "PythonUtils",
}
"""Their names, and the short ones by which PySpark reads them too."""


class _KnownClass(JavaClass):  # type: ignore[misc]
    """A class that remembers its methods."""

    def __getattr__(self, name: str) -> Any:
        found = super().__getattr__(name)
        setattr(self, name, found)
        return found


def know_classes(spark: SparkSession) -> None:
    """Have PySpark read the methods of a session's most used classes without asking the JVM."""
    jvm: Any = spark.sparkContext._jvm
    for name, short in _KNOWN.items():
        known = _KnownClass(name, jvm._gateway_client)
        setattr(jvm, name, known)
        if short is not None:
            setattr(jvm, short, known)
