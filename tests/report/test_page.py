"""The tape explorer: what is linked with what, the figures, and that nothing of the user's is read as HTML."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import yota
from tests.report.pages import TEXT, Reader, made
from yota.errors import ArgumentError
from yota.ir.printing import show_op
from yota.package.subject import call_of, subject_of
from yota.tools.report.collect import page, report_of
from yota.tools.report.source_pieces import Report, Row

SHAPES = {"W": "float64[20,30]", "b": "float64[20]", "x": "float64[30]"}


def report(f: Any, args: Any, **options: Any) -> Report:
    call, sizes = call_of(f, args).at_some_size()
    return report_of(subject_of(call, None, sizes), sizes, **options)


def text(row: Row) -> str:
    return "".join(piece.text for piece in row.pieces)


def about(row: Row) -> set[str]:
    return set(row.ops.split())


def named(found: Report, beginning: str) -> str:
    """The variable of the op whose text has ``beginning``."""
    rows = [row for pair in found.tape for row in (pair.primal, *pair.adjoints)]
    (row,) = [row for row in rows if f"= {beginning}(" in text(row)]
    return row.ops


def test_an_op_is_linked_with_its_line_its_rule_and_its_code() -> None:
    found = report(made(TEXT, "layer"), SHAPES)
    tanh = named(found, "tanh")
    (line,) = [row for block in found.sources for row in block.rows if tanh in about(row)]
    assert text(line).strip() == "h = np.tanh(W @ x + b)"
    (card,) = [card for card in found.rules if tanh in card.ops.split()]
    assert card.title == "tanh"
    (code,) = [row for row in found.code if tanh in about(row)]
    assert "np.tanh(" in text(code)


def test_adjoints_stand_beside_their_op() -> None:
    found = report(made(TEXT, "layer"), SHAPES)
    (pair,) = [pair for pair in found.tape if "tanh(" in text(pair.primal)]
    # The partial of tanh at its operand, and its product with the adjoint of the result.
    assert [text(row).split("= ")[1].split("(")[0] for row in pair.adjoints][-1] == "multiply"
    (card,) = [card for card in found.rules if card.title == "tanh"]
    assert set(card.ops.split()) == {pair.primal.ops, *(row.ops for row in pair.adjoints)}


def test_every_op_is_shown_once_with_what_it_reads() -> None:
    f = made(TEXT, "layer")
    found = report(f, SHAPES)
    _, g = yota.grad(f, np.ones((20, 30)), np.ones(20), np.ones(30))
    rows = [row for pair in found.tape for row in (pair.primal, *pair.adjoints) if "= " in text(row)]
    ops = {str(op.result): (show_op(g.tape, op), set(map(str, op.operands))) for op in g.tape.ops}
    shown = {row.ops: (text(row), set(row.reads.split())) for row in rows if not text(row).startswith("const")}
    assert shown == ops
    assert "\n".join(text(row) for row in found.code) == g.source.rstrip("\n")


@pytest.mark.parametrize("target", ["c", "cuda"])
def test_code_of_other_targets_is_linked_by_lines(target: str) -> None:
    found = report(made(TEXT, "layer"), SHAPES, target=target)
    tanh = named(found, "tanh")
    (line,) = [row for block in found.sources for row in block.rows if tanh in about(row)]
    code = [row for row in found.code if tanh in about(row)]
    assert any("tanh(" in text(row) for row in code)
    # What stands under the user's line is about all of its ops, and about no others.
    assert all(about(row) <= about(line) | {each for other in code for each in about(other)} for row in code)
    assert any(about(row) == about(line) for row in code)
    assert found.language == {"c": "C", "cuda": "CUDA"}[target]
    assert any(total.name == "kernels" and int(total.value) > 0 for total in found.totals)
    whole = "\n".join(text(row) for row in found.code)
    assert "tanh(" in whole
    assert whole.count("{") == whole.count("}")
    assert [row.label for row in found.code] == [str(number + 1) for number in range(len(found.code))]


def test_a_target_that_is_not_known() -> None:
    with pytest.raises(ArgumentError, match="code can be shown for: 'numpy', 'c', 'cuda'"):
        page(made(TEXT, "layer"), SHAPES, target="fortran")


def test_lines_of_scalar_code_come_from_what_is_written_inside_them() -> None:
    source = "def f(x):\n    return x[0] * x[1] + np.sin(x[0])\n"
    found = report(made(source, "f", "<scalar.py>"), {"x": "float64[2]"})
    (sine,) = [row for row in found.code if "= sin(" in text(row) or "+ sin(" in text(row)]
    assert named(found, "sin") in about(sine)
    (reads,) = [row for row in found.code if ".tolist()" in text(row)]
    assert len(about(reads)) >= 2


def test_lines_of_blocked_loops_know_their_ops() -> None:
    source = "def f(x):\n    return np.sum(np.log1p(x**2) - np.cos(x))\n"
    found = report(made(source, "f", "<loop.py>"), {"x": "float64[100000]"})
    for op, written in (("log1p", "np.log1p("), ("cos", "np.cos("), ("sin", "np.sin(")):
        lines = [text(row) for row in found.code if named(found, op) in about(row)]
        assert any(written in line for line in lines), op
    groups = {row.tag for pair in found.tape for row in (pair.primal, *pair.adjoints)}
    assert "group 1" in groups
    totals = {total.name: total for total in found.totals}
    assert totals["fusion groups"].value == "1"
    # The loop reads x and writes the gradient: twice 800 kB.
    assert totals["bytes moved"].value == "1.6 MB"


def test_sums_of_an_argument_that_is_read_twice_stand_beside_it() -> None:
    source = "def f(x):\n    return np.sum(x * np.ones(3) + np.sin(x))\n"
    found = report(made(source, "f", "<twice.py>"), {"x": "float64[3]"})
    assert found.tape[0].kind == "input"
    assert ["= add(" in text(row) for row in found.tape[0].adjoints] == [True]


def test_the_diagram_has_no_box_on_another() -> None:
    found = report(made(TEXT, "layer"), SHAPES).diagram
    places = [(box.x, box.y) for box in found.boxes]
    assert len(set(places)) == len(places) > 10
    for x, y in places:
        assert 0 <= x <= found.width - found.box_width
        assert 0 <= y <= found.height - found.box_height
    for one in places:
        for other in places:
            if one < other and one[1] == other[1]:
                assert other[0] - one[0] > found.box_width


def test_strict_reports_show_the_code_that_strict_calls_run() -> None:
    f = made("def f(x):\n    return np.std(x) * np.sum(np.sin(x))\n", "f", "<strict.py>")
    found = report(f, {"x": "float64[50000]"}, strict=True)
    x = np.linspace(0.0, 1.0, 50_000)
    assert "\n".join(text(row) for row in found.code) == yota.grad(f, x, strict=True)[1].source.rstrip("\n")
    shown = {op for pair in found.tape for row in (pair.primal, *pair.adjoints) for op in row.ops.split()}
    linked = {op for row in found.code for op in row.ops.split()}
    assert linked <= shown
    (line,) = [row for row in found.code if "np.std(x)" in text(row) and not text(row).strip().startswith("#")]
    assert about(line)


HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>{{ 7 * 7 }}\"'&amp;\u2028\u00e9"


def hostile(text: str) -> Any:
    source = (
        f"def f(p):\n    # {text}\n    y = np.sum(p[{text!r}] * 2.0)  # {text}\n    return np.where(y > 0, y, -y)\n"
    )
    return made(source, "f", f"/tmp/{text}.py")


def test_nothing_of_the_users_is_read_as_html() -> None:
    plain, foreign = (Reader(page(hostile(each), [{each: np.ones(3)}])) for each in ("a", HOSTILE))
    kinds = [{(tag, name) for tag, attributes in found.elements for name in attributes} for found in (foreign, plain)]
    assert kinds[0] <= kinds[1]
    assert set(foreign.tags) <= set(plain.tags)
    assert "img" not in foreign.tags
    assert foreign.tags.count("script") == 1
    assert "<img src=x onerror=alert(2)>{{ 7 * 7 }}" in foreign.text


def test_nothing_of_the_users_is_read_as_html_in_notebooks() -> None:
    plain, foreign = (yota.grad(hostile(each), {each: np.ones(3)})[1]._repr_html_() for each in ("a", HOSTILE))
    assert Reader(foreign).tags == Reader(plain).tags
    assert "<img src=x" in Reader(foreign).text


def test_the_page_needs_no_network() -> None:
    found = Reader(page(made(TEXT, "layer"), SHAPES))
    for tag, attributes in found.elements:
        for name in ("src", "href", "action", "srcset"):
            assert (attributes.get(name) or "data:,") == "data:,", tag
    policy = [attributes.get("content") for tag, attributes in found.elements if attributes.get("http-equiv")]
    assert policy[0].startswith("default-src 'none'")


def test_sizes_with_names_are_shown_at_small_numbers() -> None:
    found = report(
        made("def f(x, y):\n    return np.sum(x) * np.sum(y)\n", "f", "<sizes.py>"), ["float64[N,3]", "float64[...]"]
    )
    assert found.summary == "value and gradient for x: float64[4,3], y: float64[5] (N = 4, axis = 5)"


def test_notebooks_show_the_small_form() -> None:
    _, g = yota.grad(made(TEXT, "layer"), np.ones((2, 3)), np.ones(2), np.ones(3))
    shown = Reader(g._repr_html_()).text
    assert "float64[2,3]" in shown
    assert "def layer(W, b, x):" in shown
    assert "h = np.tanh(W @ x + b)" in Reader(g.tape._repr_html_()).text
    _, g = yota.grad(lambda p, n: np.sum(p["w"]) * n, {"w": np.ones(2), "u": np.ones(2)}, 3)
    assert "p.w" in g._repr_html_()
    assert "no derivative" in g._repr_html_()


def test_long_tapes_are_cut_short_in_notebooks() -> None:
    def long(x: Any) -> Any:
        for _ in range(150):
            x = np.sin(x) * 2.0
        return x

    _, tape = yota.trace(long, 1.0)
    assert "and 100 more" in tape._repr_html_()


@pytest.mark.parametrize("args, message", [({"x": "float46[3]"}, "not a dtype"), ({}, "misses a spec")])
def test_what_cannot_be_reported_says_why(args: Any, message: str) -> None:
    with pytest.raises(yota.errors.ArgumentError, match=message):
        page(made("def f(x):\n    return np.sum(x)\n", "f", "<plain.py>"), args)
