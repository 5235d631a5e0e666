"""How a session's JVM keeps what it needs for a while, sockets, libraries, shuffles, in one folder.

Left to itself the JVM puts that into ``/tmp``, whatever TMPDIR says, and an empty folder of tables
where it was started.
"""

import os
from pathlib import Path

_SOCKET = f".{'0' * 36}.sock"  # as Spark and PySpark name theirs
_LONGEST_SOCKET = 103  # bytes of a path, where it is shortest: macOS


def scratch_settings(folder: Path) -> dict[str, str]:
    """Return the settings by which a session keeps to the folder, but for the JVM's own option.

    Where its path is too long for sockets in it, the JVM and Python's workers talk over TCP.
    """
    settings = {"spark.sql.warehouse.dir": (folder / "warehouse").as_uri()}
    if len(os.fsencode(folder / _SOCKET)) > _LONGEST_SOCKET:
        settings["spark.python.unix.domain.socket.enabled"] = "false"
    return settings
