#!/usr/bin/env python3
"""Writes the tables of docs/reference/performance.md from bench/history, and from docs/gpu-results where there are any.

    page.py [--check]

--check  change nothing; fail where the page is stale, or longer than 200 lines

A table begins with a mark and ends where the next mark or heading is; what is written by hand stands before the mark.
"""

import json
import re
import statistics
import sys

import history
from programs import PROGRAMS

sys.path.insert(0, str(history.ROOT / "scripts/gpu"))

import report  # noqa: E402

PAGE = history.ROOT / "docs/reference/performance.md"
LONGEST = 200  # lines


def cell(quartiles):
    """The median, and the quartiles where they differ from it by more than a hundredth."""
    low, middle, high = (f"{value:.2f}" if value >= 0.1 else f"{value:.2g}" for value in quartiles)
    return middle if high == low else f"{middle} ({low}-{high})"


def value_of(case, key):
    value = case.get(key, "")
    return f"{value:,}" if isinstance(value, int) and value >= 1000 else str(value)


def table(spec, lines):
    """The rows of a table in the order of the record, without columns of which the record has nothing, as of baselines
    that were not installed; nothing where it has none of its cases."""
    rows = {}
    for line in lines:
        case = line["case"]
        if not history.matches(case, spec.where):
            continue
        name = tuple(value_of(case, key) for key in spec.rows)
        for number, column in enumerate(spec.columns):
            if not history.matches(case, column.where) or column.ratio not in line["ratios"]:
                continue
            if number in rows.setdefault(name, {}):
                sys.exit(f"page.py: two cases for '{column.title}' of '{', '.join(name)}': add keys to the rows")
            rows[name][number] = cell(line["ratios"][column.ratio])
    if not rows:
        return []
    shown = [number for number in range(len(spec.columns)) if any(number in cells for cells in rows.values())]
    return report.table([*spec.rows.values(), *(spec.columns[number].title for number in shown)],
                        [[*name, *(cells.get(number, "") for number in shown)] for name, cells in rows.items()])


def caption(name, lines):
    """Where and when the newest record was made, and how it compares with the one before."""
    last = lines[-1]
    text = (f"[bench_{name}](../../bench/{name}/README.md), {last['date'][:10]}, commit {last['commit']}, "
            f"{last['cpu']}, {last['cores']} cores, {last['mpi']}, preset `{last['build']}`; {last['runs']} runs; "
            f"other programs used {last['others']} cores.")
    older = history.before(lines)
    quotients = [now[1] / was[1] for _, _, was, now in history.pairs(older, history.newest(lines)) if was[1] > 0]
    if quotients:
        text += (f" To the record of {older[0]['date'][:10]} ({older[0]['commit']}): "
                 f"{statistics.median(quotients):.2f} x, {min(quotients):.2f} to {max(quotients):.2f} x.")
    return text


def section(name, folder):
    """Caption and tables of a benchmark."""
    lines = history.read(folder / f"{name}.jsonl")
    if not lines:
        return f"[bench_{name}](../../bench/{name}/README.md) is not recorded yet: `scripts/bench.sh {name} --record`."
    tables = [table(spec, history.newest(lines)) for spec in PROGRAMS[name].tables]
    return "\n\n".join([caption(name, lines), *("\n".join(one) for one in tables if one)])


def gpu_section(folder):
    """The goals of the newest results of each kind of GPU; rehearsals without one do not count."""
    newest = {}
    for path in sorted(folder.glob("*.json")):
        results = json.loads(path.read_text(encoding="utf-8"))
        gpus = results.get("machine", {}).get("gpus")
        if gpus and not results.get("rehearsal") and results.get("benchmarks"):
            newest[gpus[0]["name"]] = (path, results)
    if not newest:
        return "No results yet; [GPU check](gpu-check.md) says how to get them."
    columns, captions = {}, []
    for gpu, (path, results) in sorted(newest.items()):
        captions.append(f"{gpu}: {results['started'][:10]}, source {results['source']}, [all results](../gpu-results/"
                        f"{path.with_suffix('.md').name})")
        for goal in report.goals(results["benchmarks"]):
            worst = "not measured" if goal["reached"] is None else goal["measured"]
            columns.setdefault(goal["goal"], {})[gpu] = worst + (": no" if goal["reached"] is False else "")
    table = report.table(["goal: worst measured", *sorted(newest)],
                         [[goal, *(found.get(gpu, "-") for gpu in sorted(newest))] for goal, found in columns.items()])
    return "; ".join(captions) + ".\n\n" + "\n".join(table)


def renewed(text, history_folder=history.FOLDER, gpu_folder=history.ROOT / "docs/gpu-results"):
    """The page with its tables made anew, and what is wrong with it."""
    wrong = []
    for name in [*PROGRAMS, "gpu"]:
        pattern = rf"(<!-- {name}: by scripts/bench/page\.py -->\n).*?(?=\n## |\n<!-- |\Z)"
        if not re.search(pattern, text, re.S):
            wrong.append(f"docs/reference/performance.md has no place for '{name}'")
            continue
        made = gpu_section(gpu_folder) if name == "gpu" else section(name, history_folder)
        text = re.sub(pattern, lambda match, made=made: f"{match[1]}{made}\n", text, flags=re.S)
    if text.count("\n") > LONGEST:
        wrong.append(f"docs/reference/performance.md has {text.count(chr(10))} lines, more than {LONGEST}: "
                     "show fewer cases (scripts/bench/programs.py)")
    return text, wrong


def main(arguments):
    if arguments not in ([], ["--check"]):
        sys.exit(__doc__)
    text = PAGE.read_text(encoding="utf-8")
    made, wrong = renewed(text)
    if made != text and arguments:
        wrong.append("docs/reference/performance.md is stale: run scripts/bench/page.py")
    elif made != text:
        PAGE.write_text(made, encoding="utf-8")
    if wrong:
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main(sys.argv[1:])
