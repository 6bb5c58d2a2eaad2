"""Recording: every case is run, none is lost with another, and the same content is the same file."""

from __future__ import annotations

import gc
import inspect
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Pipe
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch

import simcuda
from simcuda import Gpu, Measurement
from simcuda import record as command
from simcuda.cost.rules import RULES
from simcuda.real import CannotCountError, device
from simcuda.recording import operators, recorder
from simcuda.recording.case import MEASURED, WARM_UP, Case, Work, seed_all
from simcuda.recording.recorder import (
    NotARecordingError,
    Recording,
    _messages,
    read_recording,
    record,
    run_suite,
    write_recording,
)
from simcuda.recording.selection import Selection
from simcuda.recording.worker import (
    TRIES,
    Devices,
    SuiteOrder,
    outcome,
    profile_from,
    run_group,
)

pytestmark = pytest.mark.slow

Profile = dict[str, Any]


def test_every_rule_is_a_case(small: Recording) -> None:
    """The example of each rule is recorded with its counts."""
    assert {f"rule/{rule.id}" for rule in RULES} == small.cases.keys()
    assert all("counts" in case for case in small.cases.values())


def test_a_case_holds_what_its_measurement_counts(small: Recording) -> None:
    """Reading one value costs one wait and one copy of its four bytes; what is 0 is left out."""
    counts = small.cases["rule/read-one-value"]["counts"]
    assert {"stream_syncs": 1, "d2h": 1, "d2h_bytes": 4} == counts


@pytest.mark.slow
def test_the_same_recording_is_the_same_file(small: Recording, again: Recording, tmp_path: Path) -> None:
    """Two recordings of the same cases have the same bytes."""
    write_recording(small, tmp_path / "one.json.gz")
    write_recording(again, tmp_path / "other.json.gz")
    written = (tmp_path / "one.json.gz").read_bytes()
    assert written == (tmp_path / "other.json.gz").read_bytes()
    # These bytes of a compressed file are the time at which it was made.
    assert bytes(4) == written[4:8]


@pytest.mark.parametrize("name", ["x.json", "x.json.gz"])
def test_a_recording_is_read_back(small: Recording, tmp_path: Path, name: str) -> None:
    """What is written is what is read."""
    write_recording(small, tmp_path / name)
    assert small == read_recording(tmp_path / name)


def test_a_header_says_who_made_it(small: Recording) -> None:
    """A recording of the simulation says so, and names the device, the profile and the versions."""
    assert "simulated" == small.environment["made_by"]
    assert "NVIDIA H200" == small.environment["device"]
    assert None is small.environment["driver"]
    assert "h200-cuda13" == small.environment["profile"]["name"]
    assert torch.__version__.startswith(small.environment["torch"])


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"header": {"format": "simcuda-recording"}}'])
def test_another_file_is_no_recording(tmp_path: Path, content: str) -> None:
    """A file without the header of a recording is refused."""
    (tmp_path / "x.json").write_text(content)
    with pytest.raises(NotARecordingError, match="not a recording"):
        read_recording(tmp_path / "x.json")


@pytest.mark.slow
def test_a_case_that_ends_its_process_loses_no_other(battered: tuple[Recording, list[str]]) -> None:
    """Cases that are killed or exit are lost with the reason; all before and after them are there."""
    recording, told = battered
    variants = ("exits", "fine", "killed", "raises")
    assert [f"verifier/mine/{name}/n={n}" for name in variants for n in (1, 2, 3)] == list(recording.cases)
    reasons = {
        "verifier/mine/exits/n=3": "ended with exit code 3",
        "verifier/mine/killed/n=2": "killed by SIGKILL",
    }
    assert reasons == {id_: case["lost"] for id_, case in recording.cases.items() if "lost" in case}
    assert {f"lost {id_}: {reason}" for id_, reason in reasons.items()} <= set(told)
    # One kernel adds to four floats and makes 16 bytes, which are then read: one wait, one copy.
    costs = {"stream_syncs": 1, "d2h": 1, "d2h_bytes": 16, "launches": 1, "allocations": 1, "peak_bytes": 16}
    counted = [case["counts"] for case in recording.cases.values() if "counts" in case]
    # Three variants at three points, without the two that are lost.
    assert [costs] * 7 == counted


