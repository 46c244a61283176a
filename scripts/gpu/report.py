"""Writes the results of scripts/gpu-check.sh as JSON and as a page: report.py RESULTS.json prints the page again."""

import json
import os
import sys

# Parts that run tests.
TESTS = ["core", "tasks", "euler", "one-sided", "fields"]

# Keys of benchmark records that say what was measured, in the order of the tables' columns, and keys of results.
KEYS = ["case", "own_rows", "kernel", "transport", "ranks", "rows", "doubles_per_row", "order", "kernels", "cells",
        "device"]
VALUES = ["median_us", "launch_us", "above_launch_us", "floor_us", "fraction_of_floor", "copy_rate_gb_s",
          "fraction_of_copy", "gb_per_s", "ratio_to_in_place", "ratio_to_staged", "ratio_to_full_copies",
          "ratio_to_launches", "us_per_kernel", "us_per_step", "cells_per_s", "density_error"]
TITLES = {
    "copy": "The device's own copy rate (bytes read and written)",
    "rows": "Kernels of a thread a row, rows in place or moved through shared memory",
    "kernel": "Pack and gather kernels against the floor of bytes moved",
    "pull": "Pulls of ghost rows, by transport",
    "sparse": "Exchanges of a sparse field, by transport",
    "graph": "Kernel launches against graph replay",
    "heat": "The heat case",
    "euler": "The Euler case",
}


def read_records(path):
    """Benchmark records from a file, which a benchmark that was stopped may not have written."""
    try:
        with open(path, encoding="utf-8") as file:
            records = json.load(file)
    except (OSError, ValueError):
        return []
    return records if isinstance(records, list) else [records]


def goals(records):
    """What is to be reached on an H200, and the worst that was measured: a list of {goal, measured, reached}, reached
    being None where nothing was measured."""
    def of(benchmark, **wanted):
        return [record for record in records if record.get("benchmark") == benchmark
                and all(record.get(key) == value for key, value in wanted.items())]

    def goal(text, values, enough, pick, show):
        values = [value for value in values if value is not None]
        if not values:
            return {"goal": text, "measured": None, "reached": None}
        worst = pick(values)
        return {"goal": text, "measured": show.format(worst), "reached": enough(worst)}

    pulls = {}
    for record in of("pull"):
        case = tuple(record.get(key) for key in ("ranks", "rows", "doubles_per_row"))
        pulls.setdefault(case, {})[record.get("transport")] = record.get("median_us")
    against = [pull["peer"] / pull["staged"] for pull in pulls.values() if pull.get("peer") and pull.get("staged")]
    copies = [pull["full copies"] / pull["staged"] for pull in pulls.values()
              if pull.get("full copies") and pull.get("staged")]
    kernels = of("kernel", kernel="pack")  # which gathers, too, where peers reach each other's memory
    return [
        goal("pack and gather reach 80 % of the floor at 10^6 rows",
             [record.get("fraction_of_floor") for record in kernels if record.get("rows") == 10**6],
             lambda worst: worst >= 0.8, min, "{:.2f} of the floor"),
        goal("pack and gather take at most 5 us more than a launch at 10^4 rows",
             [record.get("above_launch_us") for record in kernels if record.get("rows") == 10**4],
             lambda worst: worst <= 5, max, "{:.1f} us above a launch"),
        goal("staged is at least 20 x faster than copying whole arrays", copies, lambda worst: worst >= 20, min,
             "{:.1f} x"),
        goal("peer takes less time than staged everywhere", against, lambda worst: worst < 1, max,
             "{:.2f} of staged's time"),
    ]


