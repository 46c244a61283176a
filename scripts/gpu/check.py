"""What scripts/gpu-check.sh does: builds for the GPU of this machine, runs what needs one, writes a report.

DNDS_GPU_BUNDLE=FILE: the default of --bundle.
"""

import argparse
import glob
import hashlib
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
import device_tests  # noqa: E402
import machine  # noqa: E402
import programs  # noqa: E402
import report  # noqa: E402
from runner import Runner, tail  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# In the order of their value, so that a call that is cut has the most valuable results.
PARTS = ["layout", *report.TESTS, "bench", "sanitizer"]

# Seconds that a part may take in one call at most, for the standard budget; else in proportion.
BUDGET = 520
CAPS = {"probe": 40, "configure": 120, "layout": 120, "build": 300, "core": 240, "tasks": 150, "euler": 150,
        "one-sided": 150, "fields": 150, "bench": 130, "sanitizer": 150}
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
    parser.add_argument("--without-gpu", metavar="CC")
    parser.add_argument("--fresh", action="store_true")
    parser.add_argument("--no-mps", action="store_true")
    parser.add_argument("--pack", metavar="FILE")
    parser.add_argument("--prebuilt", metavar="FILE")
    options = parser.parse_args(argv)
    options.parts = [part for part in options.parts.split(",") if part]
    for part in options.parts:
        if part not in PARTS:
            parser.error(f"--parts: there is no part {part}; there are {', '.join(PARTS)}")
    if options.without_gpu and (options.emulated or not re.fullmatch(r"\d+\.\d", options.without_gpu)):
        parser.error("--without-gpu: give a compute capability, such as 9.0, and not --emulated")
    if options.pack and not options.without_gpu:
        parser.error("--pack: programs are packed by a rehearsal, --without-gpu CC")
    if options.prebuilt and not os.path.exists(options.prebuilt):
        parser.error(f"--prebuilt: {options.prebuilt} does not exist; --without-gpu CC --pack FILE makes it")
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
    """One call: its options, findings, and the results so far, which are on disk after each step. A call continues
    a cut one with the same sources in this build folder."""

    def __init__(self, options, found):
        self.options = options
        self.found = found
        self.runner = Runner(options.budget - CLOSING, os.path.join(options.build, "logs"))
        self.rehearsal = "emulated" if options.emulated else "without GPU" if options.without_gpu else None
        self.capability = options.without_gpu or (found["gpus"][0]["compute_capability"] if found["gpus"] else None)
        self.state = os.path.join(options.build, "state.json")
        key = [hash_of_sources(), self.rehearsal, self.capability, found["nvcc_version"]]
        self.results = self.earlier(key) or {
            "format": 2, "key": key, "started": time.strftime("%Y-%m-%dT%H:%M:%S%z"), "seconds": 0.0, "calls": 0,
            "rehearsal": self.rehearsal, "source": source_version(), "bundle": None, "steps": [], "tests": [],
            "benchmarks": [], "done": [],
        }
        self.mps = None  # the tool that controls it and its folder, while it runs
        self.before = self.results["seconds"]
        self.results["calls"] += 1
        self.results.update(finished=False, budget_s=options.budget, parts=options.parts, machine=found, not_run=[])
        began = self.results["started"][:16].replace("T", "-").replace(":", "")
        self.stem = os.path.join(options.out, began + ("-rehearsal" if self.rehearsal else ""))

    def earlier(self, key):
        """The results of calls that were cut, if they are of these sources and this kind of machine."""
        if self.options.fresh:
            return None
        try:
            with open(self.state, encoding="utf-8") as file:
                results = json.load(file)
        except (OSError, ValueError):
            return None
        if results.get("key") != key or set(self.options.parts) <= set(results["done"]):
            return None
        say(f"going on with the run of {results['started']}: {len(results['tests'])} tests and "
            f"{', '.join(results['done']) or 'no part'} are done (--fresh begins anew)")
        return results

    # -----------------------------------------------------------------------------------------------------------------

    def limit(self, part):
        """Seconds that a part may take."""
        return max(min(CAPS[part] * max(self.options.budget / BUDGET, 1), self.runner.left()), 0)

    def step(self, part, name, command, limit=None, environment=None, folder=None):
        """Runs a command and keeps its outcome. One with an outcome from an earlier call is not run again, unless it
        prepares others."""
        known = next((step for step in self.results["steps"] if step["name"] == name), None)
        if known and known["status"] != "not run" and part not in ("probe", "configure", "build"):
            return known
        outcome = self.runner.run(name, command, self.limit(part) if limit is None else limit, environment, folder)
        outcome["part"] = part
        if outcome["status"] == "out of time" and self.runner.left() < 2:
            outcome.update(status="not run", why=f"stopped after {outcome['seconds']:.0f} s: the time was up")
        if outcome["status"] != "passed":
            outcome["tail"] = tail(outcome["log"])
        self.results["steps"] = [step for step in self.results["steps"] if step["name"] != name] + [outcome]
        self.tell(outcome)
        return outcome

    def tell(self, outcome):
        why = f": {outcome['why']}" if outcome.get("why") else ""
        print(f"    {outcome['status']}: {outcome['name']} ({outcome['seconds']:.1f} s, after "
              f"{self.runner.elapsed():.0f} s){why}", flush=True)
        if outcome["status"] == "failed":
            print("".join(f"        {line}\n" for line in outcome["tail"].splitlines()[-6:]), end="", flush=True)
        self.save()

    def not_run(self, what, why):
        print(f"    not run: {what}: {why}", flush=True)
        self.results["not_run"].append({"what": what, "why": why})
        self.save()

    def save(self):
        self.results["seconds"] = round(self.before + self.runner.elapsed(), 1)
        report.write(self.results, self.stem)
        report.write_file(self.state, json.dumps(self.results) + "\n")

    def keep_logs(self):
        """Packs the logs of failed steps and tests, for readers without access to this machine."""
        bad = [entry["log"] for entry in self.results["steps"] + self.results["tests"]
               if entry["status"] not in ("passed", "skipped") and entry.get("log") and os.path.exists(entry["log"])]
        if bad:
            with tarfile.open(self.stem + "-logs.tar.gz.partial", "w:gz") as archive:
                for log in bad:
                    archive.add(log, os.path.basename(log))
            os.replace(self.stem + "-logs.tar.gz.partial", self.stem + "-logs.tar.gz")

    # -----------------------------------------------------------------------------------------------------------------

    def unpack(self):
        """Makes the bundle's MPI and libraries known to the commands that follow."""
        environment = self.runner.environment
        self.nvcc = self.found["nvcc"]
        if self.nvcc and not self.options.emulated:
            self.nvcc = machine.whole_toolkit(self.nvcc, os.path.join(self.options.build, "toolkit"))
        paths = [os.path.dirname(tool) for tool in (self.nvcc, self.found["compute_sanitizer"]) if tool]
        self.flags = []
        if self.options.bundle:
            unpacked = unpacked_bundle(self.options.bundle, self.options.build)
            with open(os.path.join(unpacked, "CONTENTS"), encoding="utf-8") as file:
                self.results["bundle"] = file.read().splitlines()
            deps, openmpi = os.path.join(unpacked, "deps"), os.path.join(unpacked, "openmpi")
            libraries = glob.glob(os.path.join(deps, "lib", "*-linux-gnu")) + [os.path.join(deps, "lib")]
            # Old-style run paths, which hold for the libraries of libraries, too.
            linker = " ".join(f"-Wl,-rpath-link,{folder} -Wl,-rpath,{folder}" for folder in libraries)
            linker = f"-Wl,--disable-new-dtags {linker}"
            self.flags = [f"-DCMAKE_PREFIX_PATH={deps}", f"-DCMAKE_EXE_LINKER_FLAGS={linker}",
                          f"-DCMAKE_SHARED_LINKER_FLAGS={linker}", "-DDNDS_CGNS=OFF"]
            environment.update({"CMAKE_PREFIX_PATH": deps, "LDFLAGS": linker})  # for the script of the layout gate
            if os.path.isdir(openmpi):
                paths.insert(0, os.path.join(openmpi, "bin"))
                environment["OPAL_PREFIX"] = openmpi
                environment["LD_LIBRARY_PATH"] = os.pathsep.join(
                    [os.path.join(openmpi, "lib")] + list(filter(None, [environment.get("LD_LIBRARY_PATH")])))
                environment["MPI_HOME"] = openmpi
                self.flags.append(f"-DMPI_HOME={openmpi}")
            cccl = os.path.join(unpacked, "cccl")
            if not self.found["cub"] and os.path.isdir(cccl):
                environment["NVCC_APPEND_FLAGS"] = f"-I{cccl}"
        environment["PATH"] = os.pathsep.join(paths + [environment.get("PATH", "/usr/bin:/bin")])
        environment.update({
            "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            "OMPI_MCA_rmaps_base_oversubscribe": "1", "OMPI_MCA_hwloc_base_binding_policy": "none",
            "OMPI_MCA_btl_base_warn_component_unused": "0", "OMPI_MCA_opal_warn_on_missing_libcuda": "0",
            "OMPI_MCA_btl_vader_single_copy_mechanism": "none",
            "TMPDIR": "/tmp",  # Open MPI's session folder must have a short name
        })
        if not (shutil.which("ssh") or shutil.which("rsh")):
            environment["OMPI_MCA_plm"] = "isolated"  # or Open MPI's mpiexec fails, even with one machine
        if os.path.exists(os.path.join(environment.get("OPAL_PREFIX", ""), "lib", "openmpi", "mca_btl_smcuda.so")):
            # Several ranks on one GPU may open each other's memory; without this, Open MPI copies through the host. An
            # Open MPI without this component would not start.
            environment.update({"OMPI_MCA_pml": "ob1", "OMPI_MCA_btl": "self,smcuda,vader",
                                "OMPI_MCA_btl_smcuda_use_cuda_ipc_same_gpu": "1"})
        if not self.options.emulated and not machine.finds_cub(
                self.nvcc, environment.get("NVCC_APPEND_FLAGS", "").split()):
            self.not_run("sums, scans and sorts on the device", "there is no CUB, neither in the toolkit nor in the "
                         "bundle (install nvidia-cuda-cccl): tests that need them fail with NotBuiltError")
        # Without shared memory of a useful size, ranks of one node fail late and strangely.
        shared = shutil.disk_usage("/dev/shm").free if os.path.isdir("/dev/shm") else 0
        self.results["machine"]["dev_shm_mib"] = shared // 2**20

    def probe_mpi(self):
        """Whether processes start and find each other. Returns False if nothing further makes sense."""
        program = os.path.join(self.options.build, "probe_mpi")
        with open(program + ".cpp", "w", encoding="utf-8") as file:
            file.write(machine.MPI_PROBE)
        if self.step("probe", "compile an MPI program",
                     ["mpicxx", "-o", program, program + ".cpp"])["status"] != "passed":
            return False
        flags = ["--oversubscribe", "--allow-run-as-root"] if self.found_openmpi() else []
        return self.step("probe", "two MPI processes",
                         ["mpiexec", "-n", "2", *flags, program], 30)["status"] == "passed"

    def found_openmpi(self):
        asked = subprocess.run(["mpiexec", "--version"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               check=False, env=self.runner.environment, timeout=30)
        return re.search("open.?mpi|openrte|prrte", asked.stdout.decode(errors="replace"), re.I) is not None

    def start_mps(self):
        """Lets ranks run kernels at the same time instead of taking turns. The report says whether they do."""
        tool = self.found.get("mps_control")
        self.results["mps"] = False
        if not tool or self.rehearsal or self.options.no_mps:
            return
        folder = tempfile.mkdtemp(prefix="dnds-mps-")
        variables = {"CUDA_MPS_PIPE_DIRECTORY": folder, "CUDA_MPS_LOG_DIRECTORY": folder}
        self.runner.environment.update(variables)
        self.mps = (tool, folder)
        # Not by the runner, which ends what its commands leave.
        started = subprocess.run([tool, "-d"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False,
                                 env=self.runner.environment, timeout=15).returncode == 0
        self.results["mps"] = started
        if not started:
            self.stop_mps()
        say("ranks share the GPU through MPS" if started else "MPS did not start: ranks take turns on the GPU")

    def stop_mps(self):
        """A control daemon is no child of this process, and would stay."""
        if self.mps:
            tool, folder = self.mps
            subprocess.run([tool], input=b"quit\n", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False,
                           env=self.runner.environment, timeout=15)
            shutil.rmtree(folder, ignore_errors=True)
            for variable in ("CUDA_MPS_PIPE_DIRECTORY", "CUDA_MPS_LOG_DIRECTORY"):
                self.runner.environment.pop(variable, None)
            self.mps = None

    def probe(self):
        """Whether a kernel compiled here runs here. Returns False if nothing further makes sense."""
        source, program = os.path.join(self.options.build, "probe.cu"), os.path.join(self.options.build, "probe")
        with open(source, "w", encoding="utf-8") as file:
            file.write(machine.PROBE)
        capability = self.capability.replace(".", "")
        compiled = self.step("probe", "compile a kernel", [self.nvcc, f"-arch=sm_{capability}", "-ccbin",
                                                           self.found["cxx"], "-o", program, source])
        if compiled["status"] != "passed" or self.options.without_gpu:
            return compiled["status"] == "passed"
        return self.step("probe", "run a kernel", [program])["status"] == "passed"

    def layout(self):
        """Whether nvcc and the host lay out the arguments of kernels alike: else every other result is worthless."""
        script = os.path.join(ROOT, "scripts", "compile-cuda.sh")
        with open(script, encoding="utf-8") as file:
            offered = "--layout-only" in file.read()
        if self.options.emulated or not offered:
            self.not_run("the layout of kernel arguments", "a rehearsal with the emulated device has no nvcc"
                         if self.options.emulated else "scripts/compile-cuda.sh has no --layout-only")
            return
        self.step("layout", "layout of kernel arguments",
                  [script, "--layout-only", "--require", "--architectures", self.capability.replace(".", "") + "-real",
                   "--jobs", str(self.options.jobs)])

    def configure(self):
        if self.options.prebuilt:
            why = programs.unpack(self.options.prebuilt, self.options.build, ROOT)
            if why:
                self.not_run("everything", why)
            self.results["source"] = file_text(os.path.join(self.options.build, "source")) or "unknown"
            return why is None
        flags = ["-S", ROOT, "-B", self.options.build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
                 "-DDNDS_BUILD_BENCHMARKS=ON", "-DDNDS_PETSC=OFF", "-DDNDS_HYPRE=OFF", "-DDNDS_INSTALL=OFF",
                 "-DDNDS_BUILD_PYTHON=OFF", "-DDNDS_FAST_COMPILE=ON",
                 f"-DDNDS_CCACHE={os.environ.get('DNDS_CCACHE', 'OFF')}", *self.flags]
        if self.options.emulated:
            flags.append("-DDNDS_DEVICE=emulated")
        else:
            capability = self.capability.replace(".", "")
            flags += ["-DDNDS_DEVICE=cuda", f"-DCMAKE_CUDA_ARCHITECTURES={capability}-real",
                      f"-DCMAKE_CUDA_COMPILER={self.nvcc}"]
        # A cache of another run might keep its paths.
        cache, used = os.path.join(self.options.build, "CMakeCache.txt"), os.path.join(self.options.build, "flags")
        if os.path.exists(cache) and file_text(used) != "\n".join(flags):
            os.remove(cache)
        report.write_file(used, "\n".join(flags))
        return self.step("configure", "configure", ["cmake", *flags])["status"] == "passed"

    def build(self, part, targets):
        """Builds the targets of a part. Returns whether all are there."""
        if self.options.prebuilt:
            return True
        command = ["ninja", "-C", self.options.build, f"-j{self.options.jobs}", "-k", "0"]
        outcome = self.step("build", f"build {part}", [*command, *sorted(set(targets))])
        if outcome["status"] != "passed":
            self.keep_logs()
        return outcome["status"] == "passed"

    # -----------------------------------------------------------------------------------------------------------------

    def tests(self, group):
        """Builds and runs the tests of a group, as far as they have not run in an earlier call."""
        def chosen():
            known = {test["name"] for test in self.results["tests"] if test["status"] != "not run"}
            return [test for test in device_tests.listed(self.options.build, self.runner.environment)
                    if test["group"] == group and test["name"] not in known]

        def done(result, outcome):
            result["log"] = outcome["log"]
            if result["status"] not in ("passed", "skipped"):
                result["tail"] = tail(outcome["log"])
            others = [test for test in self.results["tests"] if test["name"] != result["name"]]
            self.results["tests"] = [*others, result]
            self.tell(result)
            self.keep_logs()

        if not chosen():
            return
        self.build(group, [test["target"] for test in chosen()])
        if self.options.pack:
            return
        reasons = {}
        for test, why in device_tests.run(chosen(), self.runner, self.limit(group), done):
            reasons.setdefault(why, []).append(test["name"])
        for why, names in reasons.items():
            self.not_run(f"{len(names)} tests of {group} ({', '.join(names[:4])}{', ...' if len(names) > 4 else ''})",
                         why)

    def cut(self, part):
        """Whether a part lacks time or a program, so that the next call continues with it."""
        return (any(step["status"] == "not run" for step in self.results["steps"] if step["part"] == part)
                or any(test["status"] == "not run" for test in self.results["tests"]
                       if device_tests.group_of(test["name"]) == part)
                or any(entry["why"] == device_tests.NO_TIME for entry in self.results["not_run"]
                       if f"tests of {part} " in entry["what"]) or self.runner.left() < 2)

    def core(self):
        self.tests("core")
        self.heat()

    def tasks(self):
        self.tests("tasks")

    def euler(self):
        self.tests("euler")
        self.euler_case()

    def one_sided(self):
        self.tests("one-sided")

    def fields(self):
        self.tests("fields")

    # -----------------------------------------------------------------------------------------------------------------

    def mpirun(self, ranks, *command):
        return [os.path.join(ROOT, "scripts", "mpirun.sh"), str(ranks), *command]

    def program(self, pattern):
        found = glob.glob(os.path.join(self.options.build, pattern))
        return found[0] if found else None

    def heat(self):
        if not self.build("heat", ["heat"]) or self.without_gpu("the heat case on device and host"):
            return
        program = self.program("cases/heat/heat")
        size = ["--cells", "64,48,40", "--steps", "40"] if self.options.emulated else ["--cells", "256,192,128",
                                                                                       "--steps", "200"]
        records = os.path.join(self.options.build, "heat.json")
        for ranks in (1, 2, 4):
            self.step("core", f"heat on {ranks} ranks, device against host",
                      self.mpirun(ranks, program, "--on", "both", "--json", records, *size),
                      min(self.limit("core"), 40))
            self.keep_records(records)

    def without_gpu(self, what):
        """Whether this is a rehearsal that cannot run this."""
        if self.options.without_gpu:
            self.not_run(what, "a rehearsal without a GPU: the program would only say so")
        return bool(self.options.without_gpu)

    def bench(self):
        if not self.build("bench", ["bench_gpu"]) or self.without_gpu("bench_gpu"):
            return
        program = self.program("bench/gpu/bench_gpu")
        records = os.path.join(self.options.build, "bench.json")
        for ranks in (1, 2, 4):
            limit = max(min(self.limit("bench"), {1: 60, 2: 45, 4: 45}[ranks]), 0)
            command = [program, "--json", records, "--seconds", str(int(max(limit - 12, 5)))]
            if self.options.emulated:
                command.append("--quick")
            # Ranks that wait for each other say so before the limit.
            self.step("bench", f"bench_gpu on {ranks} ranks", self.mpirun(ranks, *command), limit,
                      {"DNDS_WAIT_TIMEOUT": "20"})
            self.keep_records(records)

    def keep_records(self, path):
        """Takes the records that a program wrote, also one that was stopped, and removes the file."""
        self.results["benchmarks"] += report.read_records(path)
        if os.path.exists(path):
            os.remove(path)
        self.save()

    def euler_case(self):
        """Cells a second of the Euler case on the device, and on the host for comparison."""
        folder = os.path.join(ROOT, "cases", "euler")
        if not self.build("the Euler case", ["euler"]) or self.without_gpu("the Euler case on the device"):
            return
        program = self.program("cases/euler/euler")
        cells, steps = (16, 4) if self.options.emulated else (1000, 60)
        # One rank has its step in one graph, several have parts; without graphs, kernels are started one by one.
        runs = [(1, "cuda", True), (1, "cuda", False), (2, "cuda", True), (2, "cuda", False), (4, "cuda", True),
                (min(self.found["cores"], 16), "host", False)]
        for ranks, device, graphs in runs:
            how = device + (", graphs" if graphs else "")
            output = os.path.join(self.options.build, f"euler-{ranks}-{device}-{graphs}")
            changes = [f"scheme.device={device}", f"scheme.graphs={str(graphs).lower()}",
                       f"mesh.box.cells=[{cells},{cells}]", f"time.steps={steps}",
                       f"output.folder={output}", "output.fields=false"]
            options = [word for change in changes for word in ("--set", change)]
            if any(step["name"] == f"euler on {ranks} ranks, {how}" and step["status"] != "not run"
                   for step in self.results["steps"]):
                continue
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
        if self.rehearsal or not tool:
            self.not_run("compute-sanitizer", "a rehearsal has no GPU" if self.rehearsal else "it was not found")
            return
        self.stop_mps()  # the two do not go together
        # Some virtual machines keep it from the device; that is no failure of DNDS. Calls of CUDA that fail are left
        # out: tests of captures make some fail, and Open MPI tries to register memory that cannot be.
        memcheck = [tool, "--tool", "memcheck", "--report-api-errors", "no", "--error-exitcode", "99",
                    "--target-processes", "all"]
        outcome = self.runner.run("sanitizer probe", [*memcheck, os.path.join(self.options.build, "probe")], 30)
        if outcome["status"] != "passed":
            self.not_run("compute-sanitizer", "it does not work on this machine: "
                         + " / ".join(tail(outcome["log"], 3).splitlines()))
            return
        for test in device_tests.listed(self.options.build, self.runner.environment):
            if test["group"] != "core" or test["ranks"] > 2 or test["name"].endswith(".np1") or not test["command"]:
                continue
            program = next((number for number, word in enumerate(test["command"])
                            if os.path.basename(word) == test["target"] and os.access(word, os.X_OK)), None)
            if program is None:
                continue
            command = test["command"][:program] + memcheck + test["command"][program:]
            self.step("sanitizer", f"memcheck {test['name']}", command, min(90, self.runner.left() - 1),
                      {**test["environment"], "DNDS_TEST_TIMEOUT_S": "80"})

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
            self.start_mps()
        if set(self.options.parts) - {"layout"}:
            say(f"taking the programs of {self.options.prebuilt}" if self.options.prebuilt else "configuring")
            if not self.configure():
                return
        for part in self.options.parts:
            if part in self.results["done"]:
                continue
            say(part)
            if self.limit(part) < 5:
                self.not_run(part, "no time was left")
                continue
            getattr(self, part.replace("-", "_"))()
            if not self.cut(part):
                self.results["done"].append(part)
        if self.options.pack and self.runner.left() > 0:
            report.write_file(os.path.join(self.options.build, "source"), source_version())
            count = programs.pack(self.options.build, self.runner.environment, self.options.pack)
            say(f"{self.options.pack}: {count} files, {os.path.getsize(self.options.pack) // 1000000} MB")
        self.results["finished"] = set(self.options.parts) <= set(self.results["done"])

    def close(self):
        self.stop_mps()
        self.keep_logs()
        self.save()


def file_text(path):
    """What a file holds; an empty string if it is not there."""
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except OSError:
        return ""


def unpacked_bundle(bundle, build):
    """The folder with the contents of a bundle, which later calls use again: paths in a build stay the same."""
    folder = os.path.join(build, "bundle")
    with open(bundle, "rb") as file:
        which = hashlib.sha256(file.read()).hexdigest()
    if file_text(os.path.join(folder, "which")) == which:
        return folder
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    with tarfile.open(bundle) as archive:
        if hasattr(tarfile, "fully_trusted_filter"):
            archive.extractall(folder, filter="fully_trusted")
        else:
            archive.extractall(folder)
    report.write_file(os.path.join(folder, "which"), which)
    return folder


def hash_of_sources():
    """Tells whether results are of the same sources, also without git."""
    total = hashlib.sha256()
    for place in ("CMakeLists.txt", "cmake", "src", "test", "cases", "bench"):
        top = os.path.join(ROOT, place)
        paths = [top] if os.path.isfile(top) else [os.path.join(folder, name) for folder, _, names in os.walk(top)
                                                   for name in names if not name.endswith(".pyc")]
        for path in sorted(paths):
            total.update(os.path.relpath(path, ROOT).encode())
            with open(path, "rb") as file:
                total.update(file.read())
    return total.hexdigest()[:16]


def source_version():
    """The commit of the sources, where git knows it."""
    commit = machine.output_of(["git", "-C", ROOT, "rev-parse", "--short=12", "HEAD"])
    changed = machine.output_of(["git", "-C", ROOT, "status", "--porcelain", "--untracked-files=no"])
    return commit + (" with changes" if changed else "") if commit else f"{hash_of_sources()} (a hash: no git here)"


def main(argv):
    options = arguments(argv)
    found = machine.facts()
    lacks = machine.missing(found, cuda=not options.emulated, gpu=not (options.emulated or options.without_gpu),
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
    return {"passed": 0, "incomplete": 4}.get(verdict, 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
