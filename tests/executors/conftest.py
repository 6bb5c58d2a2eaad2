"""A Ray cluster on this machine: a head that only directs, and three machines with one processor each."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

MEBIBYTE = 1024**2
MACHINE = {"object_store_memory": 100 * MEBIBYTE, "include_dashboard": False}


def needs_ray() -> None:
    """Skip a test where there is nothing to test with."""
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'finding-tickets[ray]'")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The cluster, for the tests of a file; its machines share a cache folder of their own.

    All runs share one connection: for each, Ray's processes would start anew and each load torch.
    """
    needs_ray()
    from ray.cluster_utils import Cluster

    from finding_tickets.executors.ray import RayCluster
    from finding_tickets.verify.verify import Settings

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache-of-the-cluster")))
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        made: Any = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, **MACHINE})
        for _ in range(3):
            made.add_node(num_cpus=1, object_store_memory=100 * MEBIBYTE)
        made.wait_for_nodes()
        settings = Settings(root=Path(), evidence="", meter="simulated", timeout=60.0, memory=1 << 30)
        with RayCluster(address=made.address).together(settings):
            yield made
        made.shutdown()
