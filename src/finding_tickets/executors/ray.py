"""Verify on a Ray cluster: the work tree travels as Ray's ``working_dir``, and each ticket is a task."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from finding_tickets.documents.reading import Document
from finding_tickets.errors import BadDataError, UnreachableError, UsageError
from finding_tickets.ground import __version__
from finding_tickets.ground.git import GitError, ask
from finding_tickets.measure.processes.isolation import Isolation
from finding_tickets.model.verification import Evidence, Verification
from finding_tickets.register.load import load
from finding_tickets.register.staleness import TOOL, TORCH, own_torch
from finding_tickets.verify.verify import (
    Planned,
    Settings,
    Verified,
    inconclusive,
    plan_each,
    record,
    verify,
)

AUTO = "auto"
CONNECT_SECONDS = 5.0
# How often Ray runs a ticket again whose machine or process was lost.
RETRIES = 3
# Nothing is reported to anybody. Commits that tickets name are found in the folder of git.
VARIABLES = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_OVERRIDE_RUNTIME_ENV_DEFAULT_EXCLUDES": ".venv,venv,__pycache__",
}
# The settings that the cluster is told.
TRAVELLING = (
    "meter",
    "timeout",
    "memory",
    "overrides",
    "seed",
    "operations",
    "excused",
)


@dataclass(frozen=True, kw_only=True)
class RayCluster:
    """The cluster at ``address`` (``host:port``, or ``auto``), or one that is started for each run."""

    address: str | None = None

    def verify(
        self, documents: Sequence[Document], settings: Settings
    ) -> Iterator[Verified]:
        """Verify every document. Its evidence is recorded here when the result arrives.

        Raises:
            UsageError: Ray is not installed, or the meter is ``auto``.
            UnreachableError: The cluster cannot be reached, or does not take the work tree.
        """
        if settings.meter == AUTO:
            raise UsageError("--executor ray needs --meter simulated or --meter cuda")
        planned: Planned = {}
        yield from plan_each(documents, settings, planned)
        if not planned:
            return
        top = find_top(settings.root)
        folder = settings.root.relative_to(top).as_posix()
        order = {name: getattr(settings, name) for name in TRAVELLING}
        with connect(self.address, top) as ray:
            gpus = int(settings.meter == "cuda")
            task = ray.remote(num_cpus=1, num_gpus=gpus, max_retries=RETRIES)(
                verify_on_node
            )
            pending = {}
            for path in planned:
                pending[task.remote(folder, path, order, versions())] = path
            while pending:
                (done, *_), _ = ray.wait(list(pending))
                plan = planned[pending.pop(done)]
                document = plan.document
                try:
                    yield record(parse_answer(ray.get(done), document), settings)
                except ray.exceptions.RayError as error:
                    reason = f"on the cluster: {first_line(getattr(error, 'cause', None) or error)}"
                    yield Verified(document, inconclusive(plan, settings, reason))


def versions() -> dict[str, str]:
    """Return the versions that evidence depends on."""
    return {TOOL: __version__, TORCH: own_torch()}


def find_top(root: Path) -> Path:
    """Return the work tree that a folder is in, or the folder itself if it is in none."""
    try:
        return Path(ask(root, "rev-parse", "--show-toplevel").removesuffix("\n"))
    except GitError:
        return root


@contextmanager
def connect(address: str | None, working_dir: Path) -> Iterator[Any]:
    """Connect to Ray, where a folder travels to every machine. What is started for it ends with the block."""
    os.environ.update(VARIABLES)
    try:
        import ray
    except ImportError:
        hint = "python -m pip install 'finding-tickets[ray]'"
        raise UsageError(
            "--executor ray needs Ray, which is not installed", hint=hint
        ) from None
    where = (
        {"address": address}
        if address
        else {"address": "local", "include_dashboard": False}
    )
    try:
        if address and address != AUTO:
            # Ray itself would wait for minutes.
            host, _, port = address.rpartition(":")
            socket.create_connection((host, int(port)), CONNECT_SECONDS).close()
        environment = {"working_dir": str(working_dir)}
        ray.init(
            **where,
            runtime_env=environment,
            log_to_driver=False,
            logging_level=logging.ERROR,
        )
    except (
        Exception
    ) as error:  # Ray has no class of its own for what keeps it from starting
        what = f"the Ray cluster at {address}" if address else "Ray"
        raise UnreachableError(f"cannot use {what}: {first_line(error)}") from None
    try:
        yield ray
    finally:
        ray.shutdown()


# The server of this process of Ray's, which ends with the process.
isolation = cache(lambda: Isolation(workers=1))


def verify_on_node(
    folder: str, path: str, order: dict[str, Any], wanted: dict[str, str]
) -> dict[str, Any]:
    """Verify a document on a machine of the cluster, in the folder that Ray unpacked the work tree in."""
    if (here := versions()) != wanted:
        raise UnreachableError(f"another version: {here} there and {wanted} here")
    root = Path(folder).resolve()
    documents = [each for each in load(root).documents if each.path == path]
    if not documents:
        raise UnreachableError(f"{path} did not travel: git ignores it")
    (done,) = verify(
        documents, isolation(), Settings(root=root, evidence="", record=False, **order)
    )
    models = {"verification": done.verification, "evidence": done.evidence}
    answer = {
        name: model.model_dump(mode="json") for name, model in models.items() if model
    }
    return answer | {"error": vars(done.error)} if done.error else answer


def parse_answer(answer: dict[str, Any], document: Document) -> Verified:
    """Return the result that ``verify_on_node`` made."""
    verification, evidence, error = map(
        answer.get, ("verification", "evidence", "error")
    )
    return Verified(
        document,
        verification=Verification.model_validate(verification)
        if verification
        else None,
        error=BadDataError(**error) if error else None,
        evidence=Evidence.model_validate(evidence) if evidence else None,
    )


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message, or the name of its class."""
    return str(error).strip().partition("\n")[0] or type(error).__name__
