"""How to find an option of a build in column ``fingerprint`` of table ``segments``."""

INTERVAL_IN_FINGERPRINT = r"/([0-9]+)/[0-9]+/(?:full|headers|index)/"
