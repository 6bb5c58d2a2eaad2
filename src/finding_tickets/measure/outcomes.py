"""Keep and compare what programs leave behind: what they printed, and what their variables hold at the end.

Both variants begin with the same seeds. What differs between two runs of the code as found is not compared.
"""

from __future__ import annotations

import os
import random
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import torch

from finding_tickets.claims.check import named_at
from finding_tickets.measure.results import load_result, save_result
from finding_tickets.measure.tasks import KEPT, CannotMeasureError, belongs_to, own_folder

SEED = 0
OUTPUT = "output"
RESULT = "result"
MOST_ELEMENTS = 1 << 16
"""Of a tensor with more, an evenly spaced sample is kept."""
MOST_SHOWN = 3
TOLERANCES = {
    torch.float16: (1e-3, 1e-5),
    torch.bfloat16: (1.6e-2, 1e-5),
    torch.float32: (1.3e-6, 1e-5),
    torch.complex64: (1.3e-6, 1e-5),
    torch.float64: (1e-7, 1e-7),
    torch.complex128: (1e-7, 1e-7),
}
"""Relative and absolute ones, as ``torch.testing.assert_close`` has them by default."""
EXACT = (0.0, 0.0)
PRINTED = 1e-5
"""The relative tolerance of printed numbers with a fraction, beside one in the last digit."""
_NUMBER = re.compile(r"((?:(?<![\w.])-)?\d+(?:\.\d+)?(?:e[-+]?\d+)?)")


def seed_everything() -> None:
    """Seed the random numbers of Python, torch, and numpy if it is loaded."""
    random.seed(SEED)
    torch.manual_seed(SEED)
    if numpy := sys.modules.get("numpy"):
        numpy.random.seed(SEED)


@contextmanager
def keeping_outcome(name: str, root: Path) -> Iterator[None]:
    """Seed a program of the repository that runs in the block, and save its outcome under a name."""
    if not name:
        yield
        return
    seed_everything()
    variables: dict[str, Any] = {}
    with tempfile.TemporaryFile() as printed:
        with _standard_output_to(printed.fileno()), _noting_variables(variables, root):
            yield
        printed.seek(0)
        lines = printed.read().decode(errors="replace").splitlines()
    save_outcome(name, variables, {OUTPUT: lines} if lines else {})


def save_outcome(
    name: str,
    values: Mapping[str, Any],
    more: Mapping[str, Any] | None = None,
) -> None:
    """Save what can be compared of values, and ``more`` as it is, under a name below ``KEPT``."""
    outcome = dict(more or {})
    for variable, value in values.items():
        kept = comparable(value)
        if kept is not None:
            outcome[variable] = kept
    save_result(own_folder() / KEPT / name, outcome)


@contextmanager
def _standard_output_to(file: int) -> Iterator[None]:
    sys.stdout.flush()
    own = os.dup(1)
    os.dup2(file, 1)
    try:
        yield
    finally:
        sys.stdout.flush()
        os.dup2(own, 1)
        os.close(own)


@contextmanager
def _noting_variables(found: dict[str, Any], root: Path) -> Iterator[None]:
    """Note what the program's global variables hold at its end, and those of functions that it calls itself.

    Most programs do their work in a function ``main``. Functions of libraries are left out.
    """

    def follow(frame: FrameType, event: str, _: object) -> Any:
        if event == "return":
            prefix = "" if frame.f_code.co_name == "<module>" else f"{frame.f_code.co_name}."
            for name, value in frame.f_locals.items():
                if not name.startswith("_"):
                    found[f"{prefix}{name}"] = value
            return None
        name = frame.f_code.co_name
        caller = frame if name == "<module>" else frame.f_back
        is_inner = name.startswith("<") and caller is not frame
        if caller is None or caller.f_code.co_name != "<module>" or is_inner:
            return None
        is_program = caller.f_globals.get("__name__") == "__main__"
        if not is_program or not belongs_to(root, Path(frame.f_code.co_filename)):
            return None
        frame.f_trace_lines = False
        return follow

    previous = sys.gettrace()
    sys.settrace(follow)
    try:
        yield
    finally:
        sys.settrace(previous)


