"""Runs a benchmark several times and appends its ratios to bench/history/NAME.jsonl; scripts/bench.sh calls it.

    history.py NAME PROGRAM [--runs 5] [--build PRESET]

A line is a case of one record: date, commit, processor, MPI, build, number of runs, processor cores that other
programs used meanwhile, and of each ratio the lower quartile, the median and the upper quartile over the runs. Times
are not kept: they compare within one run only.
"""

import argparse
import datetime
import json
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import time

from programs import PROGRAMS

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / "bench/history"
SETTING = ("cpu", "cores", "mpi", "build")  # records compare with those of the same setting only


def matches(case, where):
    """Whether a case has these values; a tuple of values means any of them."""
    return all(case.get(key) in (value if isinstance(value, tuple) else (value,)) for key, value in where.items())


def ratios_of(program, records, ranks):
    """(case, key of the ratio, value) of the records of one run that are kept."""
    least = least_times(program, records)
    for record in usual(program, records):
        case = {"ranks": ranks, **{key: record[key] for key in program.case if record.get(key) is not None}}
        for key in program.ratios:
            if record.get(key) is not None:
                yield case, key, record[key]
        times = least.get(compared(program, record), {})
        for key, names in program.least.items():
            baselines = [times[name] for name in names if name in times]
            if baselines and record[program.method] in times:
                yield case, key, times[record[program.method]] / min(baselines)


def usual(program, records):
    """Of each case the record of the regime with the most repetitions: the ranks' cores may be near or far apart."""
    cases = {}
    for record in records:
        if not matches(record, {key: values for key, values in program.only.items() if key in record}):
            continue
        case = tuple(record.get(key) for key in program.case)
        if case not in cases or record.get("repetitions", 0) > cases[case].get("repetitions", 0):
            cases[case] = record
    return cases.values()


def compared(program, record):
    """What records of DNDS and of its baselines have in common."""
    return (record.get("regime"), *(record.get(key) for key in program.case if key != program.method))


def least_times(program, records):
    """The least microseconds by method, of all that is compared."""
    least = {}
    for record in records:
        if record.get("min_us") is not None:
            least.setdefault(compared(program, record), {})[record[program.method]] = record["min_us"]
    return least


def summary(values):
    """Lower quartile, median and upper quartile with four digits."""
    quartiles = statistics.quantiles(values, n=4, method="inclusive") if len(values) > 1 else values * 3
    return [float(f"{value:.4g}") for value in quartiles]


def busy_seconds():
    """Processor seconds that all programs of the machine have used, and the hypervisor for others."""
    with open("/proc/stat", encoding="ascii") as file:
        user, nice, system, _, _, interrupts, soft, stolen = map(int, file.readline().split()[1:9])
    return (user + nice + system + interrupts + soft + stolen) / os.sysconf("SC_CLK_TCK")


def own_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run_once(command):
    """The records of a run, and how many cores other programs used meanwhile."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "records.json")
        begin, busy, own = time.monotonic(), busy_seconds(), own_seconds()
        done = subprocess.run([*command, "--json", path], stdout=subprocess.PIPE, text=True, check=False)
        seconds = time.monotonic() - begin
        others = (busy_seconds() - busy - own_seconds() + own) / seconds
        if done.returncode:
            sys.exit(f"{done.stdout}history.py: '{' '.join(command)}' ended with {done.returncode}")
        with open(path, encoding="utf-8") as file:
            return json.load(file), max(0, others)


def commit():
    """The commit's short hash, followed by + where sources differ from it."""
    def git(*arguments):
        done = subprocess.run(["git", *arguments], cwd=ROOT, check=False, capture_output=True, text=True)
        return done.stdout.strip()

    changed = git("status", "--porcelain", "--", "src", "bench", "cases", "cmake", ":!bench/history")
    return (git("rev-parse", "--short=8", "HEAD") or "unknown") + ("+" if changed else "")


def measure(program, launcher, path, runs):
    """The lines of one record, without date and commit."""
    samples, cases, others = {}, {}, []
    for _ in range(runs):
        for ranks in program.ranks:
            records, busy = run_once([*launcher, str(ranks), path, *program.arguments.split()])
            others.append(busy)
            for case, key, value in ratios_of(program, records, ranks):
                name = json.dumps(case)
                cases[name] = case
                samples.setdefault(name, {}).setdefault(key, []).append(value)
    made = {"cpu": records[0].get("cpu", "unknown"), "cores": len(os.sched_getaffinity(0)),
            "mpi": records[0].get("mpi", "unknown"), "runs": runs, "others": round(statistics.median(others), 1)}
    return [{**made, "case": cases[name], "ratios": {key: summary(values) for key, values in ratios.items()}}
            for name, ratios in samples.items()]


def read(path):
    """The lines of a history, oldest first."""
    if not path.is_file():
        return []
    return sorted((json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line),
                  key=lambda line: line["date"])


def append(path, lines):
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "a", encoding="utf-8") as file:
        file.writelines(json.dumps(line) + "\n" for line in lines)


def newest(lines):
    return [line for line in lines if line["date"] == lines[-1]["date"]]


def before(lines):
    """The record before the newest one in the same setting, or no lines."""
    last = lines[-1]
    older = [line for line in lines if line["date"] < last["date"] and all(line[key] == last[key] for key in SETTING)]
    return newest(older) if older else []


def pairs(old, new):
    """(case, key, old quartiles, new quartiles) of ratios that are in both records."""
    known = {json.dumps(line["case"]): line["ratios"] for line in old}
    for line in new:
        for key, quartiles in line["ratios"].items():
            if key in known.get(json.dumps(line["case"]), {}):
                yield line["case"], key, known[json.dumps(line["case"])][key], quartiles


def changed(old, new):
    """One line of text for each ratio whose quartiles lie apart from those of the record before."""
    return [f"{'slower' if now[1] > was[1] else 'faster'}? {name_of(case)}, {key}: {was[1]:.3g} -> {now[1]:.3g}"
            for case, key, was, now in pairs(old, new) if now[0] > was[2] or now[2] < was[0]]


def name_of(case):
    return ", ".join(f"{key.replace('_', ' ')} {value}" if isinstance(value, (int, float)) else value
                     for key, value in case.items())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", choices=PROGRAMS)
    parser.add_argument("program")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--build", default="bench")
    options = parser.parse_args()
    made = {"date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"), "commit": commit(),
            "build": options.build}
    lines = measure(PROGRAMS[options.name], [str(ROOT / "scripts/mpirun.sh")], options.program, options.runs)
    path = FOLDER / f"{options.name}.jsonl"
    append(path, [{**made, **line} for line in lines])
    history = read(path)
    print(f"{len(lines)} cases appended to {path.relative_to(ROOT)}; other programs used {lines[0]['others']} cores")
    print(*changed(before(history), newest(history)), sep="\n", end="")


if __name__ == "__main__":
    main()
