"""What scripts/gpu-check.sh does: builds for the GPU of this machine, runs what needs one, writes a report.

DNDS_GPU_BUNDLE=FILE: the default of --bundle.
"""

import argparse
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import machine  # noqa: E402
import report  # noqa: E402
from runner import Runner, tail  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PARTS = ["tests", "heat", "bench", "euler", "sanitizer"]

# Seconds that a part may take and that later parts are sure to get, for the standard budget; else in proportion. What a
# part leaves unused goes to those after it.
BUDGET = 520
CAPS = {"probe": 40, "configure": 60, "build": 260, "tests": 150, "heat": 40, "bench": 130, "euler": 60,
        "sanitizer": 120}
RESERVED = {"tests": 70, "heat": 10, "bench": 60, "euler": 10, "sanitizer": 25}
CLOSING = 6  # for the report


def arguments(argv):
    parser = argparse.ArgumentParser(prog="scripts/gpu-check.sh", add_help=False)
    parser.add_argument("--out", default=os.environ.get("OUT") or os.path.join(ROOT, "docs", "gpu-results"))
    parser.add_argument("--budget", type=float, default=BUDGET)
    parser.add_argument("--bundle", default=os.environ.get("DNDS_GPU_BUNDLE"))
    parser.add_argument("--build", default=os.path.join(ROOT, "build", "gpu-check"))
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--dry-run", action="store_true")
    parser.add_argument("--emulated", action="store_true")
    parser.add_argument("--compile-only", metavar="CC")
    options = parser.parse_args(argv)
    options.parts = [part for part in options.parts.split(",") if part]
    for part in options.parts:
        if part not in PARTS:
            parser.error(f"--parts: there is no part {part}; there are {', '.join(PARTS)}")
    if options.compile_only and (options.emulated or not re.fullmatch(r"\d+\.\d", options.compile_only)):
        parser.error("--compile-only: give a compute capability, such as 9.0, and not --emulated")
    if options.budget < 60:
        parser.error("--budget: at least 60 seconds are needed")
    standard = os.path.join(ROOT, "build", "gpu-bundle", "bundle.tar.gz")
    if options.bundle is None and os.path.exists(standard):
        options.bundle = standard
    if options.bundle and not os.path.exists(options.bundle):
        parser.error(f"--bundle: {options.bundle} does not exist; scripts/gpu-bundle.sh makes it")
    options.out, options.build = os.path.abspath(options.out), os.path.abspath(options.build)
    return options


def say(text):
    print(f"\033[1m==> {text}\033[0m", flush=True)