@pytest.mark.slow
def test_an_error_is_how_a_case_ends(battered: tuple[Recording, list[str]]) -> None:
    """An exception is recorded with its type and first line."""
    case = battered[0].cases["verifier/mine/raises/n=1"]
    assert "RuntimeError: shape '[3]' is invalid for input of size 4" == case["error"]


def test_a_group_that_cannot_be_found_is_lost_by_name() -> None:
    """What looking for cases raises, such as a verifier's import, is why they are lost; others go on."""

    def broken() -> list[Case]:
        raise ValueError("not today")

    told: list[dict[str, Any]] = []
    devices = Devices(simcuda.PROFILES["h200-cuda13"])
    order = SuiteOrder("x", Selection(1), None)
    assert run_group("verifier/mine", broken, order, devices, told.append)
    assert {"end": "verifier/mine", "outcome": {"lost": "ValueError: not today"}} == told[-1]


def test_silence_is_an_end() -> None:
    """A worker that tells nothing for too long is given up."""
    reader, writer = Pipe(duplex=False)
    with reader, writer:
        writer.send_bytes(b'{"begin": "slow"}')
        messages = _messages(reader, 0.01)
        assert {"begin": "slow"} == next(messages)
        with pytest.raises(TimeoutError):
            next(messages)


def test_a_message_that_is_cut_is_an_end() -> None:
    """A worker that is killed while it tells something has told no more than what came before."""
    reader, writer = Pipe(duplex=False)
    writer.send_bytes(b'{"begin": "a/0"}')
    # The length of the next message, 100 bytes in big-endian order, and no more of it.
    os.write(writer.fileno(), (100).to_bytes(4, "big") + b'{"end')
    writer.close()
    with reader:
        assert [{"begin": "a/0"}] == list(_messages(reader, 1.0))


def test_what_does_not_come_to_its_turn_is_left_out_by_name(profile: Profile) -> None:
    """When the time is up, the recording holds what there is and names what it left out."""
    # A worker needs longer than a millisecond to load torch, so the first case is already late.
    late = record(Selection(1, ("rule/*", "workload/*")), profile, say=str, all_seconds=0.001)
    first = f"rule/{next(iter(RULES)).id}"
    assert [first] == list(late.cases)
    assert {
        "rules": f"what follows {first}, as the time was up",
        "workloads": "the time was up",
    } == late.left_out


def test_without_numpy_the_operators_are_left_out(
    profile: Profile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where PyTorch's collection of operators cannot be imported, the recording says so and goes on."""
    (tmp_path / "numpy.py").write_text("raise ModuleNotFoundError('no numpy here')")
    paths = (str(tmp_path), str(Path(inspect.getfile(simcuda)).parents[1]))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(paths))
    recording = record(Selection(1, ("op/add/*",)), profile, say=str)
    assert {"operators": "ModuleNotFoundError: no numpy here"} == recording.left_out


