"""Clusters as a person reads of them: their names, and lines that name them."""

from collections.abc import Collection, Iterable


def cluster_in_words(cluster: str) -> str:
    """Name a cluster; log directories without a meta.properties have none."""
    return cluster or "(no name)"


def lines_of_clusters(lines: Iterable[tuple[str, str]], clusters: Collection[str]) -> list[str]:
    """Return lines, each given with its cluster; where several are asked about, they name it."""
    if len(clusters) < 2:
        return [line for _, line in lines]
    return [f"cluster {cluster_in_words(cluster)}: {line}" for cluster, line in lines]
