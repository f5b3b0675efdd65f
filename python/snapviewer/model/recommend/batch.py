"""How many examples at once: from runs with batches of growing sizes."""

from __future__ import annotations

from collections.abc import Iterator

from snapviewer.model.quantity import Quantity
from snapviewer.model.recommend.registry import Known, Recommendation, recommender


@recommender
def batch_size(known: Known) -> Iterator[Recommendation]:
    """The smallest batch that is nearly as good as the best."""
    batches = known.profile.batches if known.profile else None
    if batches is None or batches.advised == 1:
        return
    one = batches.runs[0].per_example.value
    best = next(run for run in batches.runs if run.size == batches.advised)
    each = best.per_example.value
    if not one or each is None or each >= one:
        return
    tried = ", ".join(f"{run.size}: {run.throughput.value or 0:.3g}" for run in batches.runs)
    yield Recommendation(
        "batch",
        f"Run batches of {batches.advised} where latency allows it",
        (),
        Quantity(one - each, "s", "measured", "time of an example alone − in the batch"),
        1 - each / one,
        f"examples a second by batch, measured: {tried}; {batches.ended}",
        "the time of an example",
    )
