"""The release of this package, which other modules name without importing what it offers."""

__version__ = "0.18.0"
