"""The condition language: what it has, three-valued evaluation, and what it refuses."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from packaging.version import Version

from solver.conditions import Unknown, evaluator, lift, merge
from solver.errors import ConditionError
from solver.grammar import fold_release, parse
from solver.nodes import names_in, walk

TABLES: dict[str, Any] = {"archs": ["A", "B"], "sizes": {"A": 4}}


class Values:
    """A state made of a dictionary `flag.x` -> value."""

    def __init__(self, **values: Any) -> None:
        self.values = values

    def get(self, space: str, name: str) -> Any:
        return self.values.get(f"{space}_{name}")


def value(text: str, **values: Any) -> Any:
    return evaluator(parse(text), TABLES)(Values(**values))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("flag.tp == 8", True),
        ("flag.tp is set and flag.pp is unset", True),
        ("not flag.tp is set", False),
        ("1 < flag.tp <= 8", True),
        ("flag.tp // 3", 2),
        ("-flag.tp + 2**3", 0),
        ("flag.tp % 3 == 2", True),
        ("flag.name in @archs", True),
        ('flag.name in ["C"]', False),
        ('"b" in lower(flag.name)', True),
        ("@sizes[flag.other]", 4),
        ("@sizes[flag.name] is unset", True),
        ('any(startswith(x, "B") for x in @archs)', True),
        ("all(x == flag.name for x in @archs)", False),
        ('min(flag.tp, 4) if flag.name == "B" else 0', 4),
        ("max(1, 2) + abs(0 - 3) + len(@archs) + ceil(1.2) + int(2.9) + round(2.4)", 2 + 3 + 2 + 2 + 2 + 2),
        ("true and not false and null is unset", True),
    ],
)
def test_says_what_python_would(text: str, expected: Any) -> None:
    assert value(text, flag_tp=8, flag_name="B", flag_other="A") == expected


def test_null_is_a_value_and_not_an_error() -> None:
    assert value("flag.tp < 3") is False
    assert value("flag.tp + 1") is None
    assert value("flag.tp in [1]") is False
    assert value("flag.tp not in [1]") is True


def test_unknown_is_decided_by_what_is_known() -> None:
    unknown = Unknown(("model.x",))
    assert value("model.x == 1 or flag.tp == 8", model_x=unknown, flag_tp=8) is True
    assert value("model.x == 1 and flag.tp == 7", model_x=unknown, flag_tp=8) is False
    open_value = value("model.x == 1 and flag.tp == 8", model_x=unknown, flag_tp=8)
    assert isinstance(open_value, Unknown)
    assert open_value.names == ("model.x",)


def test_a_small_domain_decides_where_every_value_agrees() -> None:
    sm = Unknown(("hardware.sm",), (100, 103))
    assert value("hardware.sm >= 100", hardware_sm=sm) is True
    assert value("hardware.sm == 90", hardware_sm=sm) is False
    assert value("1 if hardware.sm == 100 else 2", hardware_sm=sm).values == (1, 2)


def test_kleene_tables_hold() -> None:
    """Every and/or of three values equals the merge over what the unknown one could be."""
    cases: list[Any] = [True, False, Unknown(("flag.a",), (True, False))]
    for left, right in itertools.product(cases, cases):
        for word, function in (("and", lambda a, b: a and b), ("or", lambda a, b: a or b)):
            got = value(f"flag.a {word} flag.b", flag_a=left, flag_b=right)
            want = lift(function, left, right)
            assert got == want or (isinstance(got, Unknown) and isinstance(want, Unknown))


def test_merge_keeps_true_and_one_apart() -> None:
    merged = merge([True, 1], ("x",))
    assert isinstance(merged, Unknown)
    assert merged.values == (True, 1)


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os')", "flag.a.b", "x", "flag.a is None", "lambda: 1", "flag['a']()", "[x for x in @archs]",
        "open('f')", "flag.a; 1", "f'{flag.a}'", "flag.a if", "any(x for x in @a for y in @b)", "other.name == 1",
    ],
)  # fmt: skip
def test_anything_else_is_refused_and_named(text: str) -> None:
    with pytest.raises(ConditionError):
        parse(text)


def test_releases_are_compared_as_versions_and_folded_away() -> None:
    node = parse('release >= "0.5.9" and release < "0.5.11"')
    folded = fold_release(node, Version, "0.5.10.post1")
    assert evaluator(folded, {})(Values()) is True
    assert all(n[0] != "release" for n in walk(folded))
    assert evaluator(fold_release(node, Version, "0.5.11"), {})(Values()) is False


def test_names_are_found_everywhere_but_in_literals() -> None:
    node = parse('any(x == model.a for x in @archs) and flag.b in ["flag.c", "@d"] or (flag.e + 1) > 2')
    assert names_in(node) == (("model", "a"), ("flag", "b"), ("flag", "e"))


@pytest.mark.parametrize(
    ("text", "given", "expected"),
    [
        ("json_kind(flag.x)", '{"a": 1}', "object"),
        ("json_kind(flag.x)", "{a: 1}", "broken"),
        ("json_kind(flag.x)", {"a": 1}, "object"),
        ("json_kind(flag.x)", '"text"', "text"),
        ("json_kind(flag.x)", "true", "flag"),
        ("json_kind(flag.x)", None, None),
        ('json_kind(flag.x, "a")', '{"a": []}', "list"),
        ('json_kind(flag.x, "b")', '{"a": []}', "absent"),
        ('json_kind(flag.x, "b")', "[1]", "absent"),
        ("json_keys(flag.x)", '{"a": 1, "b": 2}', ["a", "b"]),
        ("json_keys(flag.x)", "[1]", None),
        ("number(flag.x)", "1e3", 1000.0),
        ("number(flag.x)", "ten", None),
        ("len(distinct(flag.x))", ["custom", "1", "1.0"], 2),
    ],
)
def test_what_a_text_says_can_be_asked(text: str, given: Any, expected: Any) -> None:
    assert value(text, flag_x=given) == expected
