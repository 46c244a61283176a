"""Tests of scripts/gpu: the report writer, and the runner that keeps time limits. Needs Python only."""

import copy
import json
import os
import subprocess
import sys
import tempfile
import time
import unittest

SCRIPTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "scripts")
sys.path.insert(0, os.path.join(SCRIPTS, "gpu"))
import check  # noqa: E402
import kernels  # noqa: E402
import machine  # noqa: E402
import report  # noqa: E402
from runner import Runner, tail  # noqa: E402

CTEST = """Test project /build
      Start  1: storage_tests
      Start 12: array_types_tests.np2
 1/6 Test  #1: storage_tests ....................   Passed    0.52 sec
 2/6 Test #12: array_types_tests.np2 ............***Failed    1.25 sec
rank 1: row 3 differs
 3/6 Test  #3: device_tests .....................***Skipped   0.01 sec
      Start 14: transport_tests.np4
 4/6 Test #14: transport_tests.np4 ..............***Timeout  60.01 sec
 5/6 Test #15: x ................................***Not Run   0.00 sec
      Start 16: slow_tests
      Start 17: crashing
 6/6 Test #17: crashing .........................***Exception: SegFault  0.30 sec
"""

MACHINE = {
    "system": "Linux", "kernel": "6", "processor": "cpu", "cores": 16, "memory_gib": 128.0, "gpu_error": None,
    "gpus": [{"name": "NVIDIA H200", "memory_bytes": 150 * 2**30, "compute_capability": "9.0", "multiprocessors": 132,
              "l2_bytes": 60 * 2**20, "mps": 0}],
    "cuda_of_driver": "13.0", "nvcc": "/nvcc", "nvcc_version": "13.0", "compute_sanitizer": None, "cxx": "c++",
    "cxx_version": "13.2", "cmake_version": "3.28", "ninja_version": "1.11", "python_version": "3.12",
    "mpi": True, "zlib": True,
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
        "format": 1, "started": "2026-11-21T10:00:00+0000", "finished": True, "budget_s": 520, "seconds": 300.0,
        "rehearsal": None, "parts": ["tests", "bench"], "source": "abc", "machine": MACHINE,
        "bundle": ["made today", "with CUDA: mpiexec (OpenRTE) 4.1.4"],
        "steps": [{"part": "tests", "name": "tests", "status": "passed", "seconds": 9.0, "log": None}],
        "tests": [{"name": "a.np2", "status": "passed", "seconds": 1.0},
                  {"name": "b", "status": "skipped", "seconds": 0.0}],
        "benchmarks": RECORDS, "not_run": []})


class Ctest(unittest.TestCase):
    def test_every_outcome_is_told_apart(self):
        self.assertEqual({test["name"]: test["status"] for test in report.parse_ctest(CTEST)},
                         {"storage_tests": "passed", "array_types_tests.np2": "failed", "device_tests": "skipped",
                          "transport_tests.np4": "out of time", "x": "not run", "slow_tests": "out of time",
                          "crashing": "failed"})
        self.assertEqual(report.parse_ctest(CTEST)[1]["seconds"], 1.25)

    def test_no_output_is_no_test(self):
        self.assertEqual(report.parse_ctest("No tests were found!!!"), [])


class Verdict(unittest.TestCase):
    def test_passes(self):
        name, why = report.verdict(results())
        self.assertEqual(name, "passed")
        self.assertIn("1 tests passed, 1 skipped", why)

    def test_a_failed_test_a_failed_step_and_a_test_without_end_fail(self):
        for status in ("failed", "out of time", "not run"):
            changed = results()
            changed["tests"].append({"name": "bad", "status": status, "seconds": 0.0})
            self.assertEqual(report.verdict(changed)[0], "failed", status)
            self.assertIn("bad", report.verdict(changed)[1])
        for step in ("bench_gpu on 2 ranks", "build", "tests", "configure"):
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
        changed["rehearsal"] = "compiled"
        changed["tests"] = []
        self.assertEqual(report.verdict(changed), ("passed", "everything compiled; nothing was run"))
        self.assertIn("(compiled only)", report.markdown(changed))

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
                self.assertEqual(json.load(file), results())
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
        self.assertEqual(run("--compile-only", "nine").returncode, 2)
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


class Reserve(unittest.TestCase):
    def test_later_parts_keep_their_seconds(self):
        with tempfile.TemporaryDirectory() as folder:
            options = check.arguments(["--out", folder, "--build", folder, "--budget", "200", "--emulated"])
            run = check.Check(options, MACHINE)
            reserved = sum(check.RESERVED.values()) * 200 / check.BUDGET
            self.assertAlmostEqual(run.limit("build"), 200 - check.CLOSING - reserved, delta=2)
            run.todo = ["sanitizer"]
            self.assertAlmostEqual(run.limit("sanitizer"), check.CAPS["sanitizer"], delta=2)
            run.close()
            self.assertTrue(os.path.exists(run.stem + ".md"))


if __name__ == "__main__":
    unittest.main()
