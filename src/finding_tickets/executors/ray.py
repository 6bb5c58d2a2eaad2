"""Verify on a Ray cluster: one that is there, or one on this machine that lasts as long as the run."""

from __future__ import annotations

import logging
import os
import signal
import socket
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pickle import PickleBuffer
from typing import Any

from finding_tickets.documents.reading import Document
from finding_tickets.errors import UnreachableError, UsageError
from finding_tickets.executors.cleanup import MARK, temporary_folder
from finding_tickets.executors.node import Order, verified_from, verify_on_ray, versions
from finding_tickets.executors.pack import pack_work_tree
from finding_tickets.ground.git import GitError
from finding_tickets.register.staleness import TOOL
from finding_tickets.verify.verify import Planned, Settings, Verified, inconclusive, plan_each, record

AUTO = "auto"
_ADDRESS = "RAY_ADDRESS"
"""Where Ray looks first for what ``auto`` means; it would wait minutes for a cluster that is gone."""
_CONNECT_SECONDS = 5.0
# RFC 9113, section 3.4: what either end of HTTP/2 says first, the client with an empty frame of settings.
_SETTINGS_FRAME = b"\x04"
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(3) + _SETTINGS_FRAME + bytes(5)
_HEADER_BYTES = 9
_TYPE = slice(3, 4)
_POLL_SECONDS = 5.0
_MARGIN_SECONDS = 60.0
"""For unpacking, and for starting a server with torch loaded."""
_HEAD_SECONDS = 20.0
"""A head may come back that keeps its state elsewhere; Ray itself waits a minute for it."""
_TRIES = 4
_AHEAD = 2
"""Verifications submitted for each processor of a machine, so that none waits for the next one."""
_NODE_ID = "ray.io/node-id"
"""The label by which Ray places a task on one machine."""
_SETTINGS = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}
_TRAVELLING = ("meter", "timeout", "memory", "overrides", "seed", "operations")
"""The settings that a machine of the cluster is told; the others are its own or are for here."""


@dataclass(frozen=True, kw_only=True)
class RayCluster:
    """The cluster at ``address`` (``host:port``, or ``auto``), or one that is started for each run.

    ``left_out`` gets why a machine measures nothing; ``say`` prints that, and which files stay behind.
    """

    address: str | None = None
    sandbox: bool = False
    left_out: list[str] = field(default_factory=list)
    say: Callable[[str], object] = str

    @contextmanager
    def together(self, settings: Settings) -> Iterator[None]:
        """A block in which one connection, and one cluster where it is started, serves every call."""
        with _connected(self.address, settings):
            yield

    def verify(
        self, documents: Sequence[Document], settings: Settings, on_start: Callable[[Document], None]
    ) -> Iterator[Verified]:
        """Every document as soon as it is done; its evidence is recorded when its result arrives."""
        planned: Planned = {}
        yield from plan_each(documents, settings, planned)
        if planned:
            with _connected(self.address, settings) as ray:
                yield from _ClusterRun(ray, settings, planned, self).measure(on_start)


