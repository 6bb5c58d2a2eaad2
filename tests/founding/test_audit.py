"""No cheat gets past the verifier of a founding document; ``tickets audit --all`` tries all, for minutes."""

from __future__ import annotations

import pytest
from tests.founding.conftest import ROOT
from tests.gate.test_audit import REFUSED

from finding_tickets.gate.audit import CHEATS, Fate, audit
from finding_tickets.measure.processes.isolation import Isolation
from finding_tickets.register.load import load
from finding_tickets.verify.verify import Settings

pytestmark = pytest.mark.slow

# What the meter refuses whatever is claimed says nothing of a verifier, and what waits in a thread costs what
# the code as found does: the tests of the gate try both.
TRIED = [cheat for cheat in CHEATS if cheat.id not in {*REFUSED, "deferred", "thread"}]


def test_every_cheat_is_caught(isolation: Isolation) -> None:
    """Each by a claim about the fix, or because the meter refuses it."""
    settings = Settings(root=ROOT, evidence="evidence", meter="simulated", timeout=300, memory=4 << 30)
    (done,) = audit([load(ROOT).find("B1-PT-02")], isolation, settings, TRIED)
    assert done.reason is None
    assert {cheat.id: Fate.CAUGHT for cheat in TRIED} == {one.cheat.id: one.fate for one in done.tried}
