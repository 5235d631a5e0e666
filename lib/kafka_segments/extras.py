"""What needs packages beside the core, and the extra of the wheel that brings them.

``pip install kafka-segments`` brings what reads directories: ``EXTRAS`` names the modules that
the rest imports, as pyproject.toml names the packages that have them.
"""

import sys
from importlib.util import find_spec

from kafka_segments.errors import UsageError

_STORES = ("requests", "botocore", "pyarrow")
_SPARK = (*_STORES, "prompt_toolkit", "sqlglot", "pandas", "deltalake", "delta", "pyspark")
EXTRAS: dict[str, tuple[str, ...]] = {
    "stores": _STORES,
    "spark": _SPARK,
    "validate": (*_SPARK, "jinja2", "great_expectations"),
    "report": (*_SPARK, "jinja2"),
}
"""The modules that an extra brings, beside those of the core; the last one names it best."""


def has_extra(extra: str) -> bool:
    """Tell whether all that an extra brings is installed."""
    return all(map(_is_there, EXTRAS[extra]))


def require_extra(extra: str, what: str) -> None:
    """Refuse to go on without what an extra brings; ``what`` needs it.

    Raises:
        UsageError: with the command that installs it.
    """
    missing = [module for module in EXTRAS[extra] if not _is_there(module)]
    if missing:
        raise UsageError(
            f"{what} needs the extra {extra}, and {missing[-1]} is not installed: pip install"
            f" 'kafka-segments[{extra}]'"
        )


def _is_there(module: str) -> bool:
    """Tell whether a module can be imported; nothing is."""
    if module in sys.modules:
        return sys.modules[module] is not None
    try:
        return find_spec(module) is not None
    except ImportError:
        return False
