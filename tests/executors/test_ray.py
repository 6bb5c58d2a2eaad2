"""A Ray cluster verifies what this machine verifies, also when a machine of it dies."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from tests.conftest import Git, Repository
from tests.verify.conftest import FEW_POINTS, add, verify_all

from finding_tickets.errors import UnreachableError, UsageError
from finding_tickets.executors.ray import RayCluster
from finding_tickets.measure.processes.isolation import Isolation
from finding_tickets.model.vocabulary import Verdict
from finding_tickets.verify.verify import Settings

NAMES = ("A-1", "A-2", "A-3", "A-4")
# The first verifier of each machine leaves a note, and waits until one of the machines is gone.
WAITS = """
import os, pathlib, time
notes = pathlib.Path({notes!r})
(notes / str(os.getppid())).touch()
while not (notes / "killed").exists():
    time.sleep(0.1)
"""


def settings(repository: Repository, **more: Any) -> Settings:
    """The settings of a run."""
    usual = {"root": repository.root, "evidence": "evidence", "meter": "simulated"}
    return Settings(**{**usual, "timeout": 300.0, "memory": 2 << 30, **more})


def wait_for(condition: Callable[[], object], seconds: float = 240.0) -> None:
    """Wait until a condition is true, or time is up."""
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.1)


def test_a_meter_must_be_named(repository: Repository) -> None:
    """What ``auto`` means is for one machine to say."""
    with pytest.raises(UsageError, match="needs --meter simulated or --meter cuda"):
        list(RayCluster().verify((), settings(repository, meter="auto")))


def test_a_cluster_that_is_not_there_is_said_at_once(repository: Repository) -> None:
    """Nothing listens at the address, and nothing waits for it."""
    pytest.importorskip("ray")
    add(repository, "A-1")
    begin = time.monotonic()
    with pytest.raises(UnreachableError, match=r"cannot use the Ray cluster at 127\.0\.0\.1:1: "):
        list(RayCluster(address="127.0.0.1:1").verify(repository.load().documents, settings(repository)))
    assert time.monotonic() - begin < 60


def test_without_ray_the_message_says_what_to_install(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is no dependency of the tool."""
    monkeypatch.setitem(sys.modules, "ray", None)
    add(repository, "A-1")
    with pytest.raises(UsageError, match="finding-tickets\\[ray\\]"):
        list(RayCluster().verify(repository.load().documents, settings(repository)))


@pytest.mark.slow
def test_what_ran_on_a_machine_that_dies_runs_on_another(
    repository: Repository, git: Git, isolation: Isolation, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Every result arrives once, and the evidence has the bytes that this machine gives it."""
    pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    notes = tmp_path_factory.mktemp("notes")
    for name in NAMES:
        add(repository, name, verifier=WAITS.format(notes=str(notes)) + FEW_POINTS.format(ticket=name))
    git("add", ".")
    git("commit", "--quiet", "--message", "tickets")
    store = {"object_store_memory": 100 << 20}
    cluster: Any = Cluster(
        initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False, **store}
    )
    try:
        machines = [cluster.add_node(num_cpus=1, **store) for _ in range(2)]
        cluster.wait_for_nodes()

        def kill_one() -> None:
            # Both machines are at work: each has a server of its own, which is the parent of its workers.
            wait_for(lambda: len(list(notes.iterdir())) == 2)
            cluster.remove_node(machines[0], allow_graceful=False)
            (notes / "killed").touch()

        killer = threading.Thread(target=kill_one)
        killer.start()
        where = RayCluster(address=cluster.address)
        done = list(where.verify(repository.load().documents, settings(repository)))
        killer.join()
    finally:
        cluster.shutdown()
    verdicts = [(one.document.id.value, one.verification and one.verification.verdict) for one in done]
    assert [(name, Verdict.VERIFIED) for name in NAMES] == sorted(verdicts)
    folder = repository.root / "evidence"
    on_cluster = {file: file.read_bytes() for file in folder.rglob("*.json")}
    assert 4 == len(on_cluster)
    verify_all(repository, isolation, meter="simulated")
    assert on_cluster == {file: file.read_bytes() for file in folder.rglob("*.json")}
