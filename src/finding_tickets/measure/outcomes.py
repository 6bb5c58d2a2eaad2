"""Keep and compare what programs leave behind: what they printed, and what their variables hold at the end.

Both variants begin with the same seeds. What differs between two runs of the code as found is not compared.
"""

from __future__ import annotations

import math
import os
import random
import re
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from itertools import zip_longest
from pathlib import Path
from types import FrameType, SimpleNamespace
from typing import Any

import torch

from finding_tickets.claims.check import named_at
from finding_tickets.measure.calls import loop_variables
from finding_tickets.measure.results import (
    difference,
    first_wrong,
    load_saved,
    parts_of,
    plain,
    save_result,
)
from finding_tickets.measure.tasks import KEPT, belongs_to, own_folder

SEED = 0
OUTPUT = "output"
# Stands between the name of a printed line and the place of a number in it.
NUMBER = ", number "
SOME_NUMBERS = "some numbers of printed lines"
# The function that is called like a program.
MAIN = "main"
PROGRAM = frozenset({"<module>", MAIN})
RESULT = "result"
# The key of the lines that were printed, which is the name of no variable.
PRINTED = "printed lines"
# Of a tensor with more, an evenly spaced sample is kept.
MOST_ELEMENTS = 1 << 16
# With more values than that, no further objects are looked into.
MOST_VALUES = 10_000
MOST_SHOWN = 3
# Relative and absolute ones, as ``torch.testing.assert_close`` has them by default.
TOLERANCES = {
    torch.float16: (1e-3, 1e-5),
    torch.bfloat16: (1.6e-2, 1e-5),
    torch.float32: (1.3e-6, 1e-5),
    torch.complex64: (1.3e-6, 1e-5),
    torch.float64: (1e-7, 1e-7),
    torch.complex128: (1e-7, 1e-7),
}
EXACT = (0.0, 0.0)
# The relative tolerance of printed numbers with a fraction, beside one in the last digit.
CLOSE = 1e-5
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
    save_outcome(name, _with_attributes(variables, root), lines)


def save_outcome(
    name: str, values: Mapping[str, Any], printed: Sequence[str] = ()
) -> None:
    """Save what can be compared of values, and the printed lines, under a name below ``KEPT``."""
    save_result(
        own_folder() / KEPT / name, {**_comparable_parts(values), PRINTED: [*printed]}
    )


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
    """Note what the program's variables hold at its end, and what functions do that it calls itself.

    The program is the module that runs and its function ``main``, in which most programs do their work. Of
    another function that returns a value, that is noted. Functions of libraries are left out.
    """

    @cache
    def is_own(file: str) -> bool:
        return belongs_to(root, Path(file))

    def is_program(frame: FrameType | None) -> bool:
        if (
            frame is None
            or frame.f_code.co_name not in PROGRAM
            or not is_own(frame.f_code.co_filename)
        ):
            return False
        # A library may call main. It may come from a module that only defines it.
        return frame.f_globals.get("__name__") == "__main__" or is_program(frame.f_back)

    def follow(frame: FrameType, event: str, returned: object) -> Any:
        function, caller = frame.f_code.co_name, frame.f_back
        if event == "return":
            if isinstance(returned, torch.Tensor | float | list | tuple | dict):
                found[f"{function}()"] = returned
                if function != MAIN:
                    return None
            prefix = {"<module>": "", MAIN: f"{MAIN}."}.get(function, f"{function}().")
            # The last value of a loop is no result: a fix may have no loop.
            in_loops = loop_variables(frame.f_code.co_filename)
            for name, value in frame.f_locals.items():
                if not name.startswith("_") and name not in in_loops:
                    found[f"{prefix}{name}"] = value
            return None
        # Python asks this about every call of any function.
        if function not in PROGRAM and (
            caller is None or caller.f_code.co_name not in PROGRAM
        ):
            return None
        is_part = (
            is_program(caller)
            and is_own(frame.f_code.co_filename)
            and not function.startswith("<")
        )
        if not is_part and not is_program(frame):
            return None
        frame.f_trace_lines = False
        return follow

    previous = sys.gettrace()
    sys.settrace(follow)
    try:
        yield
    finally:
        sys.settrace(previous)


