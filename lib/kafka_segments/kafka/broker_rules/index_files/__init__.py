"""What a broker makes of the index files beside a segment: each held against the log it lies by."""
