"""Statements are known by function, text and occurrence, whatever the layout around them is."""

from __future__ import annotations

import pytest

from finding_tickets.budget.statements import normal, operations_of, shape_of, statement_at, statements_of

CODE = '''
class Trainer:
    @torch.no_grad()
    def step(self, x,
             y=1):
        """Says what it does."""
        if x.isnan(): return 1
        elif y.item():
            z = x.item(); z = x.item()
        for i in range(
            int(x)
        ):
            z = x.item()  # again
        try:
            print(
                x.item(),
            )
        except ValueError:
            pass
        match x:
            case 1:
                x.cpu()

        def inner():
            return x.tolist()
'''


def test_equal_statements_of_a_function_are_counted() -> None:
    """Two on one line and one in a loop are the first, second and third; the module has none of them."""
    found = [each for each in statements_of(CODE) if each.text == "z = x.item()"]
    assert [("Trainer.step", 1, 9), ("Trainer.step", 2, 9), ("Trainer.step", 3, 13)] == [
        (each.function, each.occurrence, each.first) for each in found
    ]


@pytest.mark.parametrize(
    ("line", "function", "text"),
    [
        (7, "Trainer.step", "if x.isnan():"),
        (8, "Trainer.step", "if y.item():"),
        (11, "Trainer.step", "for i in range(int(x)):"),
        (16, "Trainer.step", "print(x.item())"),
        (14, "Trainer.step", "try:"),
        (20, "Trainer.step", "match x:"),
        (22, "Trainer.step", "x.cpu()"),
        (25, "Trainer.step.inner", "return x.tolist()"),
        (4, "Trainer", "def step(self, x, y=1):"),
    ],
)
def test_a_line_belongs_to_its_innermost_statement(line: int, function: str, text: str) -> None:
    """A head of several lines is one statement, and the body of a block is no part of it."""
    found = statement_at(statements_of(CODE), line)
    assert found is not None
    assert (function, text) == (found.function, found.text)


def test_what_is_no_python_has_no_statements() -> None:
    """Neither a broken file nor one with NUL in it raises."""
    assert () == statements_of("def f(:\n") == statements_of("x = 1\0")


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("print( x.item() ,)  # why", "print(x.item())"),
        ("if x.isnan():", "if x.isnan():"),
        ("if x.isnan()", "if x.isnan():"),
        ("if x.isnan(): return 1", "if x.isnan():"),
        ("elif  y.item() :", "if y.item():"),
        ("for i in range(int(x)):", "for i in range(int(x)):"),
        ("with a as b, c:", "with a as b, c:"),
        ("try:", "try:"),
        ("match x:", "match x:"),
        ("no   python here", "no python here"),
        ("", ""),
    ],
)
def test_a_text_means_the_same_in_any_layout(written: str, meant: str) -> None:
    """People write a statement as it stands in the file, or as they remember it."""
    assert meant == normal(written)


def test_operations_tell_what_a_statement_does() -> None:
    """Names of calls, but for those that any value has, and syntax that waits for a value by itself."""
    assert {"item"} == operations_of("print(loss.item())")
    assert {"if", "isnan"} == operations_of("if loss.isnan():")
    assert {"if", "any"} == operations_of("y = 1 if x.any() else 2")
    assert {"[]"} == operations_of("y = x[mask]")
    assert {"for", "item"} == operations_of("y = [each.item() for each in x]")


def test_a_shape_has_no_names_of_variables() -> None:
    """Nor constants and hints; what is called keeps its name."""
    assert shape_of("total += loss.item()") == shape_of("all_ += value.item()")
    assert shape_of("x: float = log('a', loss.item())") == shape_of("y = log('b', part.item())")
    assert shape_of("print(f'loss {loss.item():.3f}')") == shape_of("print(f'{step.item():.1f} is it')")
    assert shape_of("x = loss.item()") != shape_of("x = loss.tolist()")
