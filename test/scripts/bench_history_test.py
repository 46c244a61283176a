#!/usr/bin/env python3
"""Histories of benchmarks: what is recorded, compared, drawn, and shown on the page on performance."""

import importlib.util
import json
import os
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts/bench"))

import history  # noqa: E402
import page  # noqa: E402
import programs  # noqa: E402

PROGRAM = programs.Program(
    case=("case", "method"), ratios=("ratio_to_hand", "ratio_to_copy"), ranks=(1, 2), only={"method": ("dnds",)},
    tables=(programs.Table({"case": "ghosts"}, programs.on_ranks("ratio_to_hand", 1, 2)),))
MARKED = "".join(f"<!-- {name}: by scripts/bench/page.py -->\nold\n\n"
                 for name in [*programs.PROGRAMS, "gpu"])


def line(date="2026-01-01", ratio=(0.9, 1.0, 1.1), **more):
    return {"date": date, "commit": date[-2:], "build": "bench", "cpu": "A", "cores": 2, "mpi": "B", "runs": 5,
            "others": 0.1, "case": {"ranks": 2, "case": "box", "method": "dnds"},
            "ratios": {"ratio_to_hand": list(ratio)}, **more}


class Records(unittest.TestCase):
    def test_ratios_of_wanted_records_are_kept(self):
        records = [{"case": "box", "method": "dnds", "ratio_to_hand": 0.5, "ratio_to_copy": None, "us": 3.0},
                   {"case": "box", "method": "hand", "ratio_to_hand": 1.0, "ratio_to_copy": 2.0}]
        self.assertEqual(list(history.ratios_of(PROGRAM, records, 2)),
                         [({"ranks": 2, "case": "box", "method": "dnds"}, "ratio_to_hand", 0.5)])
        everything = programs.Program(case=("case", "method"), ratios=PROGRAM.ratios, tables=())
        self.assertEqual([value for *_, value in history.ratios_of(everything, records, 2)], [0.5, 1.0, 2.0])

    def test_least_times_are_compared_with_the_fastest_baseline_in_the_usual_state_of_the_machine(self):
        program = programs.Program(case=("case", "method"), ratios=(), tables=(), only={"method": ("dnds",)},
                                   method="method", least={"least_to_hand": ("packed", "types"), "other": ("none",)})
        records = [{"case": case, "method": method, "regime": regime, "repetitions": turns, "min_us": least}
                   for case, method, regime, turns, least in (
                    ("a", "dnds", "near", 10, 3.0), ("a", "dnds", "far", 90, 2.0), ("a", "packed", "near", 10, 1.0),
                    ("a", "packed", "far", 90, 5.0), ("a", "types", "far", 90, 4.0), ("b", "packed", "near", 10, 1.0),
                    ("b", "dnds", "near", 10, None))]
        self.assertEqual(list(history.ratios_of(program, records, 2)),
                         [({"ranks": 2, "case": "a", "method": "dnds"}, "least_to_hand", 0.5)])

    def test_quartiles(self):
        self.assertEqual(history.summary([5.0, 1.0, 2.0, 4.0, 3.0]), [2.0, 3.0, 4.0])
        self.assertEqual(history.summary([0.123456]), [0.1235] * 3)

    def test_runs_are_summed_up_in_a_line_a_case(self):
        with tempfile.TemporaryDirectory() as folder:
            launcher = pathlib.Path(folder) / "launcher.sh"
            launcher.write_text('#!/bin/sh\necho x >> "$0.calls"\nn=$(wc -l < "$0.calls")\n'
                                '[ "$n" -lt 7 ] || exit 3\n'
                                'echo "[{\\"case\\": \\"box\\", \\"method\\": \\"dnds\\", \\"cpu\\": \\"A\\", '
                                '\\"mpi\\": \\"B\\", \\"ratio_to_hand\\": $n.5}]" > "$4"\n')
            launcher.chmod(0o755)
            with mock.patch.object(os, "sched_getaffinity", return_value={0, 1}):
                lines = history.measure(PROGRAM, [str(launcher)], "program", 3)
            self.assertEqual([(one["case"]["ranks"], one["ratios"]["ratio_to_hand"]) for one in lines],
                             [(1, [2.5, 3.5, 4.5]), (2, [3.5, 4.5, 5.5])])
            self.assertEqual({key: lines[0][key] for key in ("cpu", "cores", "mpi", "runs")},
                             {"cpu": "A", "cores": 2, "mpi": "B", "runs": 3})
            self.assertGreaterEqual(lines[0]["others"], 0)
            with self.assertRaisesRegex(SystemExit, "ended with 3"):
                history.measure(PROGRAM, [str(launcher)], "program", 1)

    def test_a_file_has_a_line_a_case_in_order_of_date(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "new/exchange.jsonl"
            history.append(path, [line("2026-01-02"), line("2026-01-02", case={"ranks": 1})])
            history.append(path, [line("2026-01-01")])
            self.assertEqual(len(path.read_text().splitlines()), 3)
            lines = history.read(path)
            self.assertEqual([one["date"] for one in lines], ["2026-01-01", "2026-01-02", "2026-01-02"])
            self.assertEqual(len(history.newest(lines)), 2)
            self.assertEqual(history.read(pathlib.Path(folder) / "none.jsonl"), [])


class Comparison(unittest.TestCase):
    def test_the_record_before_is_of_the_same_setting(self):
        lines = [line("2026-01-01"), line("2026-01-02", cpu="other"), line("2026-01-03")]
        self.assertEqual([one["date"] for one in history.before(lines)], ["2026-01-01"])
        self.assertEqual(history.before(lines[:2]), [])

    def test_changes_are_told_where_quartiles_lie_apart(self):
        old = [line()]
        self.assertEqual(history.changed(old, [line(ratio=(1.0, 1.2, 1.3))]), [])
        self.assertEqual(history.changed(old, [line(ratio=(1.2, 1.3, 1.4))]),
                         ["slower? ranks 2, box, dnds, ratio_to_hand: 1 -> 1.3"])
        self.assertTrue(history.changed(old, [line(ratio=(0.5, 0.6, 0.7))])[0].startswith("faster?"))
        self.assertEqual(history.changed(old, [line(case={"ranks": 3}, ratio=(9, 9, 9))]), [])


class Page(unittest.TestCase):
    def test_a_table_has_a_row_a_case_and_a_column_a_way(self):
        lines = [line(), line(case={"ranks": 1, "case": "box", "method": "dnds"}, ratio=(0.5, 0.5, 0.5)),
                 line(case={"ranks": 2, "case": "many", "method": "dnds"}, ratio=(0.01, 0.0123, 0.02))]
        self.assertEqual(page.table(PROGRAM.tables[0], lines), [
            "| ghosts | 1 rank | 2 ranks |", "|---|---|---|", "| box | 0.50 | 1.00 (0.90-1.10) |",
            "| many |  | 0.012 (0.01-0.02) |"])
        self.assertEqual(page.table(PROGRAM.tables[0], [line()]), [
            "| ghosts | 2 ranks |", "|---|---|", "| box | 1.00 (0.90-1.10) |"])
        self.assertEqual(page.table(PROGRAM.tables[0], [line(case={"ranks": 8})]), [])
        with self.assertRaisesRegex(SystemExit, "two cases for '2 ranks' of 'box'"):
            page.table(PROGRAM.tables[0], [line(), line(case={"ranks": 2, "case": "box", "method": "other"})])

    def test_the_caption_names_machine_and_record_before(self):
        text = page.caption("blocks", [line("2026-01-01"), line("2026-01-03", ratio=(1.9, 2.0, 2.1))])
        for part in ("2026-01-03", "commit 03", "A, 2 cores, B", "preset `bench`", "5 runs", "used 0.1 cores",
                     "To the record of 2026-01-01 (01): 2.00 x"):
            self.assertIn(part, text)

    def test_places_are_filled_and_missing_ones_told(self):
        with tempfile.TemporaryDirectory() as folder:
            empty = pathlib.Path(folder)
            made, wrong = page.renewed("by hand\n\n" + MARKED + "## More\n", empty, empty)
            self.assertEqual(wrong, [])
            self.assertTrue(made.startswith("by hand\n\n<!-- exchange") and made.endswith("\n\n## More\n"))
            self.assertIn("is not recorded yet: `scripts/bench.sh blocks --record`.", made)
            self.assertNotIn("old", made)
            self.assertEqual(page.renewed(made, empty, empty)[0], made)
            self.assertIn("no place for 'gpu'", page.renewed("", empty, empty)[1][-1])
            self.assertIn("more than 200", page.renewed("\n" * 200 + MARKED, empty, empty)[1][0])

    def test_results_of_gpus_are_shown_but_not_rehearsals(self):
        results = {"started": "2026-01-01T00:00", "source": "abc", "rehearsal": None,
                   "machine": {"gpus": [{"name": "G"}]},
                   "benchmarks": [{"benchmark": "kernel", "kernel": "pack", "rows": 10**6, "fraction_of_floor": 0.9}]}
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder)
            for name, more in (("1", {"started": "2025-01-01"}), ("2", {}), ("3", {"rehearsal": "emulated"}),
                               ("4", {"machine": {"gpus": []}}), ("5", {"benchmarks": []})):
                (path / f"{name}.json").write_text(json.dumps({**results, **more}))
            text = page.gpu_section(path)
        self.assertIn("G: 2026-01-01, source abc, [all results](../gpu-results/2.md).", text)
        self.assertIn("0.90 of the floor |", text)
        self.assertEqual(text.count("| goal: "), 1)

    def test_what_is_stored_is_shown(self):
        for name, program in programs.PROGRAMS.items():
            lines = history.read(history.FOLDER / f"{name}.jsonl")
            for one in history.newest(lines) if lines else []:
                self.assertLessEqual(set(one["ratios"]), {*program.ratios, *program.least}, name)
                self.assertLessEqual(set(one["case"]), {"ranks", *program.case}, name)
            for spec in program.tables if lines else ():
                self.assertTrue(page.table(spec, history.newest(lines)), f"a table of {name} has no rows")


@unittest.skipUnless(importlib.util.find_spec("matplotlib"), "Matplotlib is not installed")
class Plot(unittest.TestCase):
    def test_each_case_has_axes_and_each_setting_a_line(self):
        import plot

        other = {"ranks": 1, "case": "box", "method": "dnds"}
        figure = plot.draw([line(), line("2026-01-02"), line("2026-01-02", cpu="other"), line(case=other)], "blocks")
        shown = [axes for axes in figure.axes if axes.get_title()]
        self.assertEqual([axes.get_title() for axes in shown], ["ranks 2, box, dnds", "ranks 1, box, dnds"])
        self.assertEqual(len(shown[0].get_legend().get_texts()), 2)


if __name__ == "__main__":
    unittest.main()
