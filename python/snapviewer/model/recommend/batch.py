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
    if not one or not each or each >= one:
        return
    yield Recommendation(
        "batch",
        f"Run batches of {batches.advised} where latency allows it",
        (),
        Quantity(one - each, "s", "measured", "time of an example alone − in the batch"),
        1 - each / one,
        f"measured: {_rate(one)} examples/s alone, {_rate(each)} in the batch; {batches.ended}",
        "the time of an example",
    )


def _rate(seconds: float) -> str:
    rate = 1 / seconds
    return f"{rate:,.0f}" if rate >= 100 else f"{rate:.3g}"