class _ClusterRun:
    """The verifications of a run: each is a task that one machine is chosen for.

    Ray could choose, but asks for a number of processors and not for all that a machine happens to have, and
    lets a task wait for ever that no machine can take.
    """

    def __init__(self, ray: Any, settings: Settings, planned: Planned, how: RayCluster) -> None:
        if settings.meter == "auto":
            has_gpu = ray.cluster_resources().get("GPU", 0) >= 1
            settings = replace(settings, meter="cuda" if has_gpu else "simulated")
        self._ray, self._settings, self._planned, self._how = ray, settings, planned, how
        self._left_out: dict[str, str] = {}
        """Why a machine measures nothing, by its ID."""
        self._tries: Counter[str] = Counter()
        revisions = [revision for _, todo in planned.values() for revision in todo.revisions.values()]
        commits = {str(revision): revision.commit for revision in revisions}
        try:
            pack, objects = pack_work_tree(settings.root, commits.values(), how.say)
        except (GitError, OSError) as error:
            raise UnreachableError(f"the work tree cannot be packed for the cluster: {error}") from None
        wanted = versions()
        self._order = Order(
            document="",
            pack=pack,
            settings={name: getattr(settings, name) for name in _TRAVELLING} | {"commits": commits},
            sandbox=how.sandbox,
            versions=wanted,
            limit=0,
        )
        # Out of band, so that all processes of a machine share the one copy that Ray has there.
        self._objects = ray.put(PickleBuffer(objects))
        self._task = ray.remote(verify_on_ray)

    def measure(self, on_start: Callable[[Document], None]) -> Iterator[Verified]:
        """Each document as soon as its answer is there."""
        waiting: deque[str] = deque(self._planned)
        pending: dict[Any, tuple[str, str]] = {}
        while waiting or pending:
            # Whoever asks a head that has died waits for ever.
            if not self._has_head():
                for path in (*(path for path, _ in pending.values()), *waiting):
                    yield self._inconclusive(path, "the head of the cluster is gone")
                return
            alive = [each for each in self._ray.nodes() if each["Alive"] and each["Resources"].get("CPU")]
            machines = {node["NodeID"]: node for node in alive}
            waiting.extendleft(self._take_back(pending, machines))
            busy = Counter(machine for _, machine in pending.values())
            held_back = []
            while waiting:
                path = waiting.popleft()
                free = {
                    machine: busy[machine] / node["Resources"]["CPU"]
                    for machine, node in machines.items()
                    if machine not in self._left_out and self._fits(node["Resources"])
                }
                if not free:
                    yield self._inconclusive(path, self._why_nowhere())
                    continue
                machine = min(free, key=free.__getitem__)
                resources = machines[machine]["Resources"]
                if busy[machine] >= _AHEAD * max(1, resources["CPU"]):
                    held_back.append(path)
                    continue
                busy[machine] += 1
                on_start(self._planned[path][0])
                pending[self._submit(path, machine)] = path, machine
            waiting.extend(held_back)
            for reference in self._ray.wait(list(pending), timeout=_POLL_SECONDS)[0] if pending else ():
                path, machine = pending.pop(reference)
                name = machines[machine]["NodeManagerHostname"] if machine in machines else machine
                done = self._receive(path, reference, machine, name)
                if done is None:
                    waiting.appendleft(path)
                else:
                    yield done

    def _has_head(self) -> bool:
        """Whether the head of the cluster answers; a minute after it has died Ray ends this process."""
        place = _host_and_port(self._ray.get_runtime_context().gcs_address)
        deadline = time.monotonic() + _HEAD_SECONDS
        while time.monotonic() < deadline:
            try:
                socket.create_connection(place, _CONNECT_SECONDS).close()
            except OSError:
                time.sleep(1)
            else:
                return True
        return False

    def _take_back(self, pending: dict[Any, tuple[str, str]], machines: Mapping[str, Any]) -> list[str]:
        """The paths of what was submitted to machines that are gone: Ray would hold it for them for ever."""
        gone = [reference for reference, (_, machine) in pending.items() if machine not in machines]
        # What answered before its machine went is not measured again.
        left = self._ray.wait(gone, num_returns=len(gone), timeout=0)[1] if gone else ()
        for reference in left:
            self._ray.cancel(reference, force=True)
        return [pending.pop(reference)[0] for reference in left]

    def _needs(self) -> dict[str, float]:
        """What a verification needs of a machine, by Ray's names."""
        return {
            "CPU": 1.0,
            "memory": float(self._settings.memory),
            **({"GPU": 1.0} if self._settings.meter == "cuda" else {}),
            **self._settings.resources,
        }

    def _fits(self, resources: Mapping[str, float]) -> bool:
        return all(resources.get(name, 0) >= amount for name, amount in self._needs().items())

    def _submit(self, path: str, machine: str) -> Any:
        """Submit a verification to a machine; Ray's reference to the answer."""
        todo, needs = self._planned[path][1], self._needs()
        # Each revision is measured on its own, then results may be compared and times be taken.
        parts = len(set(todo.revisions.values())) + 3
        task = self._task.options(
            name=f"verify {todo.ticket}",
            num_cpus=needs.pop("CPU"),
            num_gpus=needs.pop("GPU", 0),
            memory=int(needs.pop("memory")),
            resources=needs,
            # Ray would try again on the same machine alone.
            max_retries=0,
            label_selector={_NODE_ID: machine},
        )
        limit = parts * self._settings.timeout + _MARGIN_SECONDS
        order = self._order.model_copy(update={"document": path, "limit": limit})
        return task.remote(order.model_dump(mode="json"), self._objects)

    def _receive(self, path: str, reference: Any, machine: str, host: str) -> Verified | None:
        """The result of a verification; None where it is to be tried again, perhaps on another machine."""
        try:
            answer = self._ray.get(reference)
        except self._ray.exceptions.RayTaskError as error:
            cause = error.cause
            if not isinstance(cause, RuntimeError):
                reason = f"on the cluster: {type(cause).__name__}: {_first_line(cause)}"
                return self._inconclusive(path, reason)
            # Ray's own words for a function that cannot be imported there.
            answer = {"reason": f"there is no {TOOL} {self._order.versions[TOOL]}", "of_machine": True}
        except self._ray.exceptions.RayError as error:
            self._tries[path] += 1
            if self._tries[path] < _TRIES:
                return None
            lost = "its process or its machine was lost, at every try"
            return self._inconclusive(path, f"{lost}: {type(error).__name__}")
        if "reason" not in answer:
            return record(verified_from(answer, self._planned[path][0]), self._settings)
        reason = f"on {host}: {answer['reason']}"
        if not answer.get("of_machine"):
            return self._inconclusive(path, reason)
        if machine not in self._left_out:
            self._left_out[machine] = reason
            self._how.left_out.append(reason)
            self._how.say(f"nothing is measured {reason}")
        return None

    def _why_nowhere(self) -> str:
        needs = ", ".join(
            f"{name} {int(each) >> 20} MiB" if name == "memory" else f"{name} {each:g}"
            for name, each in self._needs().items()
        )
        reasons = dict.fromkeys(self._left_out.values())
        which = "machine of the cluster that can measure" if reasons else "machine of the cluster"
        return "; ".join([f"no {which} has what it asks for: {needs}", *reasons])

    def _inconclusive(self, path: str, reason: str) -> Verified:
        document, todo = self._planned[path]
        return Verified(document, inconclusive(todo, self._settings, reason))