def verdict(results):
    """("passed" | "failed" | "incomplete", one sentence)."""
    bad = [test["name"] for test in results["tests"] if test["status"] in ("failed", "out of time")]
    # A build that ran out of time continues in the next call.
    bad += [step["name"] for step in results["steps"] if step["status"] == "failed"
            or (step["status"] == "out of time" and step["part"] != "build")]
    ran = [test for test in results["tests"] if test["status"] == "passed"]
    skipped = sum(test["status"] == "skipped" for test in results["tests"])
    if bad:
        return "failed", f"{len(bad)} failed or did not end: {', '.join(bad[:8])}{', ...' if len(bad) > 8 else ''}" + (
            "" if results["finished"] else "; the run was cut short")
    if not results["finished"]:
        reasons = [f"not run: {entry['what']} ({entry['why']})" for entry in results["not_run"]]
        return "incomplete", "; ".join([f"the run was cut short after {len(ran)} tests passed; the same command goes "
                                        "on", *reasons[:3]])
    if results["rehearsal"] == "without GPU":
        return "passed", f"everything compiled; {skipped} tests found no device, {len(ran)} need none"
    if set(results["parts"]) & set(TESTS) and not ran:
        return "failed", "no test ran"
    late = [entry["what"] for entry in results["not_run"]]
    late += [step["name"] for step in results["steps"] if step["status"] == "not run"]
    text = f"{len(ran)} tests passed" + (f", {skipped} skipped" if skipped else "")
    if late:
        text += f"; not run: {', '.join(late)}"
    return "passed", text


def machine_lines(found):
    """The machine in a few lines of text."""
    gpus = found.get("gpus") or []
    lines = [f"GPU {number}: {gpu['name']}, {gpu['memory_bytes'] / 2**30:.0f} GiB, compute capability "
             f"{gpu['compute_capability']}, {gpu['multiprocessors']} multiprocessors, "
             f"{(gpu['l2_bytes'] or 0) / 2**20:.0f} MiB L2, MPS {'on' if gpu.get('mps') else 'off'}"
             for number, gpu in enumerate(gpus)]
    if not gpus:
        lines.append(f"GPU: none ({found.get('gpu_error') or 'the driver lists none'})")
    smi = {"driver_version": "unknown", **(found.get("nvidia_smi") or {})}
    named = {key: found.get(key) or "none" for key in
             ("cuda_of_driver", "nvcc_version", "cxx_version", "cmake_version", "ninja_version")}
    lines.append(f"driver: {smi['driver_version']}, for CUDA {named['cuda_of_driver']}; "
                 f"clocks at most {smi.get('clocks.max.sm', '?')} (SM), {smi.get('clocks.max.mem', '?')} (memory); "
                 f"compute mode {smi.get('compute_mode', '?')}, MIG {smi.get('mig.mode.current', '?')}")
    lines.append(f"nvcc: {named['nvcc_version']}; {os.path.basename(found.get('cxx') or '?')} {named['cxx_version']}; "
                 f"CMake {named['cmake_version']}; ninja {named['ninja_version']}; "
                 f"Python {found.get('python_version')}; "
                 f"CUB {'yes' if found.get('cub') else 'no'}; "
                 f"compute-sanitizer {'yes' if found.get('compute_sanitizer') else 'no'}")
    lines.append(f"host: {found.get('processor')}, {found.get('cores')} cores, {found.get('memory_gib')} GiB; "
                 f"{found.get('system')}, Linux {found.get('kernel')}")
    return lines


def cell(value):
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.3g}" if abs(value) < 1e4 else f"{value:.3e}"
    return str(value).replace("|", "\\|")


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return lines + ["| " + " | ".join(cell(value) for value in row) + " |" for row in rows]


def benchmark_lines(records):
    lines = []
    kinds = [kind for kind in TITLES if any(record.get("benchmark") == kind for record in records)]
    kinds += sorted({str(record.get("benchmark")) for record in records} - set(kinds))
    for kind in kinds:
        chosen = [record for record in records if str(record.get("benchmark")) == kind]
        columns = [key for key in KEYS + VALUES if any(record.get(key) is not None for record in chosen)]
        lines += ["", f"### {TITLES.get(kind, kind)}", ""]
        lines += table(columns, [[record.get(column) for column in columns] for record in chosen])
    return lines


