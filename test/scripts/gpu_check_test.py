"""Tests of scripts/gpu: missing requirements, the order of a run, calls that are cut and continued, the report.

Needs Python only; programs of builds and of CUDA are stand-ins."""

import copy
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import time
import unittest

SCRIPTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "scripts")
sys.path.insert(0, os.path.join(SCRIPTS, "gpu"))
import check  # noqa: E402
import device_tests  # noqa: E402
import hip_kernels  # noqa: E402
import kernels  # noqa: E402
import machine  # noqa: E402
import programs  # noqa: E402
import report  # noqa: E402
from runner import Runner, tail  # noqa: E402

GTEST = """Running main() from x.cc
[ RUN      ] Device.Streams
[       OK ] Device.Streams (0 ms)
[ RUN      ] Device.Graphs
/x/GraphTest.cpp:12: Skipped
graphs need a newer driver

[  SKIPPED ] Device.Graphs (0 ms)
[==========] 2 tests from 1 test suite ran. (1 ms total)
[  PASSED  ] 1 test.
[  SKIPPED ] 1 test, listed below:
[  SKIPPED ] Device.Graphs
"""

MACHINE = {
    "system": "Linux", "kernel": "6", "processor": "cpu", "cores": 16, "memory_gib": 128.0, "gpu_error": None,
    "gpus": [{"name": "NVIDIA H200", "memory_bytes": 150 * 2**30, "compute_capability": "9.0", "multiprocessors": 132,
              "l2_bytes": 60 * 2**20, "mps": 0}],
    "cuda_of_driver": "13.0", "nvcc": "/nvcc", "nvcc_version": "13.0", "compute_sanitizer": None, "cxx": "c++",
    "cxx_version": "13.2", "cmake_version": "3.28", "ninja_version": "1.11", "python_version": "3.12",
    "mpi": True, "zlib": True, "cub": True,
}

RECORDS = [
    {"benchmark": "kernel", "kernel": "pack", "rows": 10**6, "doubles_per_row": 5, "median_us": 30.0,
     "fraction_of_floor": 0.83},
    {"benchmark": "kernel", "kernel": "pack", "rows": 10**6, "doubles_per_row": 1, "median_us": 20.0,
     "fraction_of_floor": 0.5},
    {"benchmark": "kernel", "kernel": "thread a row", "rows": 10**6, "doubles_per_row": 1, "median_us": 90.0,
     "fraction_of_floor": 0.1},
    {"benchmark": "kernel", "kernel": "pack", "rows": 10**4, "doubles_per_row": 5, "median_us": 6.0,
     "above_launch_us": 2.5},
    {"benchmark": "pull", "ranks": 2, "rows": 10**5, "doubles_per_row": 5, "transport": "staged", "median_us": 200.0},
    {"benchmark": "pull", "ranks": 2, "rows": 10**5, "doubles_per_row": 5, "transport": "peer", "median_us": 50.0},
    {"benchmark": "pull", "ranks": 2, "rows": 10**5, "doubles_per_row": 5, "transport": "full copies",
     "median_us": 8000.0},
    {"benchmark": "newcomer", "case": "a|b", "median_us": None},
]


def results():
    return copy.deepcopy({
        "format": 2, "started": "2026-11-21T10:00:00+0000", "finished": True, "budget_s": 520, "seconds": 300.0,
        "calls": 1, "rehearsal": None, "parts": ["core", "bench"], "done": ["core", "bench"], "source": "abc",
        "machine": MACHINE,
        "bundle": ["made today", "with CUDA: mpiexec (OpenRTE) 4.1.4"],
        "steps": [{"part": "build", "name": "build core", "status": "passed", "seconds": 9.0, "log": None}],
        "tests": [{"name": "a.np2", "status": "passed", "seconds": 1.0},
                  {"name": "b", "status": "skipped", "seconds": 0.0}],
        "benchmarks": RECORDS, "not_run": []})