@contextmanager
def _connected(address: str | None, settings: Settings) -> Iterator[Any]:
    """Ray, connected until the block is left; what was started for it is then gone."""
    # Nothing is reported to anybody, and a process without a GPU keeps its own settings.
    for name, value in _SETTINGS.items():
        os.environ.setdefault(name, value)
    try:
        import ray
    except ImportError:
        hint = "python -m pip install 'finding-tickets[ray]'"
        raise UsageError("--executor ray needs Ray, which is not installed", hint=hint) from None
    if ray.is_initialized():
        yield ray
        return
    if address == AUTO:
        address = os.environ.get(_ADDRESS) or AUTO
    if address and address != AUTO:
        _check_head(address)
    with ExitStack() as stack:
        try:
            where: dict[str, Any] = {"address": address}
            if not address:
                folder = stack.enter_context(temporary_folder("tickets-ray-"))
                stack.callback(os.environ.pop, MARK, None)
                os.environ[MARK] = folder
                # The limit of memory is one on what a verification may use, and reserves nothing here.
                memory = settings.memory * (os.cpu_count() or 1)
                where = {
                    "address": "local",
                    "include_dashboard": False,
                    "_temp_dir": folder,
                    "_memory": memory,
                }
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


def _check_head(address: str) -> None:
    """Raise unless a head listens, which speaks gRPC and so HTTP/2; Ray itself would wait for minutes."""
    place = _host_and_port(address)
    try:
        with socket.create_connection(place, _CONNECT_SECONDS) as connection:
            if os.environ.get("RAY_USE_TLS", "0") == "0":
                connection.sendall(_PREFACE)
                if connection.recv(_HEADER_BYTES)[_TYPE] != _SETTINGS_FRAME:
                    raise OSError("another service listens there")
    except (OSError, OverflowError) as error:
        raise UnreachableError(f"there is no Ray cluster at {address}: {error}") from None


def _host_and_port(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    if not host or not port.isascii() or not port.isdigit() or "/" in host:
        raise UsageError(f"--address {address}: no address of a Ray cluster", hint="host:port, or auto")
    # The brackets around an IPv6 host are not part of it.
    return host.removeprefix("[").removesuffix("]"), int(port)


def _first_line(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0] or type(error).__name__