def markdown(results):
    """The page. Everything in it comes from `results`."""
    name, why = verdict(results)
    rehearsal = results["rehearsal"]
    title = {None: "", "emulated": " (rehearsal with the emulated device)",
             "without GPU": " (rehearsal without a GPU)"}[rehearsal]
    lines = [f"# GPU check, {results['started'][:10]}{title}", "", f"**{name.capitalize()}:** {why}.", ""]
    if rehearsal:
        lines += ["No GPU took part: this shows that the commands work. Its times say nothing about a GPU.", ""]
    lines += [f"Source {results['source']}; began {results['started']}, took {results['seconds']:.0f} s in "
              f"{results['calls']} call{'s' if results['calls'] > 1 else ''} of at most {results['budget_s']:.0f} s.",
              "", "## Machine", ""]
    lines += [f"- {line}" for line in machine_lines(results["machine"])]
    if not results["rehearsal"]:
        lines.append("- ranks share the GPU " + ("through MPS" if results.get("mps") else "by taking turns"))
    if results["bundle"]:
        lines.append(f"- libraries from a bundle, {results['bundle'][0]}; "
                     + next((line for line in results["bundle"] if line.startswith("with CUDA")), "no MPI in it"))

    lines += ["", "## What ran", ""]
    lines += table(["part", "what", "result", "seconds"],
                   [[step["part"], step["name"], step["status"] + (f" ({step['why']})" if step.get("why") else ""),
                     step["seconds"]] for step in results["steps"]])
    if results["not_run"]:
        lines += ["", "Not run:", ""] + [f"- {entry['what']}: {entry['why']}" for entry in results["not_run"]]

    if results["tests"]:
        counts = {}
        for test in results["tests"]:
            counts[test["status"]] = counts.get(test["status"], 0) + 1
        lines += ["", "## Tests", "", ", ".join(f"{count} {status}" for status, count in sorted(counts.items())) + ".",
                  ""]
        lines += table(["test", "result", "seconds", "cases passed", "skipped", "why"],
                       [[test["name"], test["status"], test["seconds"], test.get("passed"), test.get("skipped"),
                         "; ".join(filter(None, [", ".join(test.get("failed", [])), test.get("why")])) or None]
                        for test in results["tests"]])

    if results["benchmarks"]:
        lines += ["", "## Goals", ""]
        lines += table(["goal", "worst measured", "reached"],
                       [[entry["goal"], entry["measured"],
                         "not measured" if entry["reached"] is None else "yes" if entry["reached"] else "no"]
                        for entry in goals(results["benchmarks"])])
        lines += ["", "## Benchmarks"] + benchmark_lines(results["benchmarks"])

    failures = [step for step in results["steps"] + results["tests"] if step["status"] in ("failed", "out of time")]
    if failures:
        lines += ["", "## Ends of the logs of what failed"]
        for step in failures:
            lines += ["", f"### {step['name']}", "", "```", step.get("tail", "").replace("```", "'''"), "```"]
    return "\n".join(lines) + "\n"


def write_file(path, text):
    """Writes a file at once, so that concurrent readers never see half of it."""
    with open(path + ".partial", "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(path + ".partial", path)


def without_folders(results):
    """The same with names instead of paths: those of one machine tell nothing on others."""
    sources = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))) + os.sep

    def short(entry):
        entry = {**entry, "log": os.path.basename(entry["log"])} if entry.get("log") else entry
        return {**entry, "tail": entry["tail"].replace(sources, "")} if entry.get("tail") else entry

    tools = {key: os.path.basename(value) for key, value in results["machine"].items()
             if key in ("cxx", "nvcc", "compute_sanitizer", "mps_control") and value}
    return {**results, "machine": {**results["machine"], **tools}, "steps": [short(step) for step in results["steps"]],
            "tests": [short(test) for test in results["tests"]]}


def write(results, stem):
    """Writes stem.json and stem.md."""
    os.makedirs(os.path.dirname(stem), exist_ok=True)
    results = without_folders(results)
    write_file(stem + ".json", json.dumps(results, indent=1) + "\n")
    write_file(stem + ".md", markdown(results))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: report.py RESULTS.json")
    with open(sys.argv[1], encoding="utf-8") as stored:
        print(markdown(json.load(stored)), end="")
