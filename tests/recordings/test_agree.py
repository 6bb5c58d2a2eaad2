"""Comparing: what differs from a recording is found, named and weighed."""

from __future__ import annotations

import json
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from simcuda import agree
from simcuda.recording.comparison import NotCompared, RecordingAgreement, compare
from simcuda.recording.recorder import Recording, write_recording

pytestmark = pytest.mark.slow


CASE = "rule/read-one-value"
"""It costs one wait and one copy, and no launch."""


def doctored(recording: Recording, case: str = CASE, **counts: int) -> Recording:
    """The recording with other counts in one case."""
    cases = deepcopy(recording.cases)
    cases[case]["counts"].update(counts)
    return replace(recording, cases=cases)


def with_case(recording: Recording, id_: str, case: dict[str, Any] | None) -> Recording:
    """The recording with another case under an id, or with none."""
    cases = {**recording.cases, id_: case}
    return replace(recording, cases={name: one for name, one in cases.items() if one is not None})


def of_all(recording: Recording) -> Recording:
    """The recording as if it had been asked for all cases."""
    return replace(recording, selection=replace(recording.selection, only=()))


def of_version(recording: Recording, torch: str) -> Recording:
    """The recording as if made with another version of torch."""
    return replace(recording, environment={**recording.environment, "torch": torch})


def shares(found: RecordingAgreement) -> dict[str, tuple[int, int]]:
    """Agreeing and compared cases, by metric."""
    return {tally.metric: (tally.agreed, tally.compared) for tally in found.metrics}


def test_the_simulation_agrees_with_itself(small: Recording, again: Recording) -> None:
    """Every case of a recording that the simulation made agrees in everything."""
    found = compare(small, again)
    whole = (len(small.cases), len(small.cases))
    assert set(shares(found).values()) == {whole}
    assert () == found.disagreements + found.explained + found.not_comparable + found.not_recorded
    assert not found.falls_short


@pytest.mark.parametrize(
    ("counts", "metric", "recorded", "simulated"),
    [
        ({"stream_syncs": 2}, "syncs", "stream_syncs 2", "stream_syncs 1"),
        ({"event_syncs": 1}, "syncs", "event_syncs 1", "event_syncs 0"),
        ({"d2h_bytes": 8}, "copies", "d2h_bytes 8", "d2h_bytes 4"),
        ({"launches": 1}, "launches", "launches 1", "launches 0"),
        ({"implicit_syncs": 3}, "implicit_syncs", "implicit_syncs 3", "implicit_syncs 0"),
    ],
)
def test_another_count_is_found(
    small: Recording, counts: dict[str, int], metric: str, recorded: str, simulated: str
) -> None:
    """One count that differs is one disagreement, of its metric, with both values; other metrics agree."""
    found = compare(doctored(small, CASE, **counts), small)
    (only,) = found.disagreements
    assert (CASE, metric, recorded, simulated) == (only.case, only.metric, only.recorded, only.simulated)
    number = len(small.cases)
    expected = {name: (number - (name == metric), number) for name in shares(found)}
    assert expected == shares(found)


def test_a_peak_may_be_off_by_one_percent(small: Recording) -> None:
    """A requested peak agrees within the tolerance and no further."""
    simulated = doctored(small, peak_bytes=10_000)
    within, beyond = (doctored(small, peak_bytes=peak) for peak in (10_101, 10_500))
    # The simulation is off by 101 of 10101, which is 1 percent, and by 500 of 10500, which is 4.8.
    assert () == compare(within, simulated).disagreements
    assert ["peak_bytes"] == [each.metric for each in compare(beyond, simulated).disagreements]
    assert () == compare(beyond, simulated, tolerance=0.05).disagreements


def test_operations_that_the_simulation_is_not_sure_of_are_named(small: Recording) -> None:
    """A disagreement says which operations of the case are only modelled."""
    (approximate,) = [id_ for id_ in small.cases if id_ == "rule/bincount"]
    (found,) = compare(doctored(small, approximate, launches=99), small).disagreements
    assert ("aten.bincount.default",) == found.unsure


def test_another_ending_agrees_in_nothing(small: Recording) -> None:
    """Where one side ended with an error and the other did not, no metric of the case agrees."""
    failed = with_case(small, CASE, {**small.cases[CASE], "error": "RuntimeError: no"})
    del failed.cases[CASE]["counts"]
    found = compare(failed, small)
    (only,) = found.disagreements
    assert ("ending", "RuntimeError", "counted") == (only.metric, only.recorded, only.simulated)
    assert {(len(small.cases) - 1, len(small.cases))} == set(shares(found).values())