class Judge(unittest.TestCase):
    def judge(self, status, output, **more):
        return device_tests.judge({"name": "x", "status": status, "seconds": 1.0, **more}, output)

    def test_counts_cases(self):
        result = self.judge("passed", GTEST)
        self.assertEqual((result["status"], result["passed"], result["skipped"]), ("passed", 1, 1))

    def test_a_program_that_skipped_everything_has_not_passed(self):
        result = self.judge("passed", GTEST.replace("PASSED  ] 1 test", "PASSED  ] 0 tests"))
        self.assertEqual((result["status"], result["why"]), ("skipped", "graphs need a newer driver"))
        part = self.judge("passed", GTEST.replace("graphs need a newer driver", "no CUDA device can be used here: x"))
        self.assertEqual((part["status"], part["why"]), ("skipped", "no CUDA device can be used here: x"))
        alone = self.judge("passed", "on the host alone: there is no driver\n")
        self.assertEqual((alone["status"], alone["why"]), ("skipped", "on the host alone: there is no driver"))

    def test_failures_are_named_with_what_the_program_said(self):
        result = self.judge("failed", "[  FAILED  ] Device.A (1 ms)\n[  FAILED  ] Device.A\nCUDA says: no\n")
        self.assertEqual((result["failed"], result["why"]), (["Device.A"], "CUDA says: no"))
        hung = self.judge("out of time", "rank 0 of 2, Device.A: no end after 50 s\n", why="stopped after 60 s")
        self.assertIn("no end after 50 s", hung["why"])


class Order(unittest.TestCase):
    def test_tests_are_grouped_by_value(self):
        groups = {name: device_tests.group_of(name) for name in
                  ("device_tests", "dof_device_tests.np2", "heat.np1", "task_tests.np8", "euler_tests.device.np1",
                   "one_sided_device_tests.proxy.np2", "proxy_tests.np1", "block_tests.np1", "bench_gpu.np1")}
        self.assertEqual(groups, {
            "device_tests": "core", "dof_device_tests.np2": "core", "heat.np1": "core", "task_tests.np8": "tasks",
            "euler_tests.device.np1": "euler", "one_sided_device_tests.proxy.np2": "one-sided",
            "proxy_tests.np1": "one-sided", "block_tests.np1": "fields", "bench_gpu.np1": None})
        self.assertEqual([part for part in check.PARTS if part in device_tests.GROUPS], list(device_tests.GROUPS))
        self.assertEqual(check.PARTS[0], "layout")

    def test_every_part_can_be_run_and_has_a_limit(self):
        for part in check.PARTS:
            self.assertTrue(callable(getattr(check.Check, part.replace("-", "_"))))
            self.assertIn(part, check.CAPS)


class Verdict(unittest.TestCase):
    def test_passes(self):
        name, why = report.verdict(results())
        self.assertEqual(name, "passed")
        self.assertIn("1 tests passed, 1 skipped", why)

    def test_a_failed_test_a_failed_step_and_a_test_without_end_fail(self):
        for status in ("failed", "out of time"):
            changed = results()
            changed["tests"].append({"name": "bad", "status": status, "seconds": 0.0})
            self.assertEqual(report.verdict(changed)[0], "failed", status)
            self.assertIn("bad", report.verdict(changed)[1])
        for step in ("bench_gpu on 2 ranks", "build core", "layout of kernel arguments", "configure"):
            changed = results()
            changed["steps"].append({"part": "x", "name": step, "status": "failed", "seconds": 0.0, "log": None})
            self.assertEqual(report.verdict(changed), ("failed", f"1 failed or did not end: {step}"))

    def test_what_was_skipped_or_cut_short_is_no_success(self):
        changed = results()
        changed["tests"] = [{"name": "a", "status": "skipped", "seconds": 0.0}]
        self.assertEqual(report.verdict(changed)[0], "failed")
        changed = results()
        changed["finished"] = False
        self.assertEqual(report.verdict(changed)[0], "incomplete")
        changed["steps"].append({"part": "build", "name": "build tasks", "status": "out of time", "seconds": 9.0})
        self.assertEqual(report.verdict(changed)[0], "incomplete")  # the next call continues the build

    def test_what_was_not_run_is_named(self):
        changed = results()
        changed["not_run"].append({"what": "compute-sanitizer", "why": "not there"})
        self.assertIn("not run: compute-sanitizer", report.verdict(changed)[1])


