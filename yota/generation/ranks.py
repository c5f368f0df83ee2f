"""Code for any number of further axes: made for two of them and for three, and kept where both say the same."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import zip_longest

from yota.errors import ArgumentError
from yota.generation.assembly import Parts
from yota.generation.functions import Function
from yota.generation.kernel import Kernel

__all__ = ["FURTHER", "axes", "unified"]

FURTHER = "further"
"""Name of the extents of further axes in generated code."""


def axes(count: int) -> tuple[str, ...]:
    """Names of the extents of ``count`` further axes, for code that is made for so many.

    Examples
    --------
    >>> axes(2)
    ('further0', 'further1')
    """
    return tuple(f"{FURTHER}{number}" for number in range(count))


def unified(two: Parts, three: Parts) -> Parts:
    """What was made for two further axes, for any number of them, if what was made for three says the same.

    Raises
    ------
    ArgumentError
        If the code depends on how many axes there are.
    """
    made, other = _open(two, 2), _open(three, 3)
    pairs = zip_longest(_lines(made), _lines(other), fillvalue="")
    different = next(((one, another) for one, another in pairs if one != another), None)
    if different is not None:
        raise ArgumentError(
            "the code depends on how many axes `...` stands for:\n"
            f"    {different[0].strip()}    with two\n    {different[1].strip()}    with three\n"
            "Write the axes out, as in float64[B,N,M]"
        )
    return made


def _open(parts: Parts, count: int) -> Parts:
    found = replace(parts)
    found.kernels = [_kernel(kernel, count) for kernel in parts.kernels]
    found.functions = [_function(function, count) for function in parts.functions]
    if any("math." in line for function in found.functions for line in function.body):
        first, *rest = found.kernels
        found.kernels = [replace(first, imports=tuple(dict.fromkeys(("import math", *first.imports)))), *rest]
    return found


def _kernel(kernel: Kernel, count: int) -> Kernel:
    blocks = tuple(_body(block, count) for block in kernel.blocks)
    imports = ("import math",) if any("math." in block for block in blocks) else ()
    return replace(kernel, blocks=blocks, imports=tuple(dict.fromkeys((*imports, *kernel.imports))))


def _body(text: str, count: int) -> str:
    """A kernel's text: parameters, numbers of elements, shapes, axes."""
    names = axes(count)
    text = text.replace(", ".join(f"{name}: Any" for name in names), f"{FURTHER}: Any")
    text = re.sub(r"\b" + r"\*".join(names) + r"\b", f"math.prod({FURTHER})", text)
    text = text.replace(", ".join(names), f"*{FURTHER}")
    for first in range(8):
        run = ", ".join(str(first + place) for place in range(count))
        text = text.replace(f"axis=({run})", f"axis=tuple(range({first}, {first} + len({FURTHER})))")
    ones = ", ".join("1" * count)
    return re.sub(rf"(?<=[(\s]){ones}\)\)", f"*(1,) * len({FURTHER})))", text)


def _function(function: Function, count: int) -> Function:
    """A public function: checks of its arguments, and how their shapes are described."""
    names = axes(count)
    body = []
    for line in function.body:
        line = line.replace("sizes: dict[str, int]", "sizes: dict[str, Any]")
        line = line.replace(" * ".join(f'sizes["{name}"]' for name in names), 'math.prod(sizes["..."])')
        line = re.sub(r"\.reshape\((.*)\)$", lambda match: _reshaped(match[1], names), line)
        line = line.replace(", ".join(f'sizes["{name}"]' for name in names), 'sizes["..."]')
        shape = ", ".join(f'"{name}"' for name in names)
        # One check at a time: each ends where the next begins.
        checks = re.split(r"(?=_sized\()", line)
        body.append("".join(_check(check, shape) for check in checks))
    documentation = tuple(line.replace(", ".join(names), "...") for line in function.documentation)
    return replace(function, body=tuple(body), documentation=documentation)


def _reshaped(extents: str, names: Sequence[str]) -> str:
    """A shape that may have no axes, in brackets of its own."""
    found = extents.replace(", ".join(f'sizes["{name}"]' for name in names), '*sizes["..."]')
    alone = "," if found == '*sizes["..."]' else ""
    return f".reshape({extents})" if found == extents else f".reshape(({found}{alone}))"


def _check(text: str, shape: str) -> str:
    if shape not in text:
        return text
    return text.replace("_sized(", "_open(", 1).replace(f"({shape})", '("...",)').replace(shape, '"..."')


def _lines(parts: Parts) -> Sequence[str]:
    texts = [block for kernel in parts.kernels for block in kernel.blocks]
    for function in parts.functions:
        texts += [function.parameters, function.returns, *function.documentation, *function.body]
    return "\n".join([*texts, *parts.constants.lines]).split("\n")
