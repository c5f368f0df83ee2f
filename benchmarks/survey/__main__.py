"""The command line: ``python -m benchmarks.survey [MODULE ...]``."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path


def main(arguments: list[str] | None = None) -> int:
    """Examine what is asked for; 1 if a derivative is wrong."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.survey", description=__doc__)
    parser.add_argument(
        "modules",
        nargs="*",
        metavar="MODULE",
        help="modules or functions, by default all",
    )
    parser.add_argument("--jobs", type=int, default=1, help="processes at a time")
    parser.add_argument(
        "--state",
        type=Path,
        default=Path("build/survey.jsonl"),
        help="where results are kept",
    )
    parser.add_argument("--again", action="store_true", help="examine again what is kept and not right")
    parser.add_argument("--list", action="store_true", help="list the functions and stop")
    parser.add_argument(
        "--page",
        type=Path,
        nargs="?",
        const=Path("docs/coverage.md"),
        help="write the page of coverage",
    )
    parser.add_argument(
        "--refusals",
        type=Path,
        metavar="PATH",
        help="write the refusals by their cause",
    )
    options = parser.parse_args(arguments)
    os.environ.update(YOTA_CACHE="off", OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
    from benchmarks.survey.functions import modules_named
    from benchmarks.survey.page import page
    from benchmarks.survey.public import public, title_of
    from benchmarks.survey.report import message_of, refusals, shares, speeds
    from benchmarks.survey.workers import survey

    single = [each for each in options.modules if not modules_named([each])]
    modules = [each for each in options.modules if each not in single]
    names = list(single)
    if modules or not single:
        for module in modules_named(modules):
            names += [name for name, value in public(module).items() if title_of(value) == name]
    names = list(dict.fromkeys(names))
    if options.list:
        print("\n".join(names))
        return 0
    every = []
    for name, found in survey(names, options.jobs, options.state, options.again):
        for each in found:
            every.append(each | {"module": name.rpartition(".")[0]})
            if each["kind"] in ("wrong", "refused", "slow", "failed") or single:
                print(
                    f"{each['kind']:9} {each['text'][:150]} {message_of(each.get('detail', ''))[:300]}",
                    flush=True,
                )
    print(shares(every))
    print(speeds(every))
    if options.page:
        options.page.write_text(page(every), encoding="utf-8")
    if options.refusals:
        options.refusals.write_text(refusals(every), encoding="utf-8")
    return 1 if any(each["kind"] == "wrong" for each in every) else 0


if __name__ == "__main__":
    sys.exit(main())
