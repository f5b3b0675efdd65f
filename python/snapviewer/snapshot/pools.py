"""Names of memory pools."""

from __future__ import annotations

Pool = tuple[int, int]


def name_of_pool(pool: Pool | None) -> str:
    """Return what a pool is called.

    PyTorch numbers the pools that graphs make for themselves in the first number, and those of
    `MemPool` and `graph_pool_handle` in the second.

    >>> [name_of_pool(pool) for pool in (None, (0, 0), (3, 0), (0, 1), (2, 5))]
    ['unknown pool', 'default pool', 'graph pool 3', 'private pool 1', 'pool 2.5']
    """
    if pool is None:
        return "unknown pool"
    match pool:
        case 0, 0:
            return "default pool"
        case first, 0:
            return f"graph pool {first}"
        case 0, second:
            return f"private pool {second}"
        case first, second:
            return f"pool {first}.{second}"
