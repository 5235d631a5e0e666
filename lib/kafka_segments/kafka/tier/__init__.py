"""Tiered storage as Aiven's plugin keeps it: names, manifests, chunks of its objects."""
