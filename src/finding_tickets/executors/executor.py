"""Verify on a Ray cluster: one that is there, or one on this machine that lasts as long as the run."""

from __future__ import annotations

import logging
import os
import signal
import socket
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from pickle import PickleBuffer
from typing import Any, NamedTuple

from finding_tickets.documents.reading import Document
from finding_tickets.errors import UnreachableError, UsageError
from finding_tickets.executors.leaving import MARK, temporary_folder
from finding_tickets.executors.machines import LABEL, Machines
from finding_tickets.executors.node import Order, verified_from, verify_on_ray, versions
from finding_tickets.executors.pack import packed
from finding_tickets.ground.git import GitError
from finding_tickets.verify.evidence import TOOL
from finding_tickets.verify.plan import Plan
from finding_tickets.verify.session import Settings, Verified, inconclusive, prepared, record

AUTO = "auto"
_ADDRESS = "RAY_ADDRESS"
"""Where Ray looks first for what is meant by ``auto``, and would wait for it for minutes."""
_CONNECT_SECONDS = 5.0
# RFC 9113, section 3.4: what either end of HTTP/2 says first, the client with an empty frame of settings.
_SETTINGS_FRAME = b"\x04"
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(3) + _SETTINGS_FRAME + bytes(5)
_HEADER_BYTES = 9
_TYPE = slice(3, 4)
_POLL_SECONDS = 5.0
"""How often a silent cluster is asked whether it can still do what is waiting."""
_MARGIN_SECONDS = 60.0
"""For unpacking and for starting a server with torch loaded."""
_HEAD_SECONDS = 20.0
"""A head may come back that keeps its state elsewhere; Ray waits a minute for it."""
_RETRIES = 3
_AHEAD = 2
"""Verifications given to a cluster at a time, for each of its processors: the next one waits at its door."""
_SETTINGS = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}


def _nobody(_: str) -> None:
    """Tells nobody."""


@dataclass(frozen=True, kw_only=True)
class RayCluster:
    """The cluster at ``address`` (``host:port``, or ``auto``), or one that is started for each run.

    ``tell`` is told of machines on which nothing can be measured, ``say`` of what stays behind.
    """

    address: str | None = None
    sandbox: bool = False
    tell: Callable[[str], None] = _nobody
    say: Callable[[str], None] = _nobody

    @contextmanager
    def together(self, settings: Settings) -> Iterator[None]:
        """A block in which one connection, and one cluster where it is started, serves every call."""
        with _connected(self.address, settings):
            yield

    def verify(
        self, documents: Sequence[Document], settings: Settings, on_start: Callable[[Document], None]
    ) -> Iterator[Verified]:
        """Every document in the given order; its evidence is recorded when it arrives.

        Raises:
            UsageError: Ray is not installed, or the address is none.
            UnreachableError: There is no cluster at the address, or the work tree cannot be packed.
        """
        known = {document.path: prepared(document, settings) for document in documents}
        planned = {path: todo for path, todo in known.items() if isinstance(todo, Plan)}
        done = {path: found for path, found in known.items() if isinstance(found, Verified)}
        if not planned:
            yield from done.values()
            return
        by_path = {document.path: document for document in documents}
        with _connected(self.address, settings) as ray:
            run = _Run(ray, settings, planned, by_path, self)
            yield from _in_order(known, done, run.measure(on_start))


class _Given(NamedTuple):
    """A verification that Ray has, and the machines that it may take for it."""

    path: str
    machines: frozenset[str]