def test_without_a_device_nothing_is_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """On a machine without a CUDA device the command says why, names the other way, and writes nothing."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    monkeypatch.setattr("sys.argv", ["record", "-o", str(tmp_path / "x.json")])
    assert 2 == command.main()
    said = capsys.readouterr().err
    assert said.startswith("error: ")
    assert "; --device simulated records the simulation instead" in said
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-o", "nowhere/x.json"], "there is no folder nowhere"),
        (["-o", "."], ". is a folder"),
        (["-o", "x.json", "--minutes", "0"], "--minutes: a number above 0 is needed, not 0"),
        (["-o", "x.json", "--timeout", "nan"], "--timeout: a number above 0 is needed, not nan"),
        (["-o", "x.json", "--samples", "1.5"], "--samples: a number above 0 is needed, not 1.5"),
    ],
)
def test_wrong_options_are_told_before_anything_runs(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    options: list[str],
    message: str,
) -> None:
    """Minutes of recording are not lost for want of a folder, and numbers that select nothing are refused."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["record", "--device", "simulated", *options])
    with pytest.raises(SystemExit, match="2"):
        command.main()
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--cases", "nowhere"], "error: nowhere: no verifier file there\n"),
        (["--only", "nothing/*"], "error: no case was run: none is selected, or every process ended "),
    ],
)
def test_what_is_not_the_devices_fault_is_not_put_to_it(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    options: list[str],
    message: str,
) -> None:
    """The other way to record is named only where the device is what is missing."""
    monkeypatch.setattr("sys.argv", ["record", "-o", str(tmp_path / "x.json"), *options])
    assert 2 == command.main()
    said = capsys.readouterr().err
    assert said.startswith(message)
    assert "--device simulated" not in said


def nothing(seed: int) -> Work:  # noqa: ARG001 - the signature of Case.prepare
    """No work on any data."""
    return lambda: None


class Poisoned:
    """Devices on which the first case makes an illegal access, after which CUDA refuses everything."""

    def __init__(self) -> None:
        self._simulated = Devices(simcuda.PROFILES["h200-cuda13"])
        self.is_healthy = iter((True, False)).__next__

    @contextmanager
    def for_case(self, case: Case) -> Iterator[Gpu]:
        """A simulated device."""
        with self._simulated.for_case(case) as gpu:
            yield gpu


def test_a_process_ends_with_its_device() -> None:
    """After a case that leaves the device unusable its process runs no other, and does not say it is done."""
    cases = [Case(f"group/{n}", nothing, "00000000") for n in range(3)]
    told: list[dict[str, Any]] = []
    order = SuiteOrder("group", Selection(1), None)
    devices: Any = Poisoned()
    assert not run_group("group", lambda: cases, order, devices, told.append)
    assert ["group/0", "group/1"] == [message["end"] for message in told if "end" in message]


def test_a_case_is_warmed_up_on_other_data() -> None:
    """A case runs once on data of its own before it is measured, both times without garbage collection."""
    ran: list[tuple[int, bool]] = []

    def prepare(seed: int) -> Work:
        return lambda: ran.append((seed, gc.isenabled()))

    with simcuda.device() as gpu:
        outcome(Case("x/0", prepare, "00000000"), gpu)
    assert [(WARM_UP, False), (MEASURED, False)] == ran
    assert gc.isenabled()


def test_only_the_work_is_measured() -> None:
    """What a case prepares costs nothing, and settings that it changes are put back."""

    def prepare(seed: int) -> Work:
        values = torch.rand(5, generator=seed_all(seed)).to("cuda")
        values.sum().item()
        torch.set_default_dtype(torch.float64)
        return lambda: values + 1

    with simcuda.device() as gpu:
        ended = outcome(Case("x/0", prepare, "00000000"), gpu)
    # Five floats of four bytes.
    assert {"launches": 1, "allocations": 1, "peak_bytes": 20} == ended["counts"]
    assert torch.float32 == torch.get_default_dtype()


class Lossy:
    """Devices whose profiler loses something in the first measurements."""

    def __init__(self, losses: int) -> None:
        self._losses = losses

    @contextmanager
    def measure(self) -> Iterator[Measurement]:
        """Count one launch, or fail after the block."""
        yield Measurement(aten_launches=1)
        self._losses -= 1
        if self._losses >= 0:
            raise CannotCountError("no record")


def test_what_a_profiler_lost_is_measured_again() -> None:
    """A case of which not everything was counted is tried again, and at last recorded as not counted."""
    case = Case("x/0", nothing, "00000000")
    lossy, hopeless = cast("Gpu", Lossy(TRIES - 1)), cast("Gpu", Lossy(TRIES))
    assert {"counts": {"launches": 1}} == outcome(case, lossy)
    assert {"not_run": "not counted: no record"} == outcome(case, hopeless)


