"""One rank of many on the null device: PyTorch's fake process group stands for NCCL and the others.

Collectives return at once and move nothing. What PyTorch allocates for them is recorded, as are the
buckets of DDP and the shards of FSDP; the buffers of NCCL itself are not.
"""

from __future__ import annotations

import os
from typing import Any

_GPUS_PER_HOST = 8


def rank_environment(rank: int, ranks: int, gpus: int | None = None) -> tuple[dict[str, str], int]:
    """Return the variables that torchrun would set, and how many GPUs the host has.

    >>> rank_environment(9, 16)[0]["LOCAL_RANK"]
    '1'
    """
    on_host = min(ranks, gpus or _GPUS_PER_HOST)
    variables = {
        "RANK": rank,
        "WORLD_SIZE": ranks,
        "LOCAL_RANK": rank % on_host,
        "LOCAL_WORLD_SIZE": on_host,
        "GROUP_RANK": rank // on_host,
        "MASTER_ADDR": "localhost",
        "MASTER_PORT": 29500,
    }
    return {name: str(value) for name, value in variables.items()}, gpus or on_host


def use_fake_groups() -> None:
    """Make every process group of this process a fake one. Needs an imported torch."""
    import torch

    if not torch.distributed.is_available():
        return
    from torch.distributed import device_mesh, distributed_c10d

    begin, make = distributed_c10d.init_process_group, distributed_c10d.new_group

    def init_process_group(
        backend: Any = None,
        init_method: Any = None,
        timeout: Any = None,
        world_size: int = -1,
        rank: int = -1,
        *arguments: Any,
        **keywords: Any,
    ) -> None:
        from torch.testing._internal.distributed.fake_pg import FakeStore

        begin(
            "fake",
            rank=rank if rank >= 0 else int(os.environ.get("RANK", "0")),
            world_size=world_size if world_size > 0 else int(os.environ.get("WORLD_SIZE", "1")),
            store=FakeStore(),
        )

    def new_group(
        ranks: Any = None,
        timeout: Any = None,
        backend: Any = None,
        pg_options: Any = None,
        *arguments: Any,
        **keywords: Any,
    ) -> Any:
        keywords.pop("device_id", None)
        return make(ranks, timeout, "fake", None, *arguments, **keywords)

    for module in (torch.distributed, distributed_c10d, device_mesh):
        for function in (init_process_group, new_group):
            if hasattr(module, function.__name__):
                setattr(module, function.__name__, function)
    # It compares sizes that were sent to the device and back.
    torch.distributed._verify_params_across_processes = lambda *_: None  # noqa: SLF001
    _let_ddp_reduce_nothing()


def _let_ddp_reduce_nothing() -> None:
    """Give every DDP a hook that returns a bucket as it is: a fake reduction has no result."""
    import torch
    from torch.nn.parallel import DistributedDataParallel

    prepare, register = DistributedDataParallel.__init__, DistributedDataParallel.register_comm_hook

    def reduced(state: None, bucket: Any) -> Any:
        future: Any = torch.futures.Future()
        future.set_result(bucket.buffer())
        return future

    reduced.__annotations__.clear()  # DDP compares them

    def initialize(self: Any, *arguments: Any, **keywords: Any) -> None:
        prepare(self, *arguments, **keywords)
        register(self, None, reduced)

    DistributedDataParallel.__init__ = initialize
    DistributedDataParallel.register_comm_hook = lambda *_: None
