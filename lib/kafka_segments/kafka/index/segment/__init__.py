"""One segment: the compiled walk over its batches, what recovery makes of it, a first look."""