@pytest.fixture
def workers(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[SuiteOrder]]:
    """Puts workers that report given messages, and then end, in the place of processes."""

    def replace(*reports: list[dict[str, Any]]) -> list[SuiteOrder]:
        orders: list[SuiteOrder] = []
        left = iter(reports)

        @contextmanager
        def worker(order: SuiteOrder) -> Iterator[tuple[Any, Any]]:
            orders.append(order)
            yield SimpleNamespace(wait=lambda _: -9), next(left)

        monkeypatch.setattr(recorder, "_worker", worker)
        monkeypatch.setattr(recorder, "_messages", lambda report, _: iter(report))
        return orders

    return replace


def test_a_new_process_goes_on_after_the_last_case(workers: Callable[..., list[SuiteOrder]]) -> None:
    """What is done, and what was under way when a process ended, is not run again."""
    orders = workers(
        [
            *({"begin": "a"}, {"begin": "a/0"}, {"end": "a/0", "outcome": {}}, {"end": "a"}),
            *({"begin": "b"}, {"begin": "b/0"}, {"end": "b/0", "outcome": {}}, {"begin": "b/1"}),
        ],
        [{"begin": "b"}, {"end": "b"}, {"end": "suite"}],
    )
    told = list(run_suite(SuiteOrder("suite", Selection(1), None), 1))
    assert {"end": "b/1", "outcome": {"lost": "killed by SIGKILL"}} in told
    assert [set(), {"a", "a/0", "b/0", "b/1"}] == [set(order.done) for order in orders]


def test_a_group_that_ends_its_process_before_its_first_case_is_skipped(
    workers: Callable[..., list[SuiteOrder]],
) -> None:
    """The next process goes on with the group after it."""
    orders = workers([{"begin": "a"}, {"end": "a"}, {"begin": "b"}], [{"end": "suite"}])
    told = list(run_suite(SuiteOrder("suite", Selection(1), None), 1))
    assert {"end": "b", "outcome": {"lost": "killed by SIGKILL"}} in told
    assert {"a", "b"} == orders[1].done


def test_a_process_that_ends_between_two_cases_loses_none(workers: Callable[..., list[SuiteOrder]]) -> None:
    """One whose device fails ends after a case; the next goes on with what is left of the group."""
    case = {"end": "a/0", "outcome": {"counts": {}}}
    orders = workers(
        [{"begin": "a"}, {"begin": "a/0"}, case], [{"begin": "a"}, {"end": "a"}, {"end": "suite"}]
    )
    told = list(run_suite(SuiteOrder("suite", Selection(1), None), 1))
    assert [case] == [message for message in told if "outcome" in message]
    assert {"a/0"} == orders[1].done


def test_a_process_that_reports_nothing_ends_its_suite(workers: Callable[..., list[SuiteOrder]]) -> None:
    """Another one would not do more."""
    orders = workers([])
    lost = [{"end": "suite", "outcome": {"lost": "killed by SIGKILL"}}]
    assert lost == list(run_suite(SuiteOrder("suite", Selection(1), None), 1))
    assert 1 == len(orders)


def test_a_case_with_more_devices_than_there_are_does_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """On real devices such a case is recorded as not run, with the numbers."""
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(device, "why_not", lambda: None)
    case = Case("x/two", nothing, "00000000", devices=2)
    devices: Any = Devices(None)
    devices.is_healthy = lambda: True
    told: list[dict[str, Any]] = []
    run_group("x", lambda: [case], SuiteOrder("x", Selection(1), None), devices, told.append)
    assert "2 devices are needed, and this machine has 1" == told[-2]["outcome"]["not_run"]


def test_an_unknown_profile_comes_with_its_recording(small: Recording) -> None:
    """A GPU that this version has no profile for is simulated by the figures in the header."""
    unheard_of = {**small.environment["profile"], "name": "h300-cuda14", "multiprocessors": 200}
    profile = profile_from(unheard_of)
    assert ("h300-cuda14", 200, (9, 0)) == (profile.name, profile.multiprocessors, profile.capability)
    assert simcuda.PROFILES["h200-cuda13"].multi_tensor == profile.multi_tensor


