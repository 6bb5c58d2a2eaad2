"""The meter of the configuration counts where the command line names none."""

from __future__ import annotations

import pytest
from tests.cli.conftest import Tickets
from tests.conftest import Repository
from tests.verify.conftest import add_with_few_points

from finding_tickets.errors import ExitCode
from simcuda.real import why_not


@pytest.mark.slow
@pytest.mark.skipif(not why_not(), reason="with a GPU, the meter cuda can measure")
@pytest.mark.parametrize(
    "command",
    [("verify", "A-1"), ("audit", "A-1", "--cheat", "unfixed"), ("probe", "fixes/a_1/found.py:check")],
)
def test_the_configured_meter_counts(
    repository: Repository, tickets: Tickets, command: tuple[str, ...]
) -> None:
    """Without a GPU, what is to be counted on one cannot be; an option says otherwise."""
    add_with_few_points(repository, "A-1")
    repository.write("tickets.toml", 'meter = "cuda"\n')
    verifier = ("--verifier", "verifiers/a_1.py") if command[0] == "probe" else ()
    assert ExitCode.INCONCLUSIVE == tickets(*command, *verifier).code
    # The cheats of an audit may or may not be caught: that they were tried is what counts.
    simulated = tickets(*command, *verifier, "--meter", "simulated")
    assert simulated.code in {ExitCode.OK, ExitCode.GATE_FAILED}