class Check:
    """One run: its options, what was found, and the results so far, which are on disk after each part."""

    def __init__(self, options, found):
        self.options = options
        self.found = found
        self.work = tempfile.mkdtemp(prefix="dnds-gpu-check-")
        self.runner = Runner(options.budget - CLOSING, os.path.join(options.build, "logs"))
        self.rehearsal = "emulated" if options.emulated else "compiled" if options.compile_only else None
        self.stem = os.path.join(options.out, time.strftime("%Y-%m-%d") + ("-rehearsal" if self.rehearsal else ""))
        self.capability = options.compile_only or (found["gpus"][0]["compute_capability"] if found["gpus"] else None)
        self.results = {
            "format": 1, "started": time.strftime("%Y-%m-%dT%H:%M:%S%z"), "finished": False,
            "budget_s": options.budget, "seconds": 0.0, "rehearsal": self.rehearsal, "parts": options.parts,
            "source": source_version(), "machine": found, "bundle": None, "steps": [], "tests": [], "benchmarks": [],
            "not_run": [],
        }
        self.todo = list(options.parts)

    # -----------------------------------------------------------------------------------------------------------------

    def limit(self, part):
        """Seconds that a part may take, so that those after it keep their reserve."""
        scale = self.options.budget / BUDGET
        later = sum(RESERVED[other] for other in self.todo if other != part) * scale
        return max(min(CAPS[part] * max(scale, 1), self.runner.left() - later), 0)

    def step(self, part, name, command, limit=None, environment=None, folder=None, quiet=False):
        outcome = self.runner.run(name, command, self.limit(part) if limit is None else limit, environment, folder)
        outcome["part"] = part
        if outcome["status"] != "passed":
            outcome["tail"] = tail(outcome["log"])
        self.results["steps"].append(outcome)
        if not quiet or outcome["status"] != "passed":
            print(f"    {outcome['status']}: {name} ({outcome['seconds']:.1f} s, after {self.runner.elapsed():.0f} s)"
                  + (f": {outcome['why']}" if outcome.get("why") else ""), flush=True)
        self.save()
        return outcome

    def not_run(self, what, why):
        print(f"    not run: {what}: {why}", flush=True)
        self.results["not_run"].append({"what": what, "why": why})
        self.save()

    def save(self):
        self.results["seconds"] = round(self.runner.elapsed(), 1)
        report.write(self.results, self.stem)

    # -----------------------------------------------------------------------------------------------------------------

    def unpack(self):
        """Makes the bundle's MPI and libraries known to the commands that follow."""
        environment = self.runner.environment
        paths = [os.path.dirname(tool) for tool in (self.found["nvcc"], self.found["compute_sanitizer"]) if tool]
        self.flags = []
        if self.options.bundle:
            with tarfile.open(self.options.bundle) as archive:
                if hasattr(tarfile, "fully_trusted_filter"):
                    archive.extractall(self.work, filter="fully_trusted")
                else:
                    archive.extractall(self.work)
            with open(os.path.join(self.work, "CONTENTS"), encoding="utf-8") as file:
                self.results["bundle"] = file.read().splitlines()
            deps, openmpi = os.path.join(self.work, "deps"), os.path.join(self.work, "openmpi")
            libraries = glob.glob(os.path.join(deps, "lib", "*-linux-gnu")) + [os.path.join(deps, "lib")]
            # Old-style run paths, which hold for the libraries of libraries, too.
            linker = " ".join(f"-Wl,-rpath-link,{folder} -Wl,-rpath,{folder}" for folder in libraries)
            linker = f"-Wl,--disable-new-dtags {linker}"
            self.flags = [f"-DCMAKE_PREFIX_PATH={deps}", f"-DCMAKE_EXE_LINKER_FLAGS={linker}",
                          f"-DCMAKE_SHARED_LINKER_FLAGS={linker}", "-DDNDS_CGNS=OFF"]
            if os.path.isdir(openmpi):
                paths.insert(0, os.path.join(openmpi, "bin"))
                environment["OPAL_PREFIX"] = openmpi
                environment["LD_LIBRARY_PATH"] = os.pathsep.join(
                    [os.path.join(openmpi, "lib")] + list(filter(None, [environment.get("LD_LIBRARY_PATH")])))
                self.flags.append(f"-DMPI_HOME={openmpi}")
        environment["PATH"] = os.pathsep.join(paths + [environment.get("PATH", "/usr/bin:/bin")])
        environment.update({
            "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            "OMPI_MCA_rmaps_base_oversubscribe": "1", "OMPI_MCA_hwloc_base_binding_policy": "none",
            "OMPI_MCA_btl_base_warn_component_unused": "0", "OMPI_MCA_opal_warn_on_missing_libcuda": "0",
            "OMPI_MCA_btl_vader_single_copy_mechanism": "none",
            "TMPDIR": "/tmp",  # Open MPI's session folder must have a short name
        })
        if not (shutil.which("ssh") or shutil.which("rsh")):
            environment["OMPI_MCA_plm"] = "isolated"  # or Open MPI's mpiexec gives up, even with one machine
        if not self.options.emulated:
            # Several ranks on one GPU may open each other's memory; without this, Open MPI copies through the host.
            environment.update({"OMPI_MCA_pml": "ob1", "OMPI_MCA_btl": "self,smcuda,vader",
                                "OMPI_MCA_btl_smcuda_use_cuda_ipc_same_gpu": "1"})
        # Without shared memory of a useful size, ranks of one node fail late and strangely.
        shared = shutil.disk_usage("/dev/shm").free if os.path.isdir("/dev/shm") else 0
        self.results["machine"]["dev_shm_mib"] = shared // 2**20

    def probe_mpi(self):
        """Whether processes can be started. Returns False if nothing further makes sense."""
        return self.step("probe", "start two processes",
                         ["mpiexec", "-n", "2", "--oversubscribe", "--allow-run-as-root", "true"]
                         if self.found_openmpi() else ["mpiexec", "-n", "2", "true"], 30)["status"] == "passed"

    def found_openmpi(self):
        asked = subprocess.run(["mpiexec", "--version"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               check=False, env=self.runner.environment, timeout=30)
        return re.search("open.?mpi|openrte|prrte", asked.stdout.decode(errors="replace"), re.I) is not None

    def probe(self):
        """Whether a kernel compiled here runs here. Returns False if nothing further makes sense."""
        source, program = os.path.join(self.work, "probe.cu"), os.path.join(self.work, "probe")
        with open(source, "w", encoding="utf-8") as file:
            file.write(machine.PROBE)
        capability = self.capability.replace(".", "")
        compiled = self.step("probe", "compile a kernel",
                             [self.found["nvcc"], f"-arch=sm_{capability}", "-ccbin", self.found["cxx"], "-o", program,
                              source])
        if compiled["status"] != "passed" or self.options.compile_only:
            return compiled["status"] == "passed"
        return self.step("probe", "run a kernel", [program])["status"] == "passed"

    def configure(self):
        flags = ["-S", ROOT, "-B", self.options.build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
                 "-DDNDS_BUILD_BENCHMARKS=ON", "-DDNDS_PETSC=OFF", "-DDNDS_HYPRE=OFF", "-DDNDS_INSTALL=OFF",
                 *self.flags]
        if self.options.emulated:
            flags.append("-DDNDS_DEVICE=emulated")
        else:
            capability = self.capability.replace(".", "")
            flags += ["-DDNDS_DEVICE=cuda", f"-DCMAKE_CUDA_ARCHITECTURES={capability}-real",
                      f"-DCMAKE_CUDA_COMPILER={self.found['nvcc']}"]
        # A cache of another run would keep its paths, which are gone.
        cache = os.path.join(self.options.build, "CMakeCache.txt")
        if os.path.exists(cache):
            os.remove(cache)
        return self.step("configure", "configure", ["cmake", *flags])["status"] == "passed"

    def build(self):
        """Builds target by target, in the order of use, so that what does not compile keeps nobody from the rest.
        Returns the targets that are there."""
        listed = subprocess.run(["ninja", "-C", self.options.build, "-t", "targets", "all"], stdout=subprocess.PIPE,
                                stderr=subprocess.DEVNULL, check=False, env=self.runner.environment).stdout.decode()
        known = set(re.findall(r"^([\w.+-]+): phony$", listed, re.M))
        wanted = {"tests": ["tests_device"], "heat": ["heat"], "bench": ["bench_gpu"], "euler": ["euler"],
                  "sanitizer": ["tests_device"]}
        built = set()
        # One call for all, so that all processors are busy; should that fail, one by one to know what is there.
        targets = list(dict.fromkeys(target for part in self.options.parts for target in wanted[part]))
        for target in [target for target in targets if target not in known]:
            self.not_run(f"building {target}", "this version of DNDS has no such target")
        targets = [target for target in targets if target in known]
        command = ["ninja", "-C", self.options.build, f"-j{self.options.jobs}", "-k", "0"]
        if self.step("build", "build", [*command, *targets])["status"] == "passed":
            return set(targets)
        for target in targets:
            outcome = self.step("build", f"build {target}", [*command, target], min(self.limit("build"), 60))
            if outcome["status"] == "passed":
                built.add(target)
        return built

    # -----------------------------------------------------------------------------------------------------------------

    def tests(self):
        limit = self.limit("tests")
        # ctest is asked to end by itself before it would be stopped, so that its summary is complete.
        stop = time.strftime("%H:%M:%S", time.localtime(time.time() + max(limit - 10, 5)))
        outcome = self.step("tests", "tests", ["ctest", "--test-dir", self.options.build, "-L", "^device$", "-j",
                                               str(min(self.options.jobs, 8)), "--stop-time", stop, "--timeout", "60",
                                               "--output-on-failure"], limit)
        with open(outcome["log"], encoding="utf-8", errors="replace") as file:
            self.results["tests"] = report.parse_ctest(file.read())
        self.save()

    def test_commands(self):
        """Command and environment of each test with the label device, as ctest would run it."""
        listed = subprocess.run(["ctest", "--test-dir", self.options.build, "-L", "^device$", "--show-only=json-v1"],
                                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False,
                                env=self.runner.environment).stdout.decode()
        tests = []
        for test in json.loads(listed or "{}").get("tests", []):
            properties = {entry["name"]: entry["value"] for entry in test.get("properties", [])}
            pairs = [pair.split("=", 1) for pair in properties.get("ENVIRONMENT", []) if "=" in pair]
            tests.append({"name": test["name"], "command": test.get("command", []), "environment": dict(pairs),
                          "labels": properties.get("LABELS", [])})
        return tests

    def mpirun(self, ranks, *command):
        return [os.path.join(ROOT, "scripts", "mpirun.sh"), str(ranks), *command]

    def program(self, pattern):
        found = glob.glob(os.path.join(self.options.build, pattern))
        return found[0] if found else None

    def heat(self):
        program = self.program("cases/heat/heat")
        size = ["--cells", "64,48,40", "--steps", "40"] if self.options.emulated else ["--cells", "256,192,128",
                                                                                       "--steps", "200"]
        records = os.path.join(self.work, "heat.json")
        for ranks in (1, 2, 4):
            self.step("heat", f"heat on {ranks} ranks, device against host",
                      self.mpirun(ranks, program, "--on", "both", "--json", records, *size),
                      min(self.limit("heat"), 40))
            self.keep_records(records)

    def bench(self):
        program = self.program("bench/gpu/bench_gpu")
        records = os.path.join(self.work, "bench.json")
        for ranks in (1, 2, 4):
            limit = max(min(self.limit("bench"), {1: 60, 2: 45, 4: 45}[ranks]), 0)
            command = [program, "--json", records, "--seconds", str(int(max(limit - 12, 5)))]
            if self.options.emulated:
                command.append("--quick")
            self.step("bench", f"bench_gpu on {ranks} ranks", self.mpirun(ranks, *command), limit)
            self.keep_records(records)

    def keep_records(self, path):
        """Takes the records that a program wrote, also one that was stopped, and removes the file."""
        self.results["benchmarks"] += report.read_records(path)
        if os.path.exists(path):
            os.remove(path)
        self.save()

    def euler(self):
        """Cells a second of the Euler case on the device, and on the host for comparison."""
        folder = os.path.join(ROOT, "cases", "euler")
        with open(os.path.join(folder, "euler.schema.json"), encoding="utf-8") as file:
            if '"device"' not in file.read():
                self.not_run("the Euler case on the device", "this version computes it on the host only")
                return
        program = self.program("cases/euler/euler")
        cells, steps = (16, 4) if self.options.emulated else (1000, 60)
        # One rank has its step in one graph, several have parts; without graphs, kernels are started one by one.
        runs = [(1, "cuda", True), (1, "cuda", False), (2, "cuda", True), (2, "cuda", False), (4, "cuda", True),
                (min(self.found["cores"], 16), "host", False)]
        for ranks, device, graphs in runs:
            how = device + (", graphs" if graphs else "")
            output = os.path.join(self.work, f"euler-{ranks}-{device}-{graphs}")
            changes = [f"scheme.device={device}", f"scheme.graphs={str(graphs).lower()}",
                       f"mesh.box.cells=[{cells},{cells}]", f"time.steps={steps}",
                       f"output.folder={output}", "output.fields=false"]
            options = [word for change in changes for word in ("--set", change)]
            outcome = self.step("euler", f"euler on {ranks} ranks, {how}",
                                self.mpirun(ranks, program, os.path.join(folder, "vortex.json"), *options),
                                min(self.limit("euler"), 40))
            if outcome["status"] != "passed":
                continue
            with open(os.path.join(output, "run.json"), encoding="utf-8") as file:
                run = json.load(file)
            name = device if device == "host" else "emulated" if self.options.emulated else "cuda"
            self.results["benchmarks"].append(
                {"benchmark": "euler", "device": name, "graphs": graphs, "ranks": ranks, "cells": run["cells"],
                 "launches_of_graphs": run.get("graphs", {}).get("launches"),
                 "why_no_graphs": run.get("graphs", {}).get("why not"),
                 "cells_per_s": run["cells"] * run["costs"]["steps"] / run["costs"]["seconds"],
                 "density_error": run.get("density error", {}).get("mean")})
            self.save()

    def sanitizer(self):
        tool = self.found["compute_sanitizer"]
        if self.options.emulated or not tool:
            self.not_run("compute-sanitizer", "a rehearsal has no GPU" if self.options.emulated else "it was not found")
            return
        # Some virtual machines keep it from the device; that is no failure of DNDS.
        memcheck = [tool, "--tool", "memcheck", "--error-exitcode", "99", "--target-processes", "all"]
        outcome = self.runner.run("sanitizer probe", [*memcheck, os.path.join(self.work, "probe")], 30)
        if outcome["status"] != "passed":
            self.not_run("compute-sanitizer", "it does not work on this machine: "
                         + " / ".join(tail(outcome["log"], 3).splitlines()))
            return
        ran = 0
        for test in self.test_commands():
            labels = test["labels"]
            command = test["command"]
            if not command or not ("np2" in labels or not any(label.startswith("np") for label in labels)):
                continue
            programs = [number for number, word in enumerate(command)
                        if os.path.realpath(word).startswith(os.path.realpath(self.options.build) + os.sep)
                        and os.access(word, os.X_OK) and os.path.isfile(word)]
            if not programs:
                continue
            command = command[:programs[0]] + memcheck + command[programs[0]:]
            environment = {**test["environment"], "DNDS_TEST_TIMEOUT_S": "80"}
            self.step("sanitizer", f"memcheck {test['name']}", command, min(90, self.runner.left() - 1), environment)
            ran += 1
        if ran == 0:
            self.not_run("compute-sanitizer", "no test was built")

    # -----------------------------------------------------------------------------------------------------------------

    def all(self):
        say(f"unpacking {self.options.bundle}" if self.options.bundle else "no bundle: using what is installed")
        self.unpack()
        if not shutil.which("mpiexec", path=self.runner.environment["PATH"]):
            self.not_run("everything", "there is no mpiexec: neither in the bundle nor installed")
            return
        if not self.probe_mpi():
            return
        if not self.options.emulated:
            say("a first kernel")
            if not self.probe():
                return
        say("configuring")
        if not self.configure():
            return
        say("building")
        built = self.build()
        needs = {"tests": "tests_device", "heat": "heat", "bench": "bench_gpu", "euler": "euler",
                 "sanitizer": "tests_device"}
        for part in self.options.parts:
            if self.options.compile_only:
                self.not_run(part, "only compiled, as asked for")
                continue
            say(part)
            # ctest runs what was built; the rest of a half-built set shows as failed, which it is.
            if needs[part] not in built and part not in ("tests", "sanitizer"):
                self.not_run(part, f"{needs[part]} was not built")
            elif self.limit(part) < 5:
                self.not_run(part, "no time was left")
            else:
                getattr(self, part)()
            self.todo.remove(part)
        self.results["finished"] = True

    def close(self):
        self.save()
        shutil.rmtree(self.work, ignore_errors=True)


def source_version():
    """The commit of the sources, where git knows it."""
    commit = machine.output_of(["git", "-C", ROOT, "rev-parse", "--short=12", "HEAD"])
    changed = machine.output_of(["git", "-C", ROOT, "status", "--porcelain", "--untracked-files=no"])
    return (commit + (" with changes" if changed else "")) if commit else "unknown (no git here)"


def main(argv):
    options = arguments(argv)
    found = machine.facts()
    lacks = machine.missing(found, cuda=not options.emulated, gpu=not (options.emulated or options.compile_only),
                            bundle=bool(options.bundle))
    for line in report.machine_lines(found):
        print(line)
    print(f"bundle: {options.bundle or 'none (scripts/gpu-bundle.sh makes one)'}")
    if lacks:
        print("\nThis machine lacks:\n" + "\n".join(f"  - {line}" for line in lacks))
    if options.dry_run:
        print(f"\nWould build for {'the emulated device' if options.emulated else 'CUDA'} in {options.build} with "
              f"{options.jobs} jobs and run {', '.join(options.parts)} within {options.budget:.0f} s; results to "
              f"{options.out}")
    if lacks:
        print("\nNothing was built.")
        return 3
    if options.dry_run:
        return 0

    check = Check(options, found)

    def stop(number, _frame):
        raise SystemExit(128 + number)

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, stop)
    try:
        check.all()
    finally:
        check.close()
    verdict, why = report.verdict(check.results)
    say(f"{verdict}: {why}")
    print(f"report: {check.stem}.md\nvalues: {check.stem}.json\nlogs:   {check.runner.log_folder}")
    return 0 if verdict == "passed" else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