def test_a_known_profile_is_taken_as_this_version_has_it(small: Recording) -> None:
    """A figure that was corrected since is the corrected one."""
    stale = {**small.environment["profile"], "multiprocessors": 1}
    assert 132 == profile_from(stale).multiprocessors


def test_samples_are_evenly_spread() -> None:
    """Of ten samples three are those at 0, 10/3 and 20/3, rounded down; of two, both."""
    assert [0, 3, 6] == operators.spread(10, 3)
    assert [0, 1] == operators.spread(2, 3)


def test_samples_reach_the_device_with_their_strides() -> None:
    """A sample with gaps, an offset or overlapping elements has the same layout and values on the device."""
    host = torch.arange(24.0)
    for sample in (host[1:].view(-1)[:12].view(3, 4).t(), host.view(4, 6)[1:, ::2], host[:3].expand(2, 3)):
        with simcuda.device():
            moved = operators.same_strides(sample)
            assert "cuda:0" == str(moved.device)
            assert (sample.stride(), sample.tolist()) == (moved.stride(), moved.tolist())


@pytest.mark.slow
def test_an_operator_runs_forward_and_backward(profile: Profile) -> None:
    """Both are cases of their own, with the summary of the same sample; a product needs one kernel."""
    recording = record(Selection(1, ("op/mul/*",)), profile, say=str)
    forward, backward = recording.cases["op/mul/0"], recording.cases["op/mul/0/backward"]
    assert forward["digest"] == backward["digest"]
    assert 1 == forward["counts"]["launches"]
    # The gradient of each factor is the other times what came from outside.
    assert 2 == backward["counts"]["launches"]


def test_every_optimizer_is_a_case() -> None:
    """Each class of torch.optim steps by default, and in each way that its constructor has a word for."""
    ids = {case.id for case in operators.optimizer_cases()}
    kinds = [
        kind
        for kind in vars(torch.optim).values()
        if inspect.isclass(kind) and kind is not torch.optim.Optimizer
    ]
    assert {f"optimizer/{kind.__name__}/default" for kind in kinds} <= ids
    ways = {"default", "loop", "foreach", "fused", "capturable"}
    assert {f"optimizer/Adam/{way}" for way in ways} <= ids
    assert "optimizer/LBFGS/fused" not in ids


WAITS = {
    # One per value that is read.
    "values-read-one-by-one": 12,
    "values-read-together": 1,
    # NaN and infinity for each weight and bias of three layers.
    "check-of-every-parameter": 2 * 2 * 3,
    "check-of-all-parameters": 1,
    "mlp-training-step": 0,
    # The scaler asks once whether it may step.
    "mixed-precision-step": 1,
    # One action list at each of six steps.
    "recurrent-policy": 6,
    # Four tensors of two layers there, and four back.
    "weights-to-host-and-back": 4 + 4,
    "timed-by-events": 1,
}


@pytest.fixture(scope="module")
def composites(profile: Profile) -> dict[str, Any]:
    """How every composite workload ended, by its name."""
    recording = record(Selection(1, ("workload/*",)), profile, say=str)
    return {id_.removeprefix("workload/"): case for id_, case in recording.cases.items()}


@pytest.mark.slow
def test_workloads_run_and_are_known(composites: dict[str, Any]) -> None:
    """More than twenty workloads run on the simulated device, and no operation in them is unknown."""
    assert len(composites) > 20
    assert {"digest", "counts"} == set.union(*(case.keys() - {"approximate"} for case in composites.values()))


@pytest.mark.slow
@pytest.mark.parametrize("name", WAITS)
def test_workloads_wait_as_often_as_they_ask(composites: dict[str, Any], name: str) -> None:
    """The host waits once for each value or tensor that a workload brings over."""
    counts = composites[name]["counts"]
    kinds = ("stream_syncs", "event_syncs", "device_syncs")
    assert WAITS[name] == sum(counts.get(kind, 0) for kind in kinds)
