"""What runs on a machine of a cluster: verify one document there, from JSON to JSON."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import lru_cache
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from types import FrameType
from typing import Any

from finding_tickets.documents.reading import Document
from finding_tickets.errors import BadDataError, TicketsError, UnreachableError
from finding_tickets.executors.cleanup import remove_afterwards
from finding_tickets.executors.pack import Pack, unpack_work_tree
from finding_tickets.ground import __version__
from finding_tickets.ground.git import GitError
from finding_tickets.measure import tasks
from finding_tickets.measure.processes.isolation import Isolation
from finding_tickets.model.ticket import Record
from finding_tickets.model.verification import Evidence, Verification
from finding_tickets.register.load import load
from finding_tickets.register.staleness import TOOL, TORCH, own_torch
from finding_tickets.verify.verify import Settings, Verified, ask_worker, verify


class Order(Record):
    """What to verify: a document of a packed work tree, and the settings of the run as far as they travel.

    ``document`` is its path from the register's root, for several may say that they are the same ticket.
    ``versions`` are those of whoever asks, since others give other evidence. ``limit`` is in seconds.
    """

    document: str
    pack: Pack
    settings: dict[str, Any]
    sandbox: bool
    versions: dict[str, str]
    limit: float


class _OwnFaultError(Exception):
    """Why a verification has no answer, on this machine or on any other."""


def versions() -> dict[str, str]:
    """The versions that evidence of this machine depends on."""
    try:
        torch = own_torch()
    except PackageNotFoundError:
        torch = "not installed"
    return {TOOL: __version__, TORCH: torch}


def verify_on_ray(sent: dict[str, Any], objects: Any) -> dict[str, Any]:
    """The answer to an order as JSON; a ``reason`` in it says why nothing was measured.

    Where the reason is ``of_machine``, another machine may measure it. ``objects`` is a buffer with those of
    the order's pack.
    """
    # First of all, for another version may have another form of orders.
    here, wanted = versions(), sent["versions"]
    if names := [name for name in wanted if here.get(name) != wanted[name]]:
        texts = [f"{name} is {here.get(name)} there and {wanted[name]} here" for name in names]
        return {"reason": ", ".join(texts), "of_machine": True}
    order = Order.model_validate(sent)
    try:
        with _limited(order.limit):
            return _verify(order, unpack_work_tree(order.pack, memoryview(objects)))
    except _OwnFaultError as error:
        return {"reason": str(error)}
    except (TicketsError, GitError, OSError) as error:
        return {"reason": str(error), "of_machine": True}


def verified_from(answer: dict[str, Any], document: Document) -> Verified:
    """What an answer without a ``reason`` says of a document."""
    verification, evidence, error = (answer[name] for name in ("verification", "evidence", "error"))
    return Verified(
        document,
        Verification.model_validate(verification) if verification else None,
        BadDataError(**error) if error else None,
        Evidence.model_validate(evidence) if evidence else None,
    )


# Nobody changes an unpacked work tree.
_register = lru_cache(maxsize=1)(load)


def _verify(order: Order, root: Path) -> dict[str, Any]:
    try:
        found = [each for each in _register(root).documents if each.path == order.document]
    except TicketsError as error:
        raise _OwnFaultError(f"the register cannot be read there: {error}") from None
    if not found:
        lost = "did not travel: git ignores it, or it is in a repository inside"
        raise _OwnFaultError(f"{order.document} {lost}")
    settings = Settings(root=root, evidence="", record=False, **order.settings)
    (done,) = verify(found, _server(order), settings)
    if done.never_ran:
        # Whether a new server runs anything, without what the ticket has left, tells whose fault that is.
        _end_servers()
        outcome = ask_worker(_server(order), settings, tasks.TORCH)
        if outcome.never_ran:
            raise UnreachableError(str(outcome.reason))
    return {
        "verification": done.verification and done.verification.model_dump(mode="json"),
        "evidence": done.evidence and done.evidence.model_dump(mode="json"),
        "error": done.error and vars(done.error),
    }


_servers: dict[object, Isolation] = {}
"""The server of this process, by what it is for; none before the first order."""
_ending = ExitStack()


def _server(order: Order) -> Isolation:
    """This process's server with torch loaded, for all verifications that come; another where it is gone.

    Its folder and its processes end with this process, however that ends.
    """
    # Ray gives a process other GPUs each time; a server knows those it began with.
    kind = (order.sandbox, os.environ.get(tasks.VISIBLE_DEVICES))
    if kind not in _servers or _servers[kind].has_ended:
        _end_servers()
        server = Isolation(workers=1, sandbox=order.sandbox)
        _ending.callback(os.close, remove_afterwards(server.folder))
        _servers[kind] = _ending.enter_context(server)
    return _servers[kind]


def _end_servers() -> None:
    _servers.clear()
    _ending.close()


@contextmanager
def _limited(seconds: float) -> Iterator[None]:
    """Raise ``_OwnFaultError`` in the block when its time is up, and end what it left running."""

    def late(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - the signature of a signal handler
        raise _OwnFaultError(f"still running after {seconds:g} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    except BaseException:
        _end_servers()
        raise
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
