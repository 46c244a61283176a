"""The tests labelled `device`: which there are, in which order, and running a few at a time on one GPU."""

import concurrent.futures
import json
import os
import re
import subprocess

# Groups by value, and how the names of their tests begin; a test without another group is of the last one. Benchmarks
# are run with their own options.
GROUPS = {
    "core": ("storage", "device", "array_types", "dof", "heat", "cuda_no_driver"),
    "tasks": ("task", "trace"),
    "euler": ("euler",),
    "one-sided": ("one_sided", "proxy"),
    "fields": ("",),
}
LEFT_OUT = ("bench",)

# Processes without MPS take turns on a GPU: few ranks at a time, and those of a test on 8 ranks alone.
RANKS_AT_ONCE = 4
LIMIT = 90  # seconds of one test at most
NO_TIME = "no time was left"
MOST_HUNG = 3  # tests of a group without end, after which the rest of the group is left out
RANKS_BY_VALUE = [1, 2, 4, 3, 8]


def group_of(name):
    for group, beginnings in GROUPS.items():
        if name.startswith(beginnings) and not name.startswith(LEFT_OUT):
            return group
    return None


def listed(build, environment):
    """The tests of a build folder by value: name, group, target, ranks, command, environment, limit. A test whose
    program is not built has no command."""
    text = subprocess.run(["ctest", "--test-dir", build, "-L", "^device$", "--show-only=json-v1"],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False,
                          env=environment).stdout.decode()
    tests = []
    for entry in json.loads(text or "{}").get("tests", []):
        properties = {pair["name"]: pair["value"] for pair in entry.get("properties", [])}
        pairs = [pair.split("=", 1) for pair in properties.get("ENVIRONMENT", []) if "=" in pair]
        command = entry.get("command", [])
        programs = [word for word in command[1:]
                    if word.startswith(build + os.sep) and "." not in os.path.basename(word)]
        if not all(os.access(program, os.X_OK) for program in programs):
            command = []
        ranks = [int(label[2:]) for label in properties.get("LABELS", []) if re.fullmatch(r"np\d+", label)]
        limit = min(LIMIT, properties.get("TIMEOUT") or LIMIT)
        variables = dict(pairs)
        if "DNDS_TEST_TIMEOUT_S" in variables:  # the test itself says where it hangs, before it is stopped
            variables["DNDS_TEST_TIMEOUT_S"] = str(int(limit * 5 / 6))
        tests.append({"name": entry["name"], "group": group_of(entry["name"]), "ranks": ranks[0] if ranks else 1,
                      "target": os.path.basename(programs[0]) if programs else entry["name"].split(".")[0],
                      "command": command, "environment": variables, "limit": limit})
    tests = [test for test in tests if test["group"]]
    order = {ranks: place for place, ranks in enumerate(RANKS_BY_VALUE)}
    return sorted(tests, key=lambda test: (list(GROUPS).index(test["group"]), order.get(test["ranks"], len(order))))


def judge(outcome, output):
    """The result of a test: name, status, seconds, cases that passed, were skipped and failed, and why."""
    def count(word):
        found = re.findall(rf"^\[  {word} \] (\d+) tests?\b", output, re.M)
        return int(found[-1]) if found else None

    result = {"name": outcome["name"], "status": outcome["status"], "seconds": outcome["seconds"],
              "passed": count("PASSED "), "skipped": count("SKIPPED"),
              "failed": sorted(set(re.findall(r"^\[  FAILED  \] ([\w/]+\.[\w/]+)", output, re.M))),
              "why": outcome.get("why")}
    reasons = re.findall(r": Skipped\n(.+)$|^(on the host alone: .+)$", output, re.M)
    # Cases of the host alone are no success on a GPU.
    without = [one or other for one, other in reasons if other or "no CUDA device" in one]
    if result["status"] == "passed" and (result["passed"] == 0 or without):
        result["status"] = "skipped"
    if result["status"] == "skipped" and reasons:
        result["why"] = (without or [one or other for one, other in reasons])[0]
    if result["status"] in ("failed", "out of time"):
        said = re.findall(r"^.*(?:no end after|uncaught exception|CUDA says|Error on rank).*$", output, re.M)
        result["why"] = "; ".join(filter(None, [result["why"], said[0][:200] if said else None])) or None
    return result


def run(tests, runner, limit, done):
    """Runs tests in their order, RANKS_AT_ONCE ranks at a time, for at most `limit` seconds, and calls `done(result,
    outcome)` after each. Returns what was left out and why: pairs."""
    end = runner.elapsed() + limit
    waiting, running, left_out, hung = list(tests), {}, [], 0

    def one(test):
        if not test["command"]:
            return {"name": test["name"], "status": "not run", "seconds": 0.0, "code": None, "log": None,
                    "why": f"{test['target']} was not built"}
        time_left = end - runner.elapsed()
        outcome = runner.run(test["name"], test["command"], min(test["limit"], time_left), test["environment"])
        if outcome["status"] == "out of time" and time_left < test["limit"]:
            outcome.update(status="not run", why=f"stopped after {outcome['seconds']:.0f} s: the time was up")
        return outcome

    with concurrent.futures.ThreadPoolExecutor(RANKS_AT_ONCE) as pool:
        try:
            while waiting or running:
                used = sum(test["ranks"] for test in running.values())
                why = (NO_TIME if end - runner.elapsed() < 5 else
                       f"{hung} tests before it did not end" if hung >= MOST_HUNG else None)
                if why:
                    left_out += [(test, why) for test in waiting]
                    waiting = []
                if waiting and (not running or used + waiting[0]["ranks"] <= RANKS_AT_ONCE):
                    test = waiting.pop(0)
                    running[pool.submit(one, test)] = test
                    continue
                for future in concurrent.futures.wait(running, return_when=concurrent.futures.FIRST_COMPLETED)[0]:
                    del running[future]
                    outcome = future.result()
                    text = ""
                    if outcome["log"]:
                        with open(outcome["log"], encoding="utf-8", errors="replace") as file:
                            text = file.read()
                    hung += outcome["status"] == "out of time"
                    done(judge(outcome, text), outcome)
        except BaseException:
            runner.abort()
            raise
    return left_out
