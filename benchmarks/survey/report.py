"""What was found, as text: the share by module, and the refusals grouped by their cause."""

from __future__ import annotations

import collections
import re
from typing import Any

from benchmarks.survey.examine import DIFFERENTIABLE

__all__ = ["Found", "cause", "message_of", "refusals", "share", "shares", "speeds"]

Found = dict[str, Any]

_CAUSES = (
    (r"draws random numbers", "random numbers"),
    (
        r"float\(\) takes|int\(\) takes|complex\(\) takes|\.item|\.tolist|__index__|bool\(\)",
        "casts to one number",
    ),
    (r"is being turned into a plain array", "plain arrays in the package's code"),
    (r"is given to something that takes plain values", "compiled code"),
    (r"no rule is known", "no rule"),
    (r"is not recorded|are not recorded|cannot be recorded", "not recorded"),
    (r"no derivative|not determined|has none", "no derivative in closed form"),
    (r"is used together with a traced value|subclass|masked", "arrays of other kinds"),
    (r"written into|would be lost", "values that are lost"),
    (r"^\w*(Error|Exception)\b", "an error of the package's own"),
)


def cause(message: str) -> str:
    """What a refusal is about, in a few words."""
    text = message_of(message)
    for pattern, words in _CAUSES:
        if re.search(pattern, text):
            return words
    return "other"


def message_of(message: str) -> str:
    """A message without the place of the call, and without the rule that it ends with."""
    text = re.sub(r"^(\[by .*? right\] )?", "", message.partition("\n")[0])
    text = re.sub(r"^(\w+: )?\S*<[\w.]+: call \d+>\S*:\d+(:\d+)?: `.*?`: ", r"\1", text)
    text = re.sub(r" at \S*<[\w.]+: call \d+>\S*:\d+(:\d+)?", "", text)
    return re.sub(r"^\S+\.py:\d+(:\d+)?(?: in \S+)?: (`.*?`: )?", "", text)


def shares(found: list[Found]) -> str:
    """The share of the differentiable calls that are right, by module."""
    counts: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    for each in found:
        counts[each["module"]][each["kind"]] += 1
        counts[each["module"].partition(".")[0]][each["kind"]] += 1
    titles = "  ".join(f"{kind:>7}" for kind in DIFFERENTIABLE[1:])
    lines = [f"{'module':34} {'right':>8} of {'all':>5} {titles}  without derivative"]
    for module, kinds in sorted(counts.items()):
        known = sum(kinds[kind] for kind in DIFFERENTIABLE)
        rest = ", ".join(f"{n} {kind}" for kind, n in sorted(kinds.items()) if kind not in DIFFERENTIABLE)
        columns = "  ".join(f"{kinds[kind]:7}" for kind in DIFFERENTIABLE[1:])
        lines.append(f"{module:34} {share(kinds):>8} of {known:5} {columns}  {rest}")
    return "\n".join(lines)


def share(kinds: collections.Counter[str]) -> str:
    """The part of the calls with a derivative that are right."""
    known = sum(kinds[kind] for kind in DIFFERENTIABLE)
    return f"{100 * kinds['right'] / known:.1f} %" if known else ""


def speeds(found: list[Found]) -> str:
    """How long recordings take beside plain calls of at least 50 us, and first gradients, over the right calls."""
    right = [each for each in found if each["kind"] == "right"]
    ratios = sorted(each["recorded"] / each["plain"] for each in right if each["recorded"])
    firsts = sorted(each["first"] for each in right)
    lines = []
    for title, numbers, limit in (
        ("recording / plain call", ratios, 20),
        ("seconds to the first gradient", firsts, 1),
    ):
        if numbers:
            median, most = numbers[len(numbers) // 2], numbers[int(0.9 * len(numbers))]
            beyond = sum(each > limit for each in numbers)
            lines.append(
                f"{title}: {len(numbers)} calls, median {median:.3g}, 90 % below {most:.3g}, worst {numbers[-1]:.3g}, "
                f"beyond {limit}: {beyond}"
            )
    return "\n".join(lines)


def refusals(found: list[Found]) -> str:
    """The refusals as Markdown, by cause and by module."""
    groups: dict[str, dict[str, list[Found]]] = collections.defaultdict(lambda: collections.defaultdict(list))
    for each in found:
        if each["kind"] == "refused":
            groups[cause(each["detail"])][each["module"]].append(each)
    lines = []
    for words, modules in sorted(groups.items(), key=lambda pair: -sum(map(len, pair[1].values()))):
        lines += [f"## {words}: {sum(map(len, modules.values()))}", ""]
        for module, inner in sorted(modules.items()):
            lines += [f"### {module}: {len(inner)}", ""]
            for each in inner:
                lines.append(f"- `{each['text']}`: {message_of(each['detail'])[:260]}")
            lines.append("")
    return "\n".join(lines)
