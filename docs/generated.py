"""Pages that are made while the documentation is built: the commands, and plots of what was measured."""

from __future__ import annotations

import ast
import enum
import inspect
import json
import math
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

__all__ = ["write"]

ROOT = Path(__file__).resolve().parent.parent
OURS, BY_HAND, OTHERS = "#c2410c", "#4d7c0f", "#64748b"


def write(folder: Path) -> None:
    """Write all of them into ``folder``."""
    folder.mkdir(exist_ok=True)
    (folder / "commands.md").write_text("\n".join(commands()), encoding="utf-8")
    (folder / "benchmarks.md").write_text("\n".join(benchmarks(folder)), encoding="utf-8")
    (folder / "structure.md").write_text("\n".join(structure(folder)), encoding="utf-8")


def commands() -> Iterator[str]:
    """Each command with its help, arguments and options, as the application itself has them."""
    from yota.tools.cli.application import application

    for command in application.registered_commands:
        assert command.callback is not None
        yield f"## yota {command.name}\n"
        yield f"{(command.help or '').strip()}\n"
        parameters = inspect.signature(command.callback, eval_str=True).parameters.values()
        if parameters:
            yield "| | |\n| --- | --- |"
        for parameter in parameters:
            kind, declared = get_args(parameter.annotation)
            # In `Annotated`, the first of an option's names stands where its default would.
            first = (declared.default,) if str(declared.default).startswith("-") else ()
            names = [f"`{name}`" for name in (*first, *(declared.param_decls or ()))]
            words = ", ".join(names) + _kind(kind) if names else f"`{parameter.name.upper()}`"
            yield f"| {words} | {_cell(declared.help or '')}{_default(parameter.default)} |"
        yield ""


def _kind(kind: Any) -> str:
    """What an option takes."""
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return " " + "\\|".join(str(each.value) for each in kind)
    inner = get_args(kind)[0] if get_args(kind) else kind
    return {bool: "", float: " NUMBER", Path: " PATH"}.get(inner, " TEXT")


def _default(value: Any) -> str:
    value = getattr(value, "value", value)
    if value in (inspect.Parameter.empty, "", False, None) or value == []:
        return ""
    return f" Default: `{', '.join(value) if isinstance(value, list) else value}`."


def _cell(text: str) -> str:
    return re.sub(r"\s+", " ", text).replace("|", "\\|").strip()


def benchmarks(folder: Path) -> Iterator[str]:
    """A plot and a line about the machine for each file of results."""
    for path in sorted((ROOT / "benchmarks" / "results").glob("*.json")):
        results = json.loads(path.read_text(encoding="utf-8"))
        machine = results["machine"]
        yield f"## {_targets(results)}, {machine['processor']}\n"
        packages = ", ".join(f"{name} {version}" for name, version in machine["packages"].items())
        yield f"{machine['system']}, {machine['threads']} thread(s), {machine['python']}; {packages}.\n"
        for name, workload in results["workloads"].items():
            file = folder / f"{path.stem}-{name}.svg"
            _plot(workload, file)
            yield "### " + workload["title"].replace("*", r"\*") + "\n"
            yield f"```{{image}} _generated/{file.name}\n:alt: {_alternative(workload)}\n:width: 100%\n```\n"


def _targets(results: dict[str, Any]) -> str:
    """Whose code was measured: the names of yota's targets."""
    contenders = {name for one in results["workloads"].values() for name in one["contenders"]}
    known = {"yota": "NumPy", "yota c": "C", "yota cuda": "CUDA"}
    return " and ".join(target for name, target in known.items() if name in contenders) + " target"


def _ratios(workload: dict[str, Any]) -> dict[str, float]:
    plain = workload["contenders"]["plain"]["median"]
    return {name: each["median"] / plain for name, each in workload["contenders"].items() if name != "plain"}


def _alternative(workload: dict[str, Any]) -> str:
    return ", ".join(f"{name} {ratio:.3g}x" for name, ratio in _ratios(workload).items())


