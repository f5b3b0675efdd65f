"""What follows from the numbers of a model: what to prune, quantize, fuse or lay out otherwise.

Each recommendation says what it gains and why. They are ranked by the share of the model's bytes,
FLOPs, memory traffic or, where runs were timed, time that they would save.
"""

# What these modules do when they are imported is to register their recommenders.
from snapviewer.model.recommend import (
    batch,
    bits,
    fusion,
    layout,
    pace,
    pruning,
    rank,
    storage,
)
from snapviewer.model.recommend.registry import (
    LEAST_SHARE,
    Advice,
    Known,
    Recommendation,
    advice_for_node,
    advice_for_parameter,
    node_recommender,
    parameter_recommender,
    recommend,
    recommender,
)

__all__ = [
    "LEAST_SHARE",
    "Advice",
    "Known",
    "Recommendation",
    "advice_for_node",
    "advice_for_parameter",
    "batch",
    "bits",
    "fusion",
    "layout",
    "node_recommender",
    "pace",
    "parameter_recommender",
    "pruning",
    "rank",
    "recommend",
    "recommender",
    "storage",
]
