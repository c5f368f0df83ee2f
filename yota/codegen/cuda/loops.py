"""The loops of one CUDA kernel: how its threads run over the points, and join the totals that they have."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from yota.codegen.c.frame import Sink
from yota.codegen.c.lines import block
from yota.codegen.cuda.counters import Counters
from yota.codegen.cuda.memory import Memory, shifted
from yota.codegen.cuda.shape import Shape

__all__ = ["Loops", "Total"]


@dataclass(frozen=True, slots=True)
class Total:
    """A value that threads add up: its name and type, the result it ends in, over all loops or not, and where in it."""

    name: str
    type: str
    sink: Sink
    full: bool
    target: str


class Loops:
    """Loops around the statements for one point.

    Parameters
    ----------
    memory, counters, shape
        Where elements are, what counts the points, and how threads share them out.
    hoisted
        Statements ahead of all loops, and of the inner one.
    inner
        Statements for one point.
    totals
        What threads add up.
    """

    def __init__(
        self,
        memory: Memory,
        counters: Counters,
        shape: Shape,
        hoisted: list[list[str]],
        inner: list[str],
        totals: tuple[Total, ...],
    ) -> None:
        self.memory, self.counters, self.shape = memory, counters, shape
        self.hoisted, self.inner, self.totals = hoisted, inner, totals
        self.index, self.threads = counters.type, shape.threads

    def lines(self) -> list[str]:
        """The kernel's statements."""
        if self.memory.packs:
            return self._packed()
        if self.memory.held:
            return self._by_rows()
        return self._flat() if self.shape.flat else self._folded()

    def _declared(self, totals: Sequence[Total]) -> list[str]:
        return [f"{total.type} {total.name} = {total.type}::none();" for total in totals]

    def _thread(self) -> str:
        return f"({self.index})blockIdx.x * {self.threads} + (int)threadIdx.x"

    def _flat(self) -> list[str]:
        """A loop over all points."""
        at = self.counters.over(self.shape.kept, "at")
        counters = self.counters.decomposed(self.shape.kept, at)
        body = [*counters, *self.inner]
        total = self.shape.points[0]
        lines = [*self.hoisted[0], *self._declared(self.totals)]
        if not self.shape.open and self.shape.blocks * self.threads >= total:
            lines.append(f"const {self.index} {at} = {self._thread()};")
            head = f"if ({at} < {total!s})"
        else:
            step = f"({self.index})gridDim.x * {self.threads}"
            head = f"for ({self.index} {at} = {self._thread()}; {at} < {total!s}; {at} += {step})"
        return [*lines, *block(head, body), *self._finished(self.totals)]

    def _packed(self) -> list[str]:
        """A loop over the points in which each thread takes several neighbouring ones."""
        width, total, index = self.memory.access.width, self.shape.points[0], self.index
        counter = self.counters.names[self.shape.kept[0]]
        before, after = [], []
        for (variable, place), name in self.memory.packs.items():
            kind = self.memory.kind(variable)
            start = f"{self.memory.name(variable)} + {shifted('base', place.constant)}"
            if variable in self.memory.results:
                before.append(f"Pack<{kind}, {width}> {name};")
                after.append(f"given({start}, {name}, {total} - base);")
            else:
                before.append(f"const Pack<{kind}, {width}> {name} = taken<{width}>({start}, {total} - base);")
        body = [f"const {index} {counter} = base + step;"] if self._says(counter, self.inner) else []
        body += self.inner
        if total % width:
            body = block(f"if (base + step < {total!s})", body)
        start = f"(({index})blockIdx.x * {self.threads} + (int)threadIdx.x) * {width}"
        head = f"for ({index} base = {start}; base < {total!s}; base += ({index})gridDim.x * {self.threads * width})"
        loop = [*before, "#pragma unroll", *block(f"for (int step = 0; step < {width}; step++)", body), *after]
        return [*self.hoisted[0], *self._declared(self.totals), *block(head, loop), *self._finished(self.totals)]

    def _says(self, name: str, lines: Sequence[str]) -> bool:
        return any(re.search(rf"\b{name}\b", line) for line in lines if not line.lstrip().startswith("/*"))

    def _by_rows(self) -> list[str]:
        """A loop over the points for which a block brings its rows into shared memory, and takes results out."""
        total, index, threads = self.shape.points[0], self.index, self.threads
        counter = self.counters.names[self.shape.kept[0]]
        declared, before, after = [], [], []
        for variable, name in self.memory.held.items():
            row = self.memory.access.rows[variable]
            kind = self.memory.kind(variable)
            declared.append(f"__shared__ {kind} {name}[{threads * row.pitch}];")
            start = f"{self.memory.name(variable)} + {row.length} * first"
            if variable in self.memory.results:
                after.append(f"taken_out<{threads}, {row.length}, {row.pitch}>({start}, {name}, count);")
            else:
                before.append(f"brought<{threads}, {row.length}, {row.pitch}>({name}, {start}, count);")
        body = [f"const {index} {counter} = first + place;"] if self._says(counter, self.inner) else []
        loop = [
            f"const int count = {total} - first < {threads} ? (int)({total} - first) : {threads};",
            *before,
            # Rows are there to read, and those of the round before have been taken out.
            "__syncthreads();",
            *block("if (place < count)", [*body, *self.inner]),
            "__syncthreads();",
            *after,
        ]
        head = (
            f"for ({index} first = ({index})blockIdx.x * {threads}; first < {total!s}; "
            f"first += ({index})gridDim.x * {threads})"
        )
        lines = [*declared, "const int place = threadIdx.x;", *self.hoisted[0], *self._declared(self.totals)]
        return [*lines, *block(head, loop), *self._finished(self.totals)]

    def _finished(self, totals: Sequence[Total]) -> list[str]:
        """The block's part of each total over all points."""
        if not totals:
            return []
        lines = [f"{each.name} = joined<{self.threads}, 1>({each.name});" for each in totals]
        return [*lines, *block("if (threadIdx.x == 0)", [f"{self._kept(each)};" for each in totals])]

    def _kept(self, total: Total) -> str:
        if self.shape.blocks > 1:
            return f"parts[blockIdx.x].{total.name} = {total.name}"
        return f"{total.target} = {total.name}.result()"

    def _folded(self) -> list[str]:
        """A loop over what is kept, and in it one over what is reduced."""
        index, outer = self.index, self.shape.points[0]
        full = [total for total in self.totals if total.full]
        own = [total for total in self.totals if not total.full]
        across = ("/", "%") if self.shape.rows else ("%", "/")
        size = self.shape.deep if self.shape.rows else self.shape.across
        lines = [
            *self.hoisted[0],
            f"const int across = threadIdx.x {across[0]} {size}, lane = threadIdx.x {across[1]} {size};",
            *self._declared(full),
        ]
        point = self.counters.over(self.shape.kept, "point")
        inside = [*self.hoisted[1], *self._inner_loop()]
        body = [
            f"const {index} {point} = base + across;",
            *self.counters.decomposed(self.shape.kept, point),
            *self._declared(own),
            *block(f"if ({point} < {outer!s})", inside),
            *self._joined(own),
        ]
        stores = [f"{self._partial(total, point)};" for total in own]
        body += block(f"if (lane == 0 && {point} < {outer!s})", stores)
        start, step = (f"{self._over(word)} * {self.shape.across}" for word in ("blockIdx.x", "gridDim.x"))
        lines += block(f"for ({index} base = {start}; base < {outer!s}; base += {step})", body)
        return [*lines, *self._finished(full)]

    def _over(self, word: str) -> str:
        """A number of blocks, of which those that share a total count as one."""
        return f"({self.index}){word}" if self.shape.splits == 1 else f"({self.index})({word} / {self.shape.splits})"

    def _inner_loop(self) -> list[str]:
        place = self.counters.over(self.shape.reduced, "place")
        counters = self.counters.decomposed(self.shape.reduced, place)
        first, last = "0", str(self.shape.points[1])
        lines = []
        if self.shape.splits > 1:
            lines = [
                f"const {self.index} first = ({self.index})(blockIdx.x % {self.shape.splits}) * {self.shape.chunk};",
                f"const {self.index} last = first + {self.shape.chunk} < {last} ? first + {self.shape.chunk} : {last};",
            ]
            first, last = "first", "last"
        start = "lane" if first == "0" else "first + lane"
        if self.shape.deep == 1:
            start = first
        head = f"for ({self.index} {place} = {start}; {place} < {last}; {place} += {self.shape.deep})"
        return [*lines, *block(head, [*counters, *self.inner])]

    def _joined(self, totals: Sequence[Total]) -> list[str]:
        """Totals of the threads that work on one kept point."""
        if self.shape.deep == 1:
            return []
        if self.shape.rows and self.shape.deep < self.shape.threads:
            return [f"{total.name} = joined_in_warp({total.name});" for total in totals]
        across = 1 if self.shape.rows else self.shape.across
        return [f"{total.name} = joined<{self.threads}, {across}>({total.name});" for total in totals]

    def _partial(self, total: Total, point: str) -> str:
        if self.shape.splits > 1:
            index = f"({self.index})(blockIdx.x % {self.shape.splits}) * {self.shape.points[0]} + {point}"
            return f"rows[{index}].{total.name} = {total.name}"
        return f"{total.target} = {total.name}.result()"