class Goals(unittest.TestCase):
    def test_the_worst_counts(self):
        reached = [(entry["measured"], entry["reached"]) for entry in report.goals(RECORDS)]
        self.assertEqual(reached, [("0.50 of the floor", False), ("2.5 us above a launch", True), ("40.0 x", True),
                                   ("0.25 of staged's time", True)])

    def test_nothing_measured_is_not_reached(self):
        self.assertEqual({entry["reached"] for entry in report.goals([])}, {None})


class Page(unittest.TestCase):
    def test_holds_machine_tests_goals_and_every_record(self):
        page = report.markdown(results())
        for text in ("**Passed:**", "NVIDIA H200", "compute capability 9.0", "made today", "| a.np2 | passed | 1 |",
                     "CUB yes",
                     "| staged is at least 20 x faster than copying whole arrays | 40.0 x | yes |", "### newcomer",
                     "a\\|b"):
            self.assertIn(text, page)
        self.assertEqual(page.count("| pull") + page.count("| 2 | 100000 | 5 |"), 3)
        self.assertNotIn("rehearsal", page)

    def test_says_what_a_rehearsal_is_worth(self):
        changed = results()
        changed["rehearsal"] = "emulated"
        changed["machine"]["gpus"] = []
        self.assertIn("No GPU took part", report.markdown(changed))
        changed["rehearsal"] = "without GPU"
        self.assertEqual(report.verdict(changed),
                         ("passed", "everything compiled; 1 tests found no device, 1 need none"))
        self.assertIn("(rehearsal without a GPU)", report.markdown(changed))

    def test_shows_the_end_of_failed_logs_without_breaking_out_of_the_block(self):
        changed = results()
        changed["steps"].append({"part": "heat", "name": "heat", "status": "failed", "seconds": 1.0, "log": "x",
                                 "tail": "row 7 differs\n```"})
        page = report.markdown(changed)
        self.assertIn("row 7 differs\n'''\n```", page)

    def test_files_are_whole_and_can_be_read_again(self):
        with tempfile.TemporaryDirectory() as folder:
            stem = os.path.join(folder, "new", "2026-11-21")
            report.write(results(), stem)
            with open(stem + ".json", encoding="utf-8") as file:
                self.assertEqual(json.load(file), report.without_folders(results()))
            self.assertEqual(report.without_folders(results())["machine"]["nvcc"], "nvcc")
            script = os.path.abspath(report.__file__)
            told = report.without_folders({**results(), "steps": [{"tail": f"in {script}: no"}]})
            self.assertEqual(told["steps"][0]["tail"], "in scripts/gpu/report.py: no")
            self.assertEqual(sorted(os.listdir(os.path.dirname(stem))), ["2026-11-21.json", "2026-11-21.md"])

    def test_records_that_were_not_written_are_none(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "x.json")
            self.assertEqual(report.read_records(path), [])
            with open(path, "w", encoding="utf-8") as file:
                file.write("[{")
            self.assertEqual(report.read_records(path), [])


