"""What shares free memory, in words: a memory pool, for small or large requests, of one stream."""

from __future__ import annotations

from snapviewer import Domain
from snapviewer.snapshot.pools import Pool, name_of_pool


def domain_name(domain: Domain, joiner: str = ", ") -> str:
    """Return a domain's pool, kind and stream."""
    return place_name(domain.pool, domain.kind, domain.stream, joiner)


def place_name(pool: Pool | None, kind: str, stream: int, joiner: str = ", ") -> str:
    """Return a pool, kind and stream.

    >>> place_name((0, 0), "large", 0)
    'default pool, large, stream 0'
    """
    return joiner.join((name_of_pool(pool), kind, f"stream {stream:,}"))
