"""No cheat gets past the verifiers of the founding documents."""

from __future__ import annotations

import pytest
from tests.founding.conftest import ROOT
from tests.gate.test_audit import PREVENTED, REFUSED

from finding_tickets.gate.audit import CHEATS, Fate, audit
from finding_tickets.measure.processes.isolation import Isolation
from finding_tickets.register.load import load
from finding_tickets.verify.verify import Settings

pytestmark = pytest.mark.slow

# What the meter refuses whatever is claimed says nothing of a verifier: the tests of the gate try it.
LEFT = [cheat for cheat in CHEATS if cheat.id not in REFUSED | PREVENTED]
HIDDEN = {"thread", "unwatched", "early", "scripted", "early-thread"}
"""What does the unfixed work where the meter has to find it; the work then counts as any other."""
LARGEST = "B7-PT-02"


@pytest.mark.parametrize("ticket", ["B1-PT-02", "B3-CR-05", LARGEST, "B7-PT-03", "TASK-5"])
def test_every_cheat_is_caught(ticket: str, isolation: Isolation) -> None:
    """Each by a claim about the fix, or because the meter refuses it; hidden work with the largest ticket."""
    tried = [cheat for cheat in LEFT if ticket == LARGEST or cheat.id not in HIDDEN]
    settings = Settings(root=ROOT, evidence="evidence", meter="simulated", timeout=300, memory=4 << 30)
    (done,) = audit([load(ROOT).find(ticket)], isolation, settings, tried)
    assert done.reason is None
    assert {cheat.id: Fate.CAUGHT for cheat in tried} == {one.cheat.id: one.fate for one in done.tried}
