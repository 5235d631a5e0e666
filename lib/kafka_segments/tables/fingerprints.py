"""What table ``segments`` keeps of a build's options in ``fingerprint``."""

INTERVAL_IN_FINGERPRINT = r"/([0-9]+)/[0-9]+/(?:full|headers)/"
