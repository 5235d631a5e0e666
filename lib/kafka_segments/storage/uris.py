"""URIs put together from parts."""


def join_uri(*parts: str) -> str:
    """Join a URI and relative paths; empty ones are left out."""
    return "/".join(part.rstrip("/") if part != "/" else "" for part in parts if part)
