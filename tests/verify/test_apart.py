"""Fixes that do none of the work: each takes the answer from somewhere, or returns what judges itself."""

from __future__ import annotations

import pytest
from tests.conftest import Repository
from tests.verify.conftest import FIX, FOUND, PASTED, add, add_with_few_points, verify_all

from finding_tickets.errors import BadDataError
from finding_tickets.measure.processes.isolation import Isolation
from finding_tickets.model.vocabulary import Verdict
from finding_tickets.verify.plan import plan

# No claim about the fix but that it does the same, at no wait.
CLAIMS = "claims: {found: {syncs: tensors}, fix: {syncs: 0, same_result_as: found}}"
# Both variants call it: the branch changes what both call.
SHARED = """
import gc

answers = []


class Answer(float):
    pass


def total(tensors):
    answers.append(Answer(sum(tensor.sum().item() for tensor in tensors)))
    return float(answers[-1])
"""
FOUND_SHARED = "from shared import total\n\n\ndef check(tensors):\n    return total(tensors)\n"
FIXES = {
    # In one process, the last entry would be what found has just returned for the same arguments.
    "A-1": """
import shared


def check(tensors):
    return float(shared.answers[-1]) if shared.answers else 0.0
""",
    "A-2": """
import gc


def check(tensors):
    known = [each for each in gc.get_objects() if type(each).__name__ == "Answer"]
    import shared
    known += shared.answers
    return float(known[-1]) if known else 0.0
""",
    "A-3": """
import fixes.a_3.found as found

kept = []
before = found.check


def wrapped(tensors):
    kept.append(before(tensors))
    return kept[-1]


found.check = wrapped


def check(tensors):
    return kept[-1] if kept else 0.0
""",
    # Waits until found has left something on the disk.
    "A-4": """
import tempfile
import time
from pathlib import Path


def check(tensors):
    own = Path(tempfile.gettempdir())
    end = time.monotonic() + 0.05
    while time.monotonic() < end:
        for folder in own.parents:
            try:
                left = [file for file in folder.glob("*/kept/*") if not file.is_relative_to(own.parent)]
                left += list(folder.glob("results-*/*/*/*"))
                if left:
                    import torch
                    return torch.load(left[-1])
            except OSError:
                pass
    return 0.0
""",
    # What it leaves is a link to what another variant left.
    "A-5": """
import os
from pathlib import Path


def check(tensors):
    kept = Path(os.environ["TICKETS_WORKER"]) / "kept"
    for place in range(6):
        for other in kept.parent.parent.glob("*/kept/*.pt"):
            try:
                (kept / f"{place}.pt").symlink_to(other)
            except OSError:
                pass
    return 0.0
""",
}
# Results that say of themselves that they equal everything, and other ways to be compared by oneself.
RESULTS = {
    "B-1": """
import torch


class Equal(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        if function in (torch.Tensor.__eq__, torch.Tensor.eq, torch.eq):
            return torch.ones((), dtype=torch.bool)
        return super().__torch_function__(function, types, args, kwargs or {})


def check(tensors):
    return torch.Tensor._make_subclass(Equal, torch.zeros(()))
""",
    "B-2": """
class Equal(float):
    __eq__ = lambda self, other: True
    __ne__ = lambda self, other: False
    __hash__ = float.__hash__
    __class__ = float


def check(tensors):
    return Equal(0.0)
""",
    "B-3": """
class Equal(list):
    __eq__ = lambda self, other: True
    __len__ = lambda self: 1


def check(tensors):
    return Equal([0.0])
""",
    "B-4": """
from dataclasses import dataclass


@dataclass
class Sum:
    value: float

    def __eq__(self, other):
        return True


def check(tensors):
    return Sum(0.0)
""",
}
FOUND_OF = {
    "B-1": FOUND.replace("return total", "import torch\n    return torch.tensor(total)"),
    "B-2": FOUND,
    "B-3": FOUND.replace("return total", "return [total]"),
    "B-4": RESULTS["B-4"].replace("Sum(0.0)", "Sum(sum(tensor.sum().item() for tensor in tensors))"),
}
# It does what found does, by its source and where the meter may not look; that costs what found costs.
COPIED = """
import threading
from pathlib import Path

source = Path(__file__).with_name("found.py").read_text()


def check(tensors):
    scope, done = {}, []
    exec(source, scope)
    thread = threading.Thread(target=lambda: done.append(scope["check"](tensors)))
    thread.start()
    thread.join()
    return done[0]
"""


