"""What runs on a machine of a cluster: verify one document there, from JSON to JSON."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

from finding_tickets.documents.reading import Document
from finding_tickets.errors import BadDataError, TicketsError, UnreachableError
from finding_tickets.executors.cleanup import remove_afterwards
from finding_tickets.executors.pack import Pack, unpacked
from finding_tickets.ground.git import GitError
from finding_tickets.ground.version import __version__
from finding_tickets.measure import tasks
from finding_tickets.measure.isolation import Isolation, Task
from finding_tickets.measure.worker import VISIBLE_DEVICES
from finding_tickets.model.verification import Evidence, Verification
from finding_tickets.register.load import Register, load
from finding_tickets.register.staleness import TOOL, TORCH
from finding_tickets.verify.matrix import Cell
from finding_tickets.verify.verify import Settings, Verified, verify


@dataclass(frozen=True, kw_only=True)
class Order:
    """What to verify: a document of a packed work tree, and the settings of the run as far as they travel.

    ``document`` is its path from the register's root, for several may say that they are the same ticket.
    ``versions`` are those of whoever asks, since others give other evidence. ``limit`` is in seconds.
    ``cell`` is that of a matrix; its interpreter is one of the machine's.
    """

    document: str
    pack: Pack
    meter: str
    timeout: float
    memory: int
    sandbox: bool
    overrides: dict[str, str] = field(default_factory=dict)
    commits: dict[str, str] = field(default_factory=dict)
    versions: dict[str, str]
    limit: float
    cell: Cell | None = None


class _OwnFaultError(Exception):
    """Why a verification has no answer, on this machine or on any other."""


def versions() -> dict[str, str]:
    """The versions that evidence of this machine depends on."""
    try:
        torch = version(TORCH).partition("+")[0]
    except PackageNotFoundError:
        torch = "not installed"
    return {TOOL: __version__, TORCH: torch}


def verify_on_ray(order: dict[str, Any], objects: Any) -> dict[str, Any]:
    """The answer to an order, which ``asdict`` made; a ``reason`` in it says why nothing was measured.

    Where the reason is ``of_machine``, another machine may measure it. ``objects`` is a buffer with those of
    the order's pack.
    """
    here, wanted = versions(), order["versions"]
    if names := [name for name in wanted if here.get(name) != wanted[name]]:
        texts = [f"{name} is {here.get(name)} there and {wanted[name]} here" for name in names]
        return {"reason": ", ".join(texts), "of_machine": True}
    pack = Pack(tuple(order["pack"]["commits"]), order["pack"]["folder"], order["pack"]["kind"])
    cell = Cell(**order["cell"]) if order["cell"] else None
    asked = Order(**{**order, "pack": pack, "cell": cell})
    try:
        with _limited(asked.limit):
            return _verify(asked, unpacked(pack, memoryview(objects)))
    except _OwnFaultError as error:
        return {"reason": str(error)}
    except (TicketsError, GitError, OSError) as error:
        return {"reason": str(error), "of_machine": True}


def verified_from(answer: dict[str, Any], document: Document) -> Verified:
    """What an answer without a ``reason`` says of a document."""
    told, kept, error = (answer[name] for name in ("verification", "evidence", "error"))
    return Verified(
        document,
        Verification.model_validate(told) if told else None,
        BadDataError(error.pop("message"), **error) if error else None,
        Evidence.model_validate(kept) if kept else None,
    )


def _verify(order: Order, root: Path) -> dict[str, Any]:
    try:
        found = [each for each in _register(root).documents if each.path == order.document]
    except TicketsError as error:
        raise _OwnFaultError(f"the register cannot be read there: {error}") from None
    if not found:
        lost = "did not travel: git ignores it, or it is in a repository inside"
        raise _OwnFaultError(f"{order.document} {lost}")
    isolation = _isolation(order)
    settings = Settings(
        root=root,
        evidence="",
        meter=order.meter,
        timeout=order.timeout,
        memory=order.memory,
        overrides=order.overrides,
        record=False,
        commits=order.commits,
        cell=order.cell,
    )
    (done,) = verify(found, isolation, settings)
    if done.never_ran:
        # Whether a new server runs anything, without what the ticket has left, tells whose fault that is.
        _end_servers()
        ask = Task(target=tasks.TORCH, payload=None, root=root, timeout=order.timeout, memory=order.memory)
        ((_, outcome),) = _isolation(order).run({ask.target: ask})
        if outcome.never_ran:
            raise UnreachableError(str(outcome.reason))
    wrong = done.error
    return {
        "verification": done.verification.model_dump(mode="json") if done.verification else None,
        "evidence": done.evidence.model_dump(mode="json") if done.evidence else None,
        "error": wrong and {name: getattr(wrong, name) for name in ("message", "file", "line", "hint")},
    }


@lru_cache(maxsize=1)
def _register(root: Path) -> Register:
    """The register of a work tree, which nobody changes."""
    return load(root)


class _Kind(NamedTuple):
    """What a server is for. Ray gives a process other GPUs each time; a server knows those it began with."""

    sandbox: bool
    interpreter: str
    gpus: str | None


_servers: dict[_Kind, Isolation] = {}
_ending = ExitStack()


def _isolation(order: Order) -> Isolation:
    """This process's server with torch loaded, for all verifications that come; another where it is gone.

    Its folder and its processes end with this process, however that ends.
    """
    interpreter = order.cell.interpreter if order.cell else ""
    kind = _Kind(order.sandbox, interpreter, os.environ.get(VISIBLE_DEVICES))
    is_of_others = any(each.gpus != kind.gpus for each in _servers)
    if is_of_others or (kind in _servers and _servers[kind].has_ended):
        _end_servers()
    if kind not in _servers:
        server = Isolation(workers=1, sandbox=order.sandbox, interpreter=interpreter)
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
