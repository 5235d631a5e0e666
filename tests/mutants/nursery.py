"""A process that has imported what the package needs, and forks one run of pytest after another.

It reads lines of JSON: the arguments, the environment, limits and where the output goes; and
answers with the status, or the signal's that ended the run.
"""

import contextlib
import json
import os
import resource
import signal
import sys
import time
import traceback
from typing import Any

import hypothesis
import numba
import numpy as np
import pyarrow.compute
import pyarrow.fs
import pyspark.sql.functions
import pytest

_USED = (hypothesis, np, pyarrow, pyspark)
_LOOK_EVERY_S = 0.05


def main() -> None:
    """Serve until the other end is closed."""
    numba.njit(lambda value: value + 1)(np.int64(1))  # numba's own tables are made here
    for line in sys.stdin:
        print(json.dumps(_run(json.loads(line))), flush=True)


def _run(request: dict[str, Any]) -> int:
    child = os.fork()
    if not child:
        _begin(request)
    until = time.monotonic() + request["idle_seconds"]
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            break
        if time.monotonic() > until:
            os.killpg(child, signal.SIGALRM)
        time.sleep(_LOOK_EVERY_S)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)  # what the run has left
    return os.waitstatus_to_exitcode(status)


def _begin(request: dict[str, Any]) -> None:
    """Be the run."""
    status = int(pytest.ExitCode.INTERNAL_ERROR)
    try:
        os.setsid()
        output = os.open(request["output"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        for stream, target in ((os.open(os.devnull, os.O_RDONLY), 0), (output, 1), (output, 2)):
            os.dup2(stream, target)
        for limit, most in request["limits"]:
            resource.setrlimit(limit, (most, most))
        os.environ.update(request["environment"])
        numba.core.config.CACHE_DIR = os.environ["NUMBA_CACHE_DIR"]
        status = int(pytest.main(request["arguments"]))
    except Exception:  # noqa: BLE001  (whatever it is, the run has failed)
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(status)


if __name__ == "__main__":
    main()