def _with_attributes(values: Mapping[str, Any], root: Path) -> dict[str, Any]:
    """Add the public attributes of objects whose class the repository defines: ``trainer.total``.

    They may be in a list or a dictionary, in attributes themselves, or modules of torch with attributes.
    """
    todo = [*values.items()]
    seen = set[int]()
    for name, value in todo:
        if id(value) in seen or len(todo) > MOST_VALUES:
            continue
        seen.add(id(value))
        for owner, each in _owners(name, value):
            if not _is_own(each, root):
                continue
            for attribute in [
                *getattr(each, "__dict__", ()),
                *getattr(type(each), "__slots__", ()),
            ]:
                if not attribute.startswith("_"):
                    todo.append(
                        (f"{owner}.{attribute}", getattr(each, attribute, None))
                    )
    return dict(todo)


def _owners(name: str, value: Any) -> list[tuple[str, Any]]:
    """Return a value, or its submodules or items, by name."""
    if isinstance(value, torch.nn.Module):
        return [*value.named_modules(prefix=name)]
    if isinstance(value, list | tuple):
        value = dict(enumerate(value))
    if isinstance(value, Mapping):
        return [(f"{name}[{key!r}]", each) for key, each in value.items()]
    return [(name, value)]


def _is_own(value: Any, root: Path) -> bool:
    """Return True for an object whose class the repository defines, such a class, or a plain namespace."""
    kind = value if isinstance(value, type) else type(value)
    file = getattr(sys.modules.get(kind.__module__), "__file__", None)
    is_in_program = kind.__module__ == "__main__" or issubclass(kind, SimpleNamespace)
    return is_in_program or bool(file and belongs_to(root, Path(file)))


def comparable(value: Any) -> Any:
    """Return tensors on the host and numbers, also those in modules, optimizers, lists and dictionaries.

    None stands for a value that has nothing of that.
    """
    if isinstance(value, torch.nn.Module | torch.optim.Optimizer):
        value = value.state_dict()
    if isinstance(value, torch.Tensor):
        return _on_host(value.detach())
    if isinstance(value, Mapping):
        return _comparable_parts(value) or None
    if isinstance(value, list | tuple):
        parts = _comparable_parts(dict(enumerate(value)))
        return [*parts.values()] if parts and len(parts) == len(value) else None
    return plain(value) if isinstance(value, int | float | complex) else None


def _comparable_parts(values: Mapping[Any, Any]) -> dict[str | int, Any]:
    kept = {
        plain(key): comparable(each)
        for key, each in values.items()
        if isinstance(key, str | int)
    }
    return {key: each for key, each in kept.items() if each is not None}


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
    may_differ = {*payload["accepted"]}
    if payload["twice"]:
        again = differences(
            *load_saved(payload["twice"], "found: what it left"), exactly=True
        )
        may_differ |= {name for name, text in again.items() if text}
    for check, files in payload["checks"]:
        if not files:
            continue
        who = named_at(check["variant"], check["at"])
        compared = differences(*load_saved(files, f"{who}: what it left"))
        found = {name: text for name, text in compared.items() if text}
        left_out = {name for name in found if _is_part(name, may_differ)}
        said = [
            *dict.fromkeys(text for name, text in found.items() if name not in left_out)
        ]
        more = f"; and {len(said) - MOST_SHOWN} more" if len(said) > MOST_SHOWN else ""
        check["difference"] = "; ".join(said[:MOST_SHOWN]) + more or None
        check["left_out"] = sorted(
            {SOME_NUMBERS if NUMBER in name else name for name in left_out}
        )
        check["skipped"] = compared.keys() == left_out
    return [check for check, _ in payload["checks"]]


def _is_part(name: str, of: Iterable[str]) -> bool:
    """Return True for one of these names, for a line of the output, and for an attribute of an object."""
    return any(name == each or name.startswith((f"{each}.", f"{each},")) for each in of)


