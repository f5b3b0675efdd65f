"""Recommendations: what to prune, quantize, fuse or lay out differently, with gain and evidence.

They are ranked by the share of the model's bytes, FLOPs, memory traffic or, where runs were timed,
time that they would save.
"""

# Importing these modules registers their recommenders.
from snapviewer.model.recommend import bits, fusion, runs, vectors, weights
from snapviewer.model.recommend.registry import (
    MIN_SHARE,
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
    "MIN_SHARE",
    "Advice",
    "Known",
    "Recommendation",
    "advice_for_node",
    "advice_for_parameter",
    "bits",
    "fusion",
    "node_recommender",
    "parameter_recommender",
    "recommend",
    "recommender",
    "runs",
    "vectors",
    "weights",
]
