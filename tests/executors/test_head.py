"""What a run does whose cluster loses its head: Ray would wait for it, and end the process after a minute."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest
from tests.conftest import Repository
from tests.executors.conftest import MACHINE, needs_ray
from tests.executors.processes import wait_for

from finding_tickets.errors import ExitCode

pytestmark = pytest.mark.slow

SLEEPS = """
import pathlib, time

pathlib.Path({note!r}).touch()
time.sleep(600)
"""


@pytest.fixture
def mortal(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A cluster of one machine, which a test may end."""
    needs_ray()
    from ray.cluster_utils import Cluster

    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    made: Any = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, **MACHINE})
    made.wait_for_nodes()
    yield made
    made.shutdown()


def test_a_head_that_dies_while_nothing_arrives_ends_the_run(
    repository: Repository, mortal: Any, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """In less than the minute that Ray gives it, with the reason in the results."""
    note = tmp_path_factory.mktemp("note") / "begun"
    repository.ticket("A-1", more="## Remediation\n\n```yaml\nclaims: {found: {syncs: 1}}\n```\n")
    repository.write("verifiers/a_1.py", SLEEPS.format(note=str(note)))
    repository.write("fixes/a_1/found.py", "def check(): ...\n")
    command = [sys.executable, "-m", "finding_tickets", "verify", "--all", "--format", "json"]
    where = ["--executor", "ray", "--address", mortal.address, "--meter", "simulated"]
    with subprocess.Popen(
        [*command, *where, "--root", str(repository.root)], stdout=subprocess.PIPE, text=True
    ) as run:
        wait_for(note.exists)
        # By now it waits for an answer, for seconds each time.
        time.sleep(1)
        (head,) = mortal.head_node.all_processes["gcs_server"]
        head.process.kill()
        told, _ = run.communicate(timeout=50)
    (found,) = json.loads(told)["data"]
    assert ("inconclusive", "the head of the cluster is gone") == (found["verdict"], found["reason"])
    assert ExitCode.INCONCLUSIVE == run.returncode