def test_errors_agree_by_their_type(small: Recording) -> None:
    """The words of an error may differ, its type may not."""
    one, other, third = (
        with_case(small, CASE, {"digest": "0", "error": text})
        for text in ("ValueError: a", "ValueError: b", "TypeError")
    )
    assert () == compare(one, other).disagreements
    assert ["ending"] == [each.metric for each in compare(one, third).disagreements]


def test_a_case_that_is_missing_is_named(small: Recording) -> None:
    """A case that the recording lacks is listed and not tallied."""
    found = compare(with_case(small, CASE, None), small)
    assert (NotCompared(CASE, "not in the recording"),) == found.not_recorded
    assert len(small.cases) - 1 == found.compared


@pytest.mark.parametrize("ended", ["lost", "not_run"])
def test_a_case_without_a_result_is_named(small: Recording, ended: str) -> None:
    """A case that was lost or did not run when it was recorded is listed with the reason, and not tallied."""
    found = compare(with_case(small, CASE, {ended: "killed by SIGKILL"}), small)
    assert (NotCompared(CASE, "killed by SIGKILL"),) == found.not_recorded
    assert len(small.cases) - 1 == found.compared


def test_a_case_lost_in_the_simulation_disagrees(small: Recording) -> None:
    """What the device can do and the simulation dies of is a disagreement."""
    found = compare(small, with_case(small, CASE, {"lost": "killed by SIGSEGV"}))
    assert ["lost: killed by SIGSEGV"] == [each.simulated for each in found.disagreements]


def test_an_unknown_case_is_named(small: Recording) -> None:
    """A recorded case that is there no more is listed and not tallied."""
    found = compare(with_case(small, "rule/of-old", small.cases[CASE]), small)
    assert (NotCompared("rule/of-old", "there is no such case any more"),) == found.not_comparable
    assert len(small.cases) == found.compared


def test_a_case_that_has_changed_is_named(small: Recording) -> None:
    """A recorded case that runs something else now is listed and not tallied."""
    found = compare(with_case(small, CASE, {"digest": "other", "counts": {"launches": 7}}), small)
    assert (NotCompared(CASE, "another case has this id now"),) == found.not_comparable
    assert () == found.disagreements


