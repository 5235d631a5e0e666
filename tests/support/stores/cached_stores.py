"""Stores that this process has opened: the next question opens them again."""

from kafka_segments.files.storage import stores
from kafka_segments.files.storage.files import place


def forget_stores() -> None:
    """Forget the clients of stores, and the places that have them."""
    stores.open_store.cache_clear()
    place.cache_clear()
