"""Start what a pod asks of the image: Spark's driver or executor, or else a verb.

Spark on Kubernetes gives a pod one of the words ``driver`` and ``executor``, and the rest by
variables (``Constants`` and the feature steps of its resource manager name them).
"""

import os
import sys
from collections.abc import Mapping, Sequence

_BACKEND = "org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend"
_JAVA_OPTION = "SPARK_JAVA_OPT_"
_OF_EXECUTOR = {
    "--driver-url": "SPARK_DRIVER_URL",
    "--executor-id": "SPARK_EXECUTOR_ID",
    "--cores": "SPARK_EXECUTOR_CORES",
    "--app-id": "SPARK_APPLICATION_ID",
    "--hostname": "SPARK_EXECUTOR_POD_IP",
    "--resourceProfileId": "SPARK_RESOURCE_PROFILE_ID",
    "--podName": "SPARK_EXECUTOR_POD_NAME",
}


def command(words: Sequence[str], variables: Mapping[str, str]) -> list[str]:
    """Return the command for the words that a container is started with.

    Raises:
        KeyError: a variable that Spark gives to its pods is not set.
    """
    home = variables.get("SPARK_HOME", "")
    match words:
        case ["driver", *rest]:
            bind = f"spark.driver.bindAddress={variables['SPARK_DRIVER_BIND_ADDRESS']}"
            return [f"{home}/bin/spark-submit", "--conf", bind, "--deploy-mode", "client", *rest]
        case ["executor", *_]:
            numbers = sorted(
                int(name.removeprefix(_JAVA_OPTION))
                for name in variables
                if name.startswith(_JAVA_OPTION)
            )
            memory = variables["SPARK_EXECUTOR_MEMORY"]
            return [
                *("java", *(variables[f"{_JAVA_OPTION}{number}"] for number in numbers)),
                *(f"-Xms{memory}", f"-Xmx{memory}"),
                *("-cp", f"{home}/conf:{home}/jars/*", _BACKEND),
                *(word for name in _OF_EXECUTOR for word in (name, variables[_OF_EXECUTOR[name]])),
            ]
        case _:
            return ["kafka-segments", *words]


if __name__ == "__main__":
    started = command(sys.argv[1:], os.environ)
    os.execvp(started[0], started)  # noqa: S606  the pod is this process