def differences(
    expected: dict[str, Any],
    actual: dict[str, Any],
    *,
    exactly: bool = False,
) -> dict[str, str | None]:
    """Return by name what differs between two outcomes, with the first value that does; None if nothing does.

    A variable that has another name, and the same value, does not differ. ``main`` and objects may have
    others in the place of those that are gone, and other functions may just lack them.
    """
    found: dict[str, str | None] = {}
    printed = _printed_differences(
        expected.pop(PRINTED), actual.pop(PRINTED), exactly=exactly
    )
    new = {name: value for name, value in actual.items() if name not in expected}
    for name, value in expected.items():
        if name in actual:
            text = difference(value, actual[name], path=name)
            if text and not exactly:
                text = _difference(value, actual[name], name)
        else:
            is_renamed = None in [
                _difference(value, other, name) for other in new.values()
            ]
            owner = name.rpartition(".")[0]
            has_others = owner.endswith("()") or any(
                other.startswith(f"{owner}.") for other in new
            )
            text = None if is_renamed or has_others else f"{name}: missing"
        found[name] = text
    return found | printed


def _difference(expected: Any, actual: Any, path: str) -> str | None:
    """Return the first place where two values differ, in words; None if they are close enough."""
    one, other = _as_tensor(expected), _as_tensor(actual)
    if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
        return _tensor_difference(one, other, path)
    parts, others = parts_of(one), parts_of(other)
    if parts is None or others is None or parts.keys() != others.keys():
        return difference(one, other, path=path)
    for key, value in parts.items():
        if text := _difference(value, others[key], f"{path}[{key!r}]"):
            return text
    return None


def _as_tensor(value: Any) -> Any:
    """Return a number, or a list of numbers or of tensors of one shape, as a tensor; anything else as it is.

    A fix that reads less keeps tensors where numbers were.
    """
    with suppress(TypeError, ValueError, RuntimeError, OverflowError):
        if isinstance(value, list) and isinstance(value[0], torch.Tensor):
            return torch.stack(value)
        return torch.as_tensor(value)
    return value


def _tensor_difference(
    expected: torch.Tensor, actual: torch.Tensor, path: str
) -> str | None:
    if expected.shape != actual.shape:
        return f"{path}: shape {tuple(actual.shape)} instead of {tuple(expected.shape)}"
    relative, absolute = max(
        TOLERANCES.get(each.dtype, EXACT) for each in (expected, actual)
    )
    close = torch.isclose(
        actual.to(torch.complex128),
        expected.to(torch.complex128),
        rtol=relative,
        atol=absolute,
        equal_nan=True,
    )
    if not expected.ndim:
        return (
            None
            if close
            else f"{path}: {actual.item()!r} instead of {expected.item()!r}"
        )
    return first_wrong(~close, expected, actual, path)


def _printed_differences(
    expected: list[str],
    actual: list[str],
    *,
    exactly: bool,
) -> dict[str, str | None]:
    """Return how printed lines differ, by line, and by number of a line that has the same words.

    Lines have names of their own if there are as many as before.
    """
    found: dict[str, str | None] = {}
    lines = zip_longest(map(repr, expected), map(repr, actual), fillvalue="nothing")
    for at, (one, other) in enumerate(lines, 1):
        name, text = f"{OUTPUT}, line {at}", f"{other} instead of {one}"
        if _words(one) != _words(other):
            found[name] = f"{name}: {text}"
            if len(expected) == len(actual):
                continue
            lengths = f"{len(actual)} instead of {len(expected)} lines"
            return {OUTPUT: f"{OUTPUT}: {lengths}, first {text} at line {at}"}
        numbers = _NUMBER.findall(one)
        if not numbers:
            found[name] = None
        for place, (number, now) in enumerate(
            zip(numbers, _NUMBER.findall(other), strict=True), 1
        ):
            is_same = number == now if exactly else _is_same_number(number, now)
            found[f"{name}{NUMBER}{place}"] = None if is_same else f"{name}: {text}"
    return found


def _words(line: str) -> list[str]:
    """Return a line without its numbers, which may be wider or narrower than before."""
    return _NUMBER.sub(" 0 ", line).split()


def _is_same_number(expected: str, actual: str) -> bool:
    if not re.search("[.e]", expected):
        return expected == actual
    digits = expected.partition(".")[2]
    unit = 0.0 if "e" in expected else 10.0 ** -len(digits)
    return math.isclose(
        float(expected),
        float(actual),
        rel_tol=CLOSE,
        abs_tol=1.01 * unit,
    )