def test_a_recording_of_which_little_is_left_falls_short(small: Recording) -> None:
    """Where more than a tenth of the recorded cases have changed, the rest proves nothing."""
    number = len(small.cases)
    changed = list(small.cases)[: number // 10 + 1]
    old = replace(
        small,
        cases={
            id_: {**case, "digest": "other"} if id_ in changed else case for id_, case in small.cases.items()
        },
    )
    found = compare(old, small)
    assert number - len(changed) == found.compared
    assert found.falls_short


def test_a_suite_that_cannot_be_simulated_here_is_named(small: Recording) -> None:
    """Without numpy the recorded operators are listed as not simulated, and not tallied."""
    recorded = with_case(small, "op/add/0", small.cases[CASE])
    found = compare(recorded, replace(of_all(small), left_out={"operators": "no numpy"}))
    assert (NotCompared("op/add/0", "not simulated: no numpy"),) == found.not_recorded


def test_other_samples_are_explained_by_another_version(small: Recording) -> None:
    """An operator's case that has changed with torch's version is shown apart and not tallied."""
    recorded = with_case(small, "op/add/0", {"digest": "other", "counts": {}})
    simulated = with_case(of_all(small), "op/add/0", {"digest": "digest", "counts": {}})
    found = compare(of_version(recorded, "2.12.1"), of_version(simulated, "2.13.0"))
    (explained,) = found.explained
    why = "the samples of operators are not the same in every version"
    assert ("op/add/0", why) == (explained.case, explained.why)
    assert () == found.not_comparable
    patch_only = compare(of_version(recorded, "2.13.1"), of_version(simulated, "2.13.0"))
    assert ["op/add/0"] == [each.case for each in patch_only.not_comparable]


def test_a_wait_is_not_explained_by_another_version(small: Recording) -> None:
    """Counts that differ stay disagreements, whatever the version, unless a row says otherwise."""
    recorded = of_version(doctored(small, stream_syncs=2), "2.11.0")
    assert [CASE] == [each.case for each in compare(recorded, small).disagreements]


def run(
    recording: Recording, simulated: Recording, folder: Path, monkeypatch: pytest.MonkeyPatch, *options: str
) -> int:
    """The exit code of the command for a recording, where the simulation makes another of it."""
    write_recording(recording, folder / "recording.json.gz")
    monkeypatch.setattr("sys.argv", ["agree", str(folder / "recording.json.gz"), *options])
    monkeypatch.setattr(agree, "record", lambda *_, **__: simulated)
    return agree.main()


def test_the_command_says_who_made_the_recording(
    small: Recording, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The agreement of the simulation with itself is 0, and says loudly what it is worth."""
    assert 0 == run(small, small, tmp_path, monkeypatch)
    printed = capsys.readouterr().out
    assert agree.ITSELF in printed
    assert printed.endswith("\nagrees\n")
    real = replace(small, environment={**small.environment, "made_by": "real", "driver": "580.65"})
    run(real, small, tmp_path, monkeypatch)
    printed = capsys.readouterr().out
    assert agree.ITSELF not in printed
    assert "NVIDIA H200, driver 580.65" in printed


@pytest.mark.parametrize(
    ("change", "allowed"),
    [
        ({"stream_syncs": 9}, 0.01),
        ({"h2d": 9}, 0.01),
        ({"peak_bytes": 10**6}, 0.05),
        ({"launches": 99}, 0.10),
    ],
)
def test_the_exit_code_follows_the_thresholds(
    small: Recording,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    change: dict[str, int],
    allowed: float,
) -> None:
    """As many disagreements as a metric allows are 0, one more is 1, and each is printed by name."""
    most = int(allowed * len(small.cases))
    recording = small
    for id_ in list(small.cases)[:most]:
        recording = doctored(recording, id_, **change)
    assert 0 == run(recording, small, tmp_path, monkeypatch)
    one_more = list(small.cases)[most]
    recording = doctored(recording, one_more, **change)
    assert 1 == run(recording, small, tmp_path, monkeypatch)
    printed = capsys.readouterr().out
    assert f"disagreements ({most + 1}):" in printed
    assert one_more in printed
    assert printed.endswith("\nfalls short\n")


def test_the_command_prints_json(
    small: Recording, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every part of the agreement is in the JSON."""
    # Two of about a hundred cases: more than the hundredth that may differ.
    other = doctored(doctored(small, stream_syncs=2), "rule/roll", stream_syncs=2)
    recording = with_case(other, "rule/of-old", {"digest": "0", "counts": {}})
    assert 1 == run(recording, small, tmp_path, monkeypatch, "--format", "json")
    printed = json.loads(capsys.readouterr().out)
    data = printed["data"]
    assert (1, "agreement") == (printed["schema_version"], printed["kind"])
    assert ("simulated", True) == (data["made_by"], data["falls_short"])
    assert {"metric": "syncs", "agreed": data["compared"] - 2, "compared": data["compared"]}.items() <= data[
        "metrics"
    ][0].items()
    assert {CASE, "rule/roll"} == {each["case"] for each in data["disagreements"]}
    assert ["rule/of-old"] == [each["case"] for each in data["not_comparable"]]


def test_what_is_no_recording_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file that is none, or not there, ends with 2 and its name."""
    (tmp_path / "other.json").write_text("{}")
    for name in ("other.json", "nowhere.json"):
        monkeypatch.setattr("sys.argv", ["agree", str(tmp_path / name)])
        assert 2 == agree.main()
        assert name in capsys.readouterr().err


@pytest.mark.parametrize("tolerance", ["-1", "5%", "2", "nan"])
def test_a_tolerance_that_is_no_share_is_refused(
    tolerance: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A tolerance by which nothing, or anything, would agree is not taken."""
    monkeypatch.setattr("sys.argv", ["agree", "x.json", f"--tolerance={tolerance}"])
    with pytest.raises(SystemExit, match="2"):
        agree.main()
    assert f"a share from 0 to 1 is needed, such as 0.01, not {tolerance}" in capsys.readouterr().err


def test_a_part_of_a_recording_can_be_compared(small: Recording) -> None:
    """With a pattern only the cases that match it run and are compared, on the profile of the recording."""
    found = agree.agreement(small, ("rule/nonzero*", "op/add/0"))
    names = [id_ for id_ in small.cases if id_.startswith("rule/nonzero")]
    assert len(names) == found.compared > 0
    assert () == found.not_recorded
