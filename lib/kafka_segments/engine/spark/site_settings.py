"""What a site sets for Spark by spark-defaults.conf: which of it a session of ours sets anew.

docs/clusters.md has the same list. Another setting by which a session fails is named by key and
file.
"""

import os
import re
from collections.abc import Mapping
from pathlib import Path

from kafka_segments.engine.spark.home import spark_home
from kafka_segments.errors import UsageError

MEANING = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.ansi.enforceReservedKeywords": "false",
    "spark.sql.ansi.doubleQuotedIdentifiers": "false",
    "spark.sql.caseSensitive": "false",
    "spark.sql.storeAssignmentPolicy": "ANSI",
    "spark.sql.mapKeyDedupPolicy": "EXCEPTION",
    "spark.sql.groupByOrdinal": "true",
    "spark.sql.orderByOrdinal": "true",
    "spark.sql.parser.quotedRegexColumnNames": "false",
    "spark.sql.defaultCatalog": "spark_catalog",
}
"""What our queries mean depends on these: Spark's own defaults but for the time zone."""
_LEFT_TO_A_USER = {
    "spark.sql.session.timeZone",  # by which moments are shown, and no more
    "spark.sql.ansi.enabled",
    "spark.sql.ansi.doubleQuotedIdentifiers",  # set for a query of `sql` while it is planned
}
WITHOUT_STRANGERS = {
    "spark.extraListeners": "",
    "spark.plugins": "",
    "spark.sql.queryExecutionListeners": "",
    "spark.sql.streaming.streamingQueryListeners": "",
    "spark.eventLog.enabled": "false",
    "spark.submit.deployMode": "client",
}
"""A local session needs no one who listens to it, and is no job of a cluster."""
_LINE = re.compile(r"([^\s=:#]\S*?)(?:\s*[=:]\s*|\s+)(\S.*)")
_LEAST = 6  # of a value that is looked for in an error: shorter ones are words and numbers


def defaults_file() -> Path | None:
    """Return the site's spark-defaults.conf, as spark-submit finds it; None: there is none."""
    named, home = os.environ.get("SPARK_CONF_DIR"), spark_home()
    folder = Path(named) if named else home / "conf" if home else None
    file = folder and folder / "spark-defaults.conf"
    return file if file and file.is_file() else None


def site_error(text: str) -> UsageError | None:
    """Return an error that names the site's setting by which Spark failed; None: no setting did.

    ``text``: what Spark said. It was a setting if the text has its value, or a part of a list: the
    class that is missing, the file that is not there.
    """
    file = defaults_file()
    if file is None:
        return None
    for key, value in _settings(file).items():
        if any(len(part) >= _LEAST and part in text for part in re.split(r"[\s,]+", value)):
            return UsageError(
                f"{key} in {file} is {value}, which does not work here: take it out, or set"
                f" SPARK_CONF_DIR to a folder without it ({_said(text)})"
            )
    return None


def standing_against(settings: Mapping[str, str]) -> list[str]:
    """Return in words which settings of a user's own session our queries do not expect."""
    return [
        f"{key} is {settings[key]} ({value} is meant)"
        for key, value in MEANING.items()
        if key not in _LEFT_TO_A_USER and settings.get(key, value).lower() != value.lower()
    ]


def _settings(file: Path) -> dict[str, str]:
    lines = file.read_text("utf-8", "replace").splitlines()
    found = (_LINE.fullmatch(line.strip()) for line in lines)
    settings = {line[1]: line[2].strip() for line in found if line}
    ours = MEANING.keys() | WITHOUT_STRANGERS.keys()
    return {key: value for key, value in settings.items() if key not in ours}


def _said(text: str) -> str:
    """Return the line of a failure that tells its cause."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    telling = (line for line in lines if "Exception" in line or "Error" in line)
    return next(telling, lines[0] if lines else "no word")[:200]
