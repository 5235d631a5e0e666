"""``divergence mirror``: a mirrored topic held against its source, record by record."""
