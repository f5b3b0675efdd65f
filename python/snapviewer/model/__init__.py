"""Analysis of models: architecture, parameters, operations, runs, energy, recommendations.

>>> from snapviewer.model import analyze, analyze_file
>>> analyze_file("model.pt").totals.work.macs                    # doctest: +SKIP
1814073344
"""

from snapviewer.model.analysis import ModelAnalysis, RunOptions, analyze, analyze_file
from snapviewer.model.graph import TensorSpec

__all__ = ["ModelAnalysis", "RunOptions", "TensorSpec", "analyze", "analyze_file"]