class _Run:
    """The verifications of a run, each a task of Ray with what it asks of a machine."""

    def __init__(
        self,
        ray: Any,
        settings: Settings,
        planned: Mapping[str, Plan],
        documents: Mapping[str, Document],
        how: RayCluster,
    ) -> None:
        self._ray = ray
        self._settings = replace(settings, meter=self._taken(settings.meter))
        self._planned = planned
        self._documents = documents
        self._gpus = dict.fromkeys(planned, 1)
        commits = {
            str(revision): revision.commit
            for todo in planned.values()
            for revision in todo.revisions.values()
        }
        try:
            pack, objects = packed(settings.root, commits.values(), how.say)
        except (GitError, OSError) as error:
            raise UnreachableError(f"the work tree cannot be packed for the cluster: {error}") from None
        self._order = Order(
            document="",
            pack=pack,
            meter=self._settings.meter,
            timeout=settings.timeout,
            memory=settings.memory,
            sandbox=how.sandbox,
            overrides=dict(settings.overrides),
            commits=commits,
            versions=_compared(settings),
            limit=0,
            cell=settings.cell,
        )
        self._machines = Machines(ray, self._order.versions, how.tell)
        # Out of band, so that all processes of a machine share the one copy that Ray has there.
        self._objects = ray.put(PickleBuffer(objects))
        self._task = ray.remote(verify_on_ray)

    def measure(self, on_start: Callable[[Document], None]) -> Iterator[tuple[str, Verified]]:
        """Each document by its path as soon as its answer is there."""
        waiting, pending = deque(self._planned), dict[Any, _Given]()
        while waiting or pending:
            if not self._has_head():
                for path in (*(given.path for given in pending.values()), *waiting):
                    yield path, self._inconclusive(path, "the head of the cluster is gone")
                return
            # At once: whoever asks a head that has died meanwhile waits for ever.
            self._machines.look()
            waiting.extendleft(self._taken_back(pending))
            held_back = []
            while waiting and len(pending) < _AHEAD * max(1, self._machines.processors):
                path = waiting.popleft()
                asked = self._asked(path)
                if machines := self._machines.with_all(asked):
                    on_start(self._documents[path])
                    pending[self._submitted(path, asked, machines)] = _Given(path, frozenset(machines))
                elif self._machines.may_have_all(asked):
                    held_back.append(path)
                else:
                    yield path, self._nowhere(path)
            waiting.extendleft(reversed(held_back))
            if not pending:
                self._machines.hear(_POLL_SECONDS if waiting else 0)
                continue
            for reference in self._ray.wait(list(pending), timeout=_POLL_SECONDS)[0]:
                path = pending.pop(reference).path
                if done := self._verified(path, reference):
                    yield path, done
                else:
                    waiting.appendleft(path)

    def _taken_back(self, pending: dict[Any, _Given]) -> list[str]:
        """What was given to machines of which none is left; it may ask less of others."""
        gone = [each for each, given in pending.items() if not self._machines.has_any(given.machines)]
        if not gone:
            return []
        # What has answered before its machine went is not to be measured again.
        _, left = self._ray.wait(gone, num_returns=len(gone), timeout=0)
        for reference in left:
            self._ray.cancel(reference, force=True)
        return [pending.pop(reference).path for reference in left]

    def _has_head(self) -> bool:
        """Whether the head of the cluster answers; a minute after it has died Ray ends this process."""
        place = _place(self._ray.get_runtime_context().gcs_address)
        deadline = time.monotonic() + _HEAD_SECONDS
        while time.monotonic() < deadline:
            try:
                socket.create_connection(place, _CONNECT_SECONDS).close()
            except OSError:
                time.sleep(1)
            else:
                return True
        return False

    def _taken(self, meter: str) -> str:
        """The meter that ``auto`` takes: a real GPU where the cluster has any."""
        if meter != "auto":
            return meter
        return "cuda" if self._ray.cluster_resources().get("GPU", 0) >= 1 else "simulated"

    def _asked(self, path: str) -> dict[str, float]:
        """What a verification asks of a machine, by Ray's names; all processors where it takes times."""
        gpu = {"GPU": float(self._gpus[path])} if self._settings.meter == "cuda" else {}
        asked = {"CPU": 1.0, "memory": float(self._settings.memory), **gpu, **self._settings.resources}
        machines = self._machines.with_all(asked).values() if self._planned[path].is_timed else ()
        return asked | {"CPU": max((machine["CPU"] for machine in machines), default=1.0)}

    def _most_gpus(self, path: str) -> int:
        """How many GPUs a machine has at most that has all that is asked."""
        machines = self._machines.with_all(self._asked(path)).values()
        return int(max((machine["GPU"] for machine in machines), default=1))

    def _submitted(self, path: str, asked: dict[str, float], machines: Iterable[str]) -> Any:
        """A task for one of the machines, which is all that Ray may take when it tries again."""
        todo = self._planned[path]
        # Each revision is measured on its own, then results may be compared and times be taken.
        parts = len(set(todo.revisions.values())) + 3
        limit = parts * self._settings.timeout + _MARGIN_SECONDS
        order = replace(self._order, document=path, limit=limit)
        if "GPU" in asked:
            order = replace(order, gpus=int(asked["GPU"]), most=self._most_gpus(path))
        own = {"CPU", "GPU", "memory"}
        task = self._task.options(
            name=f"verify {todo.ticket}",
            num_cpus=asked["CPU"],
            num_gpus=asked.get("GPU", 0),
            memory=int(asked["memory"]),
            resources={name: amount for name, amount in asked.items() if name not in own},
            max_retries=_RETRIES,
            label_selector={LABEL: f"in({','.join(machines)})"},
        )
        return task.remote(asdict(order), self._objects)

    def _verified(self, path: str, reference: Any) -> Verified | None:
        """What came back; None where it is to be given again, to another machine or with more GPUs."""
        try:
            answer = self._ray.get(reference)
        except self._ray.exceptions.TaskUnschedulableError:  # none of its machines is left
            return None
        except self._ray.exceptions.RayError as error:
            return self._inconclusive(path, _lost(error))
        if "reason" in answer:
            return self._refused(path, answer)
        if "gpus" in answer:
            self._gpus[path] = min(answer["gpus"], self._most_gpus(path))
            return None
        return record(verified_from(answer, self._documents[path]), self._settings)

    def _refused(self, path: str, answer: Mapping[str, Any]) -> Verified | None:
        reason = f"on {answer['node']}: {answer['reason']}"
        if not answer.get("of_machine"):
            return self._inconclusive(path, reason)
        self._machines.leave_out(answer["machine"], reason)
        return None

    def _nowhere(self, path: str) -> Verified:
        asked = ", ".join(f"{name} {_amount(name, each)}" for name, each in self._asked(path).items())
        reasons = self._machines.reasons
        which = "machine of the cluster that can measure" if reasons else "machine of the cluster"
        return self._inconclusive(path, "; ".join([f"no {which} has what it asks for: {asked}", *reasons]))

    def _inconclusive(self, path: str, reason: str) -> Verified:
        return Verified(self._documents[path], inconclusive(self._planned[path], self._settings, reason))