class Time(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()

    def tearDown(self):
        self.folder.cleanup()

    def test_a_command_that_hangs_is_stopped_with_what_it_started(self):
        runner = Runner(60, self.folder.name)
        # A child in a session of its own that ignores the polite signal, as a rank of a killed launcher may.
        path = os.path.join(self.folder.name, "child")
        stubborn = f"trap \"\" TERM; echo $$ > {path}; exec sleep 300"
        command = ["sh", "-c", f"setsid sh -c '{stubborn}' & echo begun; sleep 300"]
        outcome = runner.run("hangs", command, 1.5)
        self.assertEqual(outcome["status"], "out of time")
        self.assertLess(outcome["seconds"], 20)
        self.assertIn("begun", tail(outcome["log"]))
        with open(path, encoding="utf-8") as file:
            child = int(file.read())
        for _ in range(50):
            try:
                with open(f"/proc/{child}/stat", encoding="utf-8") as file:
                    if file.read().rsplit(")", 1)[1].split()[0] == "Z":
                        break
            except OSError:
                break
            time.sleep(0.1)
        else:
            self.fail(f"process {child} still lives")

    def test_outcomes(self):
        runner = Runner(60, self.folder.name)
        self.assertEqual(runner.run("good", ["true"], 5)["status"], "passed")
        self.assertEqual(runner.run("bad", ["sh", "-c", "echo reason; exit 3"], 5)["code"], 3)
        self.assertIn("reason", tail(os.path.join(self.folder.name, "bad.log")))
        self.assertEqual(runner.run("skips", ["sh", "-c", "exit 77"], 5)["status"], "skipped")
        self.assertEqual(runner.run("absent", ["/does/not/exist"], 5)["status"], "failed")
        self.assertEqual(Runner(0, self.folder.name).run("late", ["true"], 5)["status"], "not run")


class Machine(unittest.TestCase):
    def test_versions(self):
        self.assertTrue(machine.at_least("13.0", 12, 4))
        self.assertFalse(machine.at_least("12.3.1", 12, 4))
        self.assertFalse(machine.at_least(None, 3, 25))

    def test_what_is_missing_is_named_with_a_cure(self):
        self.assertEqual(machine.missing(MACHINE), [])
        bare = {**MACHINE, "gpus": [], "gpu_error": "no driver", "nvcc": None, "cmake_version": "3.16",
                "ninja_version": None, "cxx_version": "9.4"}
        text = "\n".join(machine.missing(bare))
        for word in ("a GPU: no driver", "CUDA_HOME", "g++ 12", "CMake 3.25", "ninja-build"):
            self.assertIn(word, text)
        self.assertNotIn("GPU", "\n".join(machine.missing(bare, cuda=False, gpu=False)))
        without = {**MACHINE, "mpi": False, "zlib": False}
        self.assertIn("zlib1g-dev", "\n".join(machine.missing(without)))
        self.assertEqual(machine.missing(without, bundle=True), [])  # has both

    def test_headers_are_found_by_the_compiler(self):
        self.assertTrue(machine.finds_header("c++", "cstdio"))
        self.assertFalse(machine.finds_header("c++", "no/such/header.h"))
        self.assertFalse(machine.finds_header("/no/such/compiler", "cstdio"))

    def test_a_toolkit_of_wheels_is_made_whole(self):
        with tempfile.TemporaryDirectory() as folder:
            def make(*paths):
                for path in paths:
                    os.makedirs(os.path.dirname(os.path.join(folder, path)), exist_ok=True)
                    with open(os.path.join(folder, path), "w", encoding="utf-8"):
                        pass

            def whole(nvcc):
                return machine.whole_toolkit(os.path.join(folder, nvcc), os.path.join(folder, "made"))

            make("system/bin/nvcc", "system/lib64/libcudart.so")
            self.assertEqual(whole("system/bin/nvcc"), os.path.join(folder, "system/bin/nvcc"))
            # CUDA 13: one root, lib, no libcudart.so
            make("nvidia/cu13/bin/nvcc", "nvidia/cu13/nvvm/bin/cicc", "nvidia/cu13/include/cuda.h",
                 "nvidia/cu13/lib/libcudart.so.13", "nvidia/cu13/lib/libcudart_static.a")
            # CUDA 12: a root for each package
            make("nvidia/cuda_nvcc/bin/nvcc", "nvidia/cuda_nvcc/nvvm/bin/cicc", "nvidia/cuda_runtime/include/cuda.h",
                 "nvidia/cuda_runtime/lib/libcudart.so.12", "nvidia/cuda_runtime/lib/libcudart_static.a")
            for nvcc, number in (("nvidia/cu13/bin/nvcc", 13), ("nvidia/cuda_nvcc/bin/nvcc", 12)):
                self.assertEqual(whole(nvcc), os.path.join(folder, "made/bin/nvcc"))
                for path in ("bin/nvcc", "nvvm/bin/cicc", "include/cuda.h", "lib64/libcudart_static.a"):
                    self.assertTrue(os.path.exists(os.path.join(folder, "made", path)), path)
                self.assertEqual(os.readlink(os.path.join(folder, "made/lib/libcudart.so")), f"libcudart.so.{number}")
            make("other/bin/nvcc")  # unknown folders are left as they are
            self.assertEqual(whole("other/bin/nvcc"), os.path.join(folder, "other/bin/nvcc"))

    def test_facts_are_found_on_any_machine(self):
        found = machine.facts()
        self.assertGreater(found["cores"], 0)
        self.assertTrue(found["gpus"] or found["gpu_error"])
        self.assertTrue(report.machine_lines(found))

    def test_wrong_usage_and_a_missing_compiler_have_codes_of_their_own(self):
        def run(*options, **environment):
            return subprocess.run([os.path.join(SCRIPTS, "gpu-check.sh"), *options], capture_output=True, check=False,
                                  text=True, timeout=120, env={**os.environ, **environment})

        self.assertEqual(run("--parts", "nonsense").returncode, 2)
        self.assertEqual(run("--budget", "1").returncode, 2)
        self.assertEqual(run("--without-gpu", "nine").returncode, 2)
        self.assertIn("Exit code", run("--help").stdout)
        outcome = run("--emulated", "--dry-run", CXX="/no/such/compiler")
        self.assertEqual(outcome.returncode, 3)
        self.assertIn("/no/such/compiler was not found", outcome.stdout)


PTX = """
.visible .entry _Z14copyRowsKerneli(
	.param .u32 _Z14copyRowsKerneli_param_0
)
.maxntid 256, 1, 1
{
	ld.global.v2.u64 	{%rd1, %rd2}, [%rd3];
	st.global.v2.u64 	[%rd4], {%rd1, %rd2};
	ret;
}
"""
LOG = """ptxas info    : Compiling entry function '_Z14copyRowsKerneli' for 'sm_75'
ptxas info    : Function properties for _Z14copyRowsKerneli
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 38 registers, used 0 barriers
"""


class Kernels(unittest.TestCase):
    def wrongs(self, ptx, log=LOG):
        with tempfile.TemporaryDirectory() as folder:
            for name, text in (("ptx", ptx), ("log", log)):
                with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                    file.write(text)
            (name, body), = kernels.read_ptx(os.path.join(folder, "ptx")).items()
            kernel = kernels.Kernel(name, body, kernels.read_log(os.path.join(folder, "log"))[name])
            return "\n".join(kernels.wrongs(kernel, kernels.RULES[0]))

    def test_says_what_the_compiler_made_wrong(self):
        self.assertEqual(self.wrongs(PTX), "")
        self.assertIn("fuses a product", self.wrongs(PTX.replace("ret;", "fma.rn.f64 %fd1, %fd2, %fd3, %fd4;")))
        self.assertIn("double and float", self.wrongs(PTX.replace("ret;", "cvt.rn.f32.f64 %f1, %fd1;")))
        self.assertIn("approximately", self.wrongs(PTX.replace("ret;", "rcp.approx.ftz.f64 %fd1, %fd2;")))
        self.assertIn("waits for others", self.wrongs(PTX.replace("ret;", "ld.acquire.sys.global.u64 %rd1, [%rd2];")))
        self.assertIn("16 bytes", self.wrongs(PTX.replace("st.global.v2", "st.global")))
        self.assertIn("unknown kind", self.wrongs(PTX.replace("ld.global.v2.u64", "ld.v2.u64")))
        spilling = LOG.replace("0 bytes spill stores", "8 bytes spill stores")
        self.assertIn("sm_75: spills 8 bytes", self.wrongs(PTX, spilling))
        self.assertEqual(self.wrongs(PTX, LOG.replace("Used 38", "Used 64")), "")
        self.assertIn("65 registers", self.wrongs(PTX, LOG.replace("Used 38", "Used 65")))
        self.assertIn("41 registers", self.wrongs(PTX, LOG.replace("Used 38", "Used 41").replace("sm_75", "sm_80")))
        self.assertIn("local memory", self.wrongs(PTX, LOG.replace("0 bytes stack", "40 bytes stack")))
        # what was compiled last counts
        self.assertEqual(self.wrongs(PTX, LOG.replace("Used 38", "Used 65") + LOG), "")


NOTES = """AMDGPU Metadata
    ---
amdhsa.kernels:
  - .args:
      - .offset:         0
        .size:           8
        .value_kind:     by_value
      - .offset:         8
        .size:           24
        .value_kind:     by_value
      - .offset:         32
        .size:           8
        .value_kind:     hidden_global_offset_x
    .group_segment_fixed_size: 0
    .kernarg_segment_size: 88
    .name:           _Z8kernelOfl5Scale
    .private_segment_fixed_size: 0
"""
ENTRY = """.visible .entry _Z8kernelOfl5Scale(
	.param .u64 _Z8kernelOfl5Scale_param_0,
	.param .align 8 .b8 _Z8kernelOfl5Scale_param_1[24]
)
"""


class HipKernels(unittest.TestCase):
    def test_two_compilers_that_lay_out_arguments_differently_are_told(self):
        notes = hip_kernels.sizes_in_notes(NOTES)
        self.assertEqual(notes, {"_Z8kernelOfl5Scale": [8, 24]})
        self.assertEqual(hip_kernels.differences(notes, hip_kernels.sizes_in_ptx(ENTRY)), (2, []))
        # nvcc 13.0 and a view with an empty [[no_unique_address]] member
        compared, lines = hip_kernels.differences(notes, hip_kernels.sizes_in_ptx(ENTRY.replace("[24]", "[40]")))
        self.assertEqual(compared, 2)
        self.assertEqual(lines, ["_Z8kernelOfl5Scale: [8, 24] bytes by HIP's compiler, [8, 40] by nvcc"])

    def test_anonymous_namespaces_have_one_name(self):
        nvccs = "_ZN4DNDS46_GLOBAL__N__a8edd333_13_ReduceRows_cu_9073309b10ReduceSomeE"
        self.assertEqual(hip_kernels.common_name("_ZN4DNDS12_GLOBAL__N_110ReduceSomeE"), hip_kernels.common_name(nvccs))

    def test_nothing_in_common_is_no_success(self):
        with tempfile.TemporaryDirectory() as folder:
            paths = [os.path.join(folder, name) for name in ("x.notes", "x.ptx")]
            for path, text in zip(paths, (NOTES, ENTRY.replace("Scale", "Other")), strict=True):
                report.write_file(path, text)
            self.assertEqual(hip_kernels.main([paths[0], "--", paths[1]]), 1)


class Cut(unittest.TestCase):
    """Calls with stand-ins for ctest and for the programs of tests."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.build = os.path.join(self.folder.name, "build")
        os.makedirs(self.build)
        self.tests = []

    def tearDown(self):
        self.folder.cleanup()

    def add(self, name, script, ranks=1, timeout=60.0):
        """A test that writes its name to `ran`, then runs `script`."""
        command = ["sh", "-c", f"echo {name} >> {self.folder.name}/ran; {script}"]
        labels = ["device"] + ([f"np{ranks}"] if ranks > 1 else [])
        self.tests.append({"name": name, "command": command, "properties": [
            {"name": "LABELS", "value": labels}, {"name": "TIMEOUT", "value": timeout}]})

    def run_check(self, *options):
        """The state after a call whose ctest lists the tests that were added, and whose ninja builds everything."""
        tools = os.path.join(self.folder.name, "bin")
        os.makedirs(tools, exist_ok=True)
        for name, text in (("ctest", "cat <<'E'\n" + json.dumps({"tests": self.tests}) + "\nE"), ("ninja", "true"),
                           ("cmake", "true")):
            with open(os.path.join(tools, name), "w", encoding="utf-8") as file:
                file.write(f"#!/bin/sh\n{text}\n")
            os.chmod(os.path.join(tools, name), 0o755)
        found = {**MACHINE, "gpus": [], "nvcc": None}
        run = check.Check(check.arguments(["--out", self.folder.name, "--build", self.build, "--emulated",
                                           "--budget", "60", "--bundle", "", *options]), found)
        run.runner.environment["PATH"] = tools + os.pathsep + run.runner.environment["PATH"]
        run.probe_mpi = lambda: True
        run.heat = run.euler_case = lambda: None
        return run

    def ran(self):
        with open(os.path.join(self.folder.name, "ran"), encoding="utf-8") as file:
            return file.read().split()

    def test_a_call_goes_on_where_the_last_was_cut(self):
        self.add("device_tests", "exit 0")
        self.add("storage_tests", "exit 3")
        self.add("task_tests", "exit 0")
        first = self.run_check("--parts", "core,tasks")
        first.limit = lambda part: 0 if part == "tasks" else 20  # as if the time were up
        first.all()
        first.close()
        self.assertEqual(sorted(self.ran()), ["device_tests", "storage_tests"])
        with open(first.stem + ".json", encoding="utf-8") as file:  # what a cut call leaves
            left = json.load(file)
        self.assertEqual({test["name"]: test["status"] for test in left["tests"]},
                         {"device_tests": "passed", "storage_tests": "failed"})
        self.assertEqual((left["finished"], left["done"]), (False, ["core"]))
        self.assertTrue(os.path.exists(first.stem + "-logs.tar.gz"))

        second = self.run_check("--parts", "core,tasks")
        second.all()
        second.close()
        self.assertEqual(self.ran()[2:], ["task_tests"])  # the others are not run again
        self.assertEqual((second.stem, second.results["calls"], second.results["finished"]), (first.stem, 2, True))
        self.assertEqual(report.verdict(second.results)[0], "failed")
        self.assertEqual(self.run_check("--parts", "core,tasks").results["calls"], 1)  # a finished run starts over
        self.assertEqual(self.run_check("--fresh").results["calls"], 1)

    def test_results_are_on_disk_after_each_test(self):
        self.add("device_tests", "exit 0")
        self.add("storage_tests", f"cd {self.folder.name}; until grep -q device_tests *.json; do sleep 0.1; done; "
                                  "cp *.json seen")
        self.run_check("--parts", "core").all()
        with open(os.path.join(self.folder.name, "seen"), encoding="utf-8") as file:
            self.assertEqual(json.load(file)["tests"][0]["name"], "device_tests")

    def test_other_sources_begin_anew(self):
        self.add("device_tests", "exit 0")
        first = self.run_check("--parts", "core,tasks")
        first.limit = lambda part: 0
        first.all()
        first.close()
        with open(first.state, encoding="utf-8") as file:
            state = json.load(file)
        state["key"][0] = "other sources"
        report.write_file(first.state, json.dumps(state))
        self.assertEqual(self.run_check("--parts", "core,tasks").results["calls"], 1)

    def test_few_ranks_share_the_gpu(self):
        watch = f"echo x >> {self.folder.name}/$N.now; ls {self.folder.name}/*.now | wc -l >> {self.folder.name}/count"
        for number in range(5):
            self.add(f"device_{number}", f"N={number}; {watch}; sleep 0.3; rm {self.folder.name}/$N.now", ranks=2)
        self.run_check("--parts", "core").all()
        with open(os.path.join(self.folder.name, "count"), encoding="utf-8") as file:
            self.assertLessEqual(max(int(line) for line in file), device_tests.RANKS_AT_ONCE // 2)

    def test_a_group_whose_tests_hang_is_left(self):
        for number in range(8):
            self.add(f"device_{number}", "sleep 60", ranks=4, timeout=1.5)
        self.add("task_tests", "exit 0")
        run = self.run_check("--parts", "core,tasks")
        run.all()
        statuses = [test["status"] for test in run.results["tests"]]
        self.assertEqual(statuses, ["out of time"] * device_tests.MOST_HUNG + ["passed"])
        self.assertIn("5 tests of core", run.results["not_run"][0]["what"])
        self.assertEqual(run.results["done"], ["core", "tasks"])  # left out for good: the next call would hang, too

    def test_only_an_mpi_that_has_smcuda_is_told_to_use_it(self):
        run = self.run_check("--parts", "core")
        run.unpack()
        self.assertNotIn("OMPI_MCA_btl", run.runner.environment)  # an installed one would not start
        bundle = os.path.join(self.folder.name, "bundle.tar.gz")
        with tarfile.open(bundle, "w:gz") as archive:
            for name in ("CONTENTS", "openmpi/lib/openmpi/mca_btl_smcuda.so"):
                archive.addfile(tarfile.TarInfo(name))
        run = self.run_check("--parts", "core", "--bundle", bundle)
        run.unpack()
        self.assertIn("smcuda", run.runner.environment["OMPI_MCA_btl"])

    def test_a_test_that_was_not_built_is_no_success(self):
        # ctest gives no command without MPI, and mpiexec's with it
        self.tests.append({"name": "device_tests", "properties": [{"name": "LABELS", "value": ["device"]}]})
        self.tests.append({"name": "dof_tests.np2", "command": ["mpiexec", "-n", "2", self.build + "/test/dof_tests"],
                           "properties": [{"name": "LABELS", "value": ["device", "np2"]}]})
        run = self.run_check("--parts", "core")
        run.all()
        self.assertEqual([(test["status"], test["why"]) for test in run.results["tests"]],
                         [("not run", "device_tests was not built"), ("not run", "dof_tests was not built")])
        self.assertFalse(run.results["finished"])
        self.assertEqual(report.verdict(run.results)[0], "incomplete")


class Packed(unittest.TestCase):
    def test_programs_come_back_where_their_paths_fit_and_are_refused_elsewhere(self):
        with tempfile.TemporaryDirectory() as folder:
            build, path = os.path.join(folder, "build"), os.path.join(folder, "programs.tar.xz")
            heat = os.path.join(build, "cases", "heat", "heat")
            os.makedirs(os.path.dirname(heat))
            with open(heat, "w", encoding="utf-8") as file:
                file.write("#!/bin/sh\n")
            os.chmod(heat, 0o755)
            with open(os.path.join(build, "CMakeCache.txt"), "w", encoding="utf-8") as file:
                file.write(f"CMAKE_HOME_DIRECTORY:INTERNAL=/sources\nCMAKE_CACHEFILE_DIR:INTERNAL={build}\n")
            self.assertEqual(programs.pack(build, dict(os.environ), path), 2)
            os.remove(heat)
            self.assertIsNone(programs.unpack(path, build, "/sources"))
            self.assertTrue(os.access(heat, os.X_OK))
            self.assertIn("for the sources in /sources", programs.unpack(path, build, "/elsewhere"))


class WithoutGpu(unittest.TestCase):
    """A machine whose driver answers, but whose GPU runs nothing."""

    def test_a_kernel_that_does_not_run_ends_the_run_before_anything_is_built(self):
        with tempfile.TemporaryDirectory() as folder:
            nvcc = os.path.join(folder, "nvcc")
            with open(nvcc, "w", encoding="utf-8") as file:  # "compiles" a program that fails as CUDA's would
                file.write("""#!/bin/sh
while [ "$1" != -o ]; do shift; done
printf '#!/bin/sh\\necho "CUDA says: no CUDA-capable device is detected"; exit 1\\n' > "$2"; chmod +x "$2"
""")
            os.chmod(nvcc, 0o755)
            run = check.Check(check.arguments(["--out", folder, "--build", os.path.join(folder, "build"),
                                               "--bundle", ""]), {**MACHINE, "nvcc": nvcc})
            run.probe_mpi = lambda: True
            run.all()
            self.assertEqual([step["name"] for step in run.results["steps"]], ["compile a kernel", "run a kernel"])
            self.assertIn("no CUDA-capable device", report.markdown(run.results))
            self.assertEqual(report.verdict(run.results)[0], "failed")


if __name__ == "__main__":
    unittest.main()