def comparable(value: Any) -> Any:
    """Return tensors on the host and numbers, also those in modules, optimizers, lists and dictionaries.

    None stands for a value that has nothing of that.
    """
    if isinstance(value, torch.nn.Module | torch.optim.Optimizer):
        return comparable(dict(value.state_dict()))
    if isinstance(value, torch.Tensor):
        return _on_host(value.detach())
    if isinstance(value, bool | int | float | complex):
        return value
    if isinstance(value, list | tuple):
        items = [comparable(each) for each in value]
        return items if items and all(each is not None for each in items) else None
    if isinstance(value, Mapping):
        parts = {key: comparable(each) for key, each in value.items() if isinstance(key, str | int)}
        return {key: each for key, each in parts.items() if each is not None} or None
    return None


def _on_host(tensor: torch.Tensor) -> Any:
    is_plain = type(tensor) is torch.Tensor and tensor.layout is torch.strided
    if not is_plain or tensor.is_nested or tensor.is_meta:
        return None
    if tensor.numel() <= MOST_ELEMENTS:
        return tensor.cpu()
    sample = tensor.flatten()[:: tensor.numel() // MOST_ELEMENTS]
    return {"shape": list(tensor.shape), "sample": sample.cpu()}


def compare_outcomes(payload: dict[str, Any]) -> list[dict[str, Any]]:
    """Compare the outcomes that runs have saved: return what each ``ResultCheck`` holds.

    ``payload`` has the ``checks`` as far as they are known, each with the files of the outcomes below this
    worker's ``KEPT``, the expected one first; or with none, if a variant raised. It has the files of two runs
    of the code as found, if there are two, under ``twice``, and the names that are ``accepted`` to differ.

    Raises:
        CannotMeasureError: An outcome is missing, or is not as it was saved.
    """
    varying: set[str] = set()
    if payload["twice"]:
        varying = {*differences(*_load(payload["twice"], "found"), exactly=True)}
    for check, files in payload["checks"]:
        if not files:
            continue
        expected, actual = _load(files, named_at(check["variant"], check["at"]))
        found = differences(expected, actual)
        left_out = {
            name for name in found if name in varying or name.partition(",")[0] in payload["accepted"]
        }
        said = [found[name] for name in found if name not in left_out]
        more = f"; and {len(said) - MOST_SHOWN} more" if len(said) > MOST_SHOWN else ""
        check["difference"] = "; ".join(said[:MOST_SHOWN]) + more or None
        check["left_out"] = sorted(left_out)
        check["skipped"] = not expected.keys() - left_out
    return [check for check, _ in payload["checks"]]


def _load(files: list[str], who: str) -> list[dict[str, Any]]:
    try:
        return [load_result(own_folder() / KEPT / file) for file in files]
    except Exception as failure:  # a forged file may raise anything
        why = f"what it left cannot be read: {type(failure).__name__}"
        raise CannotMeasureError(f"{who}: {why}") from None


def differences(
    expected: dict[str, Any],
    actual: dict[str, Any],
    *,
    exactly: bool = False,
) -> dict[str, str]:
    """Return what differs between two outcomes, by name, with the first value that does.

    A variable that has another name, and the same value, does not differ. Functions may have other variables.
    """
    found: dict[str, str] = {}
    new = [value for name, value in actual.items() if name not in expected]
    for name, value in expected.items():
        if name == OUTPUT:
            continue
        if name in actual:
            text = _difference(
                value,
                actual[name],
                name,
                exactly=exactly,
            )
        else:
            is_renamed = "." in name or any(_difference(value, other, name) is None for other in new)
            text = None if is_renamed else f"{name}: missing"
        if text:
            found[name] = text
    printed = _printed_differences(expected.get(OUTPUT, []), actual.get(OUTPUT, []), exactly=exactly)
    return found | printed


def _difference(
    expected: Any,
    actual: Any,
    path: str,
    *,
    exactly: bool = False,
) -> str | None:
    """Return the first place where two values differ, in words; None if they are close enough."""
    one = _as_tensor(expected)
    other = _as_tensor(actual)
    if one is not None and other is not None:
        return _tensor_difference(one, other, path, exactly=exactly)
    parts, others = (dict(enumerate(v)) if isinstance(v, list) else v for v in (expected, actual))
    if not isinstance(parts, dict) or not isinstance(others, dict):
        return f"{path}: {type(actual).__name__} instead of {type(expected).__name__}"
    if len(parts) != len(others):
        return f"{path}: {len(others)} items instead of {len(parts)}"
    for key, value in parts.items():
        if key not in others:
            return f"{path}[{key!r}]: missing"
        if text := _difference(value, others[key], f"{path}[{key!r}]", exactly=exactly):
            return text
    return None


def _as_tensor(value: Any) -> torch.Tensor | None:
    """Return a number, or a list of numbers or of tensors of one shape, as a tensor; None for anything else.

    A fix that reads less keeps tensors where numbers were.
    """
    if isinstance(value, torch.Tensor):
        return value
    if isinstance(value, list) and value and all(isinstance(each, torch.Tensor) for each in value):
        return torch.stack(value) if len({(each.shape, each.dtype) for each in value}) == 1 else None
    try:
        return None if isinstance(value, dict) else torch.tensor(value)
    except (TypeError, ValueError, RuntimeError, OverflowError):
        return None


def _tensor_difference(
    expected: torch.Tensor,
    actual: torch.Tensor,
    path: str,
    *,
    exactly: bool,
) -> str | None:
    if expected.shape != actual.shape:
        return f"{path}: shape {tuple(actual.shape)} instead of {tuple(expected.shape)}"
    relative, absolute = max(TOLERANCES.get(each.dtype, EXACT) for each in (expected, actual))
    if exactly:
        relative, absolute = EXACT
    wide = torch.complex128 if expected.is_complex() or actual.is_complex() else torch.float64
    one = expected.to(wide)
    other = actual.to(wide)
    wrong = ~torch.isclose(
        other,
        one,
        rtol=relative,
        atol=absolute,
        equal_nan=True,
    )
    if not wrong.any():
        return None
    place = tuple(wrong.nonzero()[0].tolist())
    values = f"{actual[place].item()!r} instead of {expected[place].item()!r}"
    if not place:
        return f"{path}: {values}"
    return f"{path}: {int(wrong.sum())} of {wrong.numel()} elements differ, the first at {place}: {values}"


def _printed_differences(
    expected: list[str],
    actual: list[str],
    *,
    exactly: bool,
) -> dict[str, str]:
    """Return the printed lines that differ, each under a name of its own if there are as many as before."""
    if len(expected) != len(actual):
        number = next(
            (at for at, pair in enumerate(zip(expected, actual, strict=False)) if not _is_same_line(*pair)),
            min(len(expected), len(actual)),
        )
        shown = [repr(lines[number]) if number < len(lines) else "nothing" for lines in (actual, expected)]
        lengths = f"{len(actual)} instead of {len(expected)} lines"
        return {OUTPUT: f"{OUTPUT}: {lengths}, first {shown[0]} instead of {shown[1]} at line {number + 1}"}
    found = {}
    for number, (one, other) in enumerate(zip(expected, actual, strict=True), 1):
        if one != other if exactly else not _is_same_line(one, other):
            name = f"{OUTPUT}, line {number}"
            found[name] = f"{name}: {other!r} instead of {one!r}"
    return found


def _is_same_line(expected: str, actual: str) -> bool:
    """Return True if two lines have the same words, and numbers that are close enough."""
    parts = _NUMBER.split(expected)
    others = _NUMBER.split(actual)
    if len(parts) != len(others):
        return False
    return all(map(_is_same_part, parts, others))


def _is_same_part(expected: str, actual: str) -> bool:
    if expected == actual:
        return True
    is_number = _NUMBER.fullmatch(expected) and _NUMBER.fullmatch(actual)
    if not is_number or not re.search("[.e]", expected):
        return False
    digits = expected.partition("e")[0].partition(".")[2]
    unit = 10.0 ** -len(digits) if "e" not in expected else 0.0
    one = float(expected)
    other = float(actual)
    return abs(other - one) <= PRINTED * abs(one) + 1.01 * unit