@contextmanager
def _connected(address: str | None, settings: Settings) -> Iterator[Any]:
    """Ray, connected until the block is left; what was started for it is then gone."""
    # Nothing is reported to anybody, and a process without a GPU keeps its own settings.
    os.environ.update({name: os.environ.get(name, value) for name, value in _SETTINGS.items()})
    ray = _ray()
    if ray.is_initialized():
        yield ray
        return
    if address == AUTO:
        address = os.environ.get(_ADDRESS) or AUTO
    if address:
        _reach(address)
    with ExitStack() as stack:
        try:
            where = {"address": address} if address else _of_its_own(stack, settings)
            stack.callback(ray.shutdown)
            with _interrupts_held_back():
                ray.init(**where, log_to_driver=False, logging_level=logging.ERROR)
        except Exception as error:  # Ray has no class of its own for what keeps it from starting
            what = f"the Ray cluster at {address}" if address else "Ray"
            raise UnreachableError(f"cannot use {what}: {_first_line(error)}") from None
        yield ray


@contextmanager
def _interrupts_held_back() -> Iterator[None]:
    """Raise what interrupts the block after it: Ray crashes where it is left half started."""
    interrupts: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: interrupts.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if interrupts and callable(before):
        before(signal.SIGINT, None)


def _of_its_own(stack: ExitStack, settings: Settings) -> dict[str, Any]:
    """How to start a cluster for a run, with a folder that is gone when the stack is left."""
    folder = stack.enter_context(temporary_folder("tickets-ray-"))
    stack.callback(os.environ.pop, MARK, None)
    os.environ[MARK] = folder
    # The limit of memory is one on what a verification may use, and reserves nothing here.
    memory = settings.memory * (os.cpu_count() or 1)
    return {"address": "local", "include_dashboard": False, "_temp_dir": folder, "_memory": memory}


def _compared(settings: Settings) -> dict[str, str]:
    """The versions that a machine must have; with an interpreter of its own, torch is that one's."""
    here = versions()
    return {TOOL: here[TOOL]} if settings.cell and settings.cell.interpreter else here


def _ray() -> Any:
    try:
        import ray
    except ImportError:
        hint = "python -m pip install 'finding-tickets[ray]'"
        raise UsageError("--executor ray needs Ray, which is not installed", hint=hint) from None
    return ray


def _reach(address: str) -> None:
    """Find out in seconds what Ray would take minutes for: whether anybody listens."""
    if address == AUTO:
        return
    place = _place(address)
    try:
        with socket.create_connection(place, _CONNECT_SECONDS) as connection:
            _greet(connection)
    except (OSError, OverflowError) as error:
        raise UnreachableError(f"there is no Ray cluster at {address}: {error}") from None


def _place(address: str) -> tuple[str, int]:
    """Host and port of an address; the brackets around an IPv6 host are not part of it.

    Raises:
        UsageError: It is none.
    """
    host, _, port = address.rpartition(":")
    if not host or not port.isascii() or not port.isdigit() or "/" in host:
        raise UsageError(f"--address {address}: no address of a Ray cluster", hint="host:port, or auto")
    return host.removeprefix("[").removesuffix("]"), int(port)


def _greet(connection: socket.socket) -> None:
    """Raise ``OSError`` unless the other end speaks HTTP/2, as gRPC and so the head of a cluster does."""
    if os.environ.get("RAY_USE_TLS", "0") != "0":
        return
    connection.sendall(_PREFACE)
    if connection.recv(_HEADER_BYTES)[_TYPE] != _SETTINGS_FRAME:
        raise OSError("what listens there is none")


def _in_order(
    paths: Iterable[str], done: dict[str, Verified], arriving: Iterable[tuple[str, Verified]]
) -> Iterator[Verified]:
    """What is done and what arrives, each as soon as everything before it is there."""
    waiting = deque(paths)
    for path, verified in arriving:
        done[path] = verified
        while waiting and waiting[0] in done:
            yield done.pop(waiting.popleft())
    yield from (done.pop(path) for path in waiting)


def _lost(error: Exception) -> str:
    """Why there is no answer, in a few words."""
    cause = getattr(error, "cause", None)
    if cause is not None:
        return f"on the cluster: {type(cause).__name__}: {_first_line(cause)}"
    return f"its process or its machine was lost, also when it was tried again: {type(error).__name__}"


def _first_line(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0] or type(error).__name__


def _amount(name: str, value: float) -> str:
    return f"{int(value) >> 20} MiB" if name == "memory" else f"{value:g}"
