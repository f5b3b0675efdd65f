"""Records the memory of a small training run, and writes a report on it.

python examples/record_memory_events.py [DIRECTORY]

Needs torch (`pip install torch`). With CUDA it records the memory of the card, else
that of the process, and says which.
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch

from snapviewer.events import EventRecorder, analyze_log_file, generate_report


def main(directory: Path) -> None:
    """Train for a few steps, and report on it."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    log = directory / "memory_events.jsonl"
    with EventRecorder(log, model_name="MLP") as recorder:
        with recorder.component("mlp"):
            layers = [torch.nn.Linear(2048, 2048) for _ in range(8)]
            model = torch.nn.Sequential(*layers).to(device)
        recorder.event("model_loaded")
        optimizer = torch.optim.Adam(model.parameters())
        optimizer.register_step_post_hook(recorder.step_hook)  # one event a step
        recorder.event("before_generate")
        with recorder.stage("training"):
            for _ in range(20):
                optimizer.zero_grad()
                loss = model(torch.rand(256, 2048, device=device)).square().mean()
                loss.backward()
                optimizer.step()
    report = directory / "memory_analysis_report.md"
    text = generate_report(analyze_log_file(log), log, language="en")
    report.write_text(text, encoding="utf-8")
    print(f"{log}\n{report}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
