"""The questions of evals/ have the answers that the simulated device counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import yaml
from evals.run import QUESTIONS, Question

if TYPE_CHECKING:
    import simcuda

ASKED = [Question(**each) for each in yaml.safe_load(QUESTIONS.read_text(encoding="utf-8"))]


@pytest.mark.parametrize("question", ASKED, ids=lambda question: question.id)
def test_the_answer_was_derived_and_is_counted(question: Question, shared_gpu: simcuda.SimulatedCuda) -> None:
    """Each answer stands with its reason in the file; waits are those of the line, or of the whole."""
    code = compile(f"import torch\n{question.program}", "program.py", "exec")
    with shared_gpu.measure() as cost:
        exec(code, {})  # noqa: S102 - the programs are ours
    waits = 0
    for site in cost.sites:
        if site.what in ("stream_syncs", "event_syncs", "device_syncs") and question.line in (0, site.line):
            waits += site.count
    assert question.answer == (str(waits) if question.how_many is not None else "yes" if waits else "no")
