"""Record the memory of a small training run, and write a report on it.

python examples/record_memory_events.py [DIRECTORY]

Needs torch (`pip install torch`). It records GPU memory, or that of the process if there
is no CUDA; the report says which.
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch

from snapviewer.events import EventRecorder, analyze, as_markdown, read_log, report_on


def main(directory: Path) -> None:
    """Train for a few steps, and write the report."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    log = directory / "memory_events.jsonl"
    with EventRecorder(log, model_name="MLP") as recorder:
        with recorder.component("mlp"):
            layers = [torch.nn.Linear(2048, 2048) for _ in range(8)]
            model = torch.nn.Sequential(*layers).to(device)
        recorder.event("model_loaded")
        optimizer = torch.optim.Adam(model.parameters())
        optimizer.register_step_post_hook(recorder.step_hook)  # one event per step
        recorder.event("before_generate")
        with recorder.stage("training"):
            for _ in range(20):
                optimizer.zero_grad()
                loss = model(torch.rand(256, 2048, device=device)).square().mean()
                loss.backward()
                optimizer.step()
    report = directory / "memory_analysis_report.md"
    document = report_on(analyze(read_log(log)), language="en")
    report.write_text(as_markdown(document), encoding="utf-8")
    print(f"{log}\n{report}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