def _plot(workload: dict[str, Any], file: Path) -> None:
    import matplotlib as mpl

    mpl.use("svg")
    import matplotlib.pyplot as plt

    ratios = dict(sorted(_ratios(workload).items(), key=lambda item: -item[1]))
    grey = "#808890"
    style = {"svg.hashsalt": "yota", "svg.fonttype": "none", "font.size": 10, "text.color": grey, "xtick.color": grey}
    with mpl.rc_context({**style, "ytick.color": grey, "axes.edgecolor": grey, "axes.labelcolor": grey}):
        figure, axes = plt.subplots(figsize=(8, 0.5 + 0.32 * len(ratios)), layout="constrained")
        bars = axes.barh(list(ratios), list(ratios.values()), color=list(map(_colour, ratios)))
        axes.bar_label(bars, [f"{ratio:.3g}x" for ratio in ratios.values()], padding=4)
        axes.set_xscale("log")
        axes.margins(x=0.12)
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}x")
        axes.xaxis.set_minor_formatter("")
        axes.axvline(1.0, color=grey, linewidth=0.8, linestyle=":")
        axes.spines[["top", "right"]].set_visible(False)
        figure.savefig(file, transparent=True, metadata={"Date": None})
        plt.close(figure)


def _colour(name: str) -> str:
    return OURS if name.startswith("yota") else BY_HAND if name == "hand" else OTHERS


def structure(folder: Path) -> Iterator[str]:
    """The folders of the package in the order of their layers: a diagram of their imports, and what each is for."""
    sys.path.insert(0, str(ROOT))
    from tests import layers

    def home(module: str) -> str:
        return str(Path(layers.place(module)).parent)

    modules = {layers.module_name(file): file for file in layers.files()}
    counts = Counter(
        (home(name), home(imported))
        for name, file in modules.items()
        for _, imported, _ in layers.imports(file)
        if imported in modules and home(imported) != home(name)
    )
    order = sorted({each for pair in counts for each in pair} - {"."}, key=lambda each: (layers.layer(each), each))
    _arcs(order, counts, folder / "structure.svg")
    yield "```{image} _generated/structure.svg\n:alt: imports between the folders of yota\n:width: 100%\n```\n"
    yield "| folder | what |\n| --- | --- |"
    for each in order:
        tree = ast.parse((layers.PACKAGE / each / "__init__.py").read_text(encoding="utf-8"))
        yield f"| `yota/{each}/` | {_cell((ast.get_docstring(tree) or '').splitlines()[0])} |"


def _arcs(order: list[str], counts: Counter[tuple[str, str]], file: Path) -> None:
    """A line for each folder, the lowest layer at the bottom; an arc for the imports between two folders."""
    import matplotlib as mpl

    mpl.use("svg")
    import matplotlib.pyplot as plt
    from matplotlib.patches import Arc

    grey = "#808890"
    with mpl.rc_context({"svg.hashsalt": "yota", "svg.fonttype": "none", "font.size": 10, "text.color": grey}):
        figure, axes = plt.subplots(figsize=(8, 0.3 * len(order)), layout="constrained")
        for row, name in enumerate(order):
            axes.text(-0.3, row, name, ha="right", va="center", family="monospace")
        for (above, below), count in sorted(counts.items()):
            if above in order and below in order:
                top, bottom = order.index(above), order.index(below)
                color = OTHERS if top > bottom else OURS
                width = 0.4 + 0.5 * math.log(count)
                axes.add_patch(
                    Arc((0, (top + bottom) / 2), abs(top - bottom), abs(top - bottom), theta1=-90, theta2=90,
                        color=color, linewidth=width, alpha=0.6)
                )  # fmt: skip
        axes.set(xlim=(-6, len(order) / 2), ylim=(-0.6, len(order) - 0.4))
        axes.axis("off")
        figure.savefig(file, transparent=True, metadata={"Date": None})
        plt.close(figure)