@pytest.mark.slow
def test_no_answer_of_another_variant_and_no_result_that_judges_itself_passes(
    repository: Repository, isolation: Isolation
) -> None:
    """A fix that does no work has another result, or none that is plain."""
    repository.write("shared.py", SHARED)
    for ticket, fix in FIXES.items():
        add_with_few_points(repository, ticket, CLAIMS, found=FOUND_SHARED, fix=fix)
    for ticket, fix in RESULTS.items():
        add_with_few_points(repository, ticket, CLAIMS, found=FOUND_OF[ticket], fix=fix)
    add_with_few_points(repository, "C-1", CLAIMS, fix=COPIED)
    done = {name: each.verification for name, each in verify_all(repository, isolation).items()}
    assert {*FIXES, *RESULTS, "C-1"} == set(done)
    for name, verification in done.items():
        assert verification is not None
        # A link in the place of a result is nothing that can be read.
        assert verification.verdict in {Verdict.FAILED, Verdict.INCONCLUSIVE}, (name, verification.reason)
        false = {claim.metric for claim in verification.claims if claim.holds is False}
        if verification.verdict is Verdict.FAILED:
            # Two tensors wait twice, wherever that happens.
            assert ({"syncs"} if name == "C-1" else {"same_result_as"}) == false, name


def test_a_variant_is_not_compared_with_itself(repository: Repository) -> None:
    """That would hold whatever it returns."""
    add(repository, "A-1", CLAIMS.replace("same_result_as: found", "same_result_as: fix"))
    (document,) = repository.load().documents
    with pytest.raises(BadDataError, match=r"compares fix with itself") as caught:
        plan(document, repository.root)
    assert caught.value.line


def test_what_a_fix_does_to_its_arguments_is_compared(repository: Repository, isolation: Isolation) -> None:
    """Variants may change them as the code as found does, and in no other way."""
    changes = {
        "A-1": ("tensors[0].fill_(7)", "argument[0][0] after the run: 7 of 7 elements differ"),
        "A-2": ("tensors[0].grad = tensors[0] * 2", "argument[0][0].grad: new after the run"),
        "A-3": ("del tensors[0]", "argument[0][0]: missing after the run"),
    }
    for ticket, (change, _) in changes.items():
        fix = FIX.replace("    return", "    result =") + f"    {change}\n    return result\n"
        add_with_few_points(repository, ticket, fix=fix)
    done = verify_all(repository, isolation)
    for ticket, (_, difference) in changes.items():
        verification = done[ticket].verification
        assert verification is not None
        assert Verdict.FAILED is verification.verdict
        # The first point has one tensor of 7 elements.
        assert difference in str(verification.claims[-1].counterexamples[0])


@pytest.mark.slow
def test_results_that_show_nothing_are_named(repository: Repository, isolation: Isolation) -> None:
    """Equal they are, and so would be those of code that does nothing."""
    claims = "claims: {found: {syncs: tensors}, fix: {syncs: 1, same_result_as: found}}"
    for ticket, result in [("A-1", "None"), ("A-2", "[]"), ("A-3", "float('nan')")]:
        add_with_few_points(
            repository,
            ticket,
            claims,
            found=FOUND.replace("return total", f"return {result}"),
            fix=FIX.replace("return ", "_ = ") + f"    return {result}\n",
        )
    done = verify_all(repository, isolation)
    said = {}
    for name, each in done.items():
        assert each.verification is not None
        assert Verdict.VERIFIED is each.verification.verdict
        said[name] = each.verification.claims[-1].measured
    words = "equal at 2 of 2 points, which shows nothing: every result is "
    assert {"A-1": f"{words}None", "A-2": f"{words}empty", "A-3": f"{words}NaN"} == said


@pytest.mark.slow
def test_a_seed_of_the_command_takes_the_place_of_the_workloads(
    repository: Repository, isolation: Isolation
) -> None:
    """A table of the answers for the workload's seed has none for another one; nothing is recorded."""
    claims = CLAIMS.replace("same_result_as: found", "same_result_as: {is: found, tolerance: 0.001}")
    add(repository, "A-1", claims, fix=PASTED)
    for seed, verdict in [(None, Verdict.VERIFIED), (7, Verdict.FAILED)]:
        done = verify_all(repository, isolation, seed=seed)["A-1"]
        assert done.verification is not None
        assert (verdict, seed is None) == (done.verification.verdict, done.evidence is not None)
