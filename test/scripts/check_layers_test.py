#!/usr/bin/env python3
"""scripts/check_layers.py on small trees of its own."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts/check_layers.py"


class CheckLayers(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.root = pathlib.Path(self.folder.name)

    def check(self, layers, files):
        """Exit code and output for files {path under src/: text}."""
        (self.root / "layers.txt").write_text(layers)
        for name, text in files.items():
            path = self.root / "src" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        run = subprocess.run(
            [sys.executable, SCRIPT, self.root / "layers.txt", "--source", self.root / "src"],
            capture_output=True,
            text=True,
        )
        return run.returncode, run.stdout + run.stderr

    def test_passes_where_includes_follow_the_list(self):
        files = {"DNDS/Base/A.hpp": "", "DNDS/Mpi/B.hpp": '#include "DNDS/Base/A.hpp"\n'}
        self.assertEqual(self.check("DNDS/Base:\nDNDS/Mpi: DNDS/Base\n", files), (0, ""))

    def test_names_the_file_that_breaks_a_layer(self):
        files = {"DNDS/Base/A.hpp": '#include "DNDS/Mpi/B.hpp"\n', "DNDS/Mpi/B.hpp": ""}
        code, text = self.check("DNDS/Base:\nDNDS/Mpi:\n", files)
        self.assertEqual(code, 1)
        self.assertIn("A.hpp: DNDS/Base may not include DNDS/Mpi/B.hpp", text)

    def test_knows_geom_by_the_name_of_its_includes(self):
        files = {"Geom/Cgns/A.cpp": '#include "DNDS/Geom/Source/B.hpp"\n', "Geom/Source/B.hpp": ""}
        self.assertEqual(self.check("Geom/Source:\nGeom/Cgns: Geom/Source\n", files)[0], 0)
        self.assertEqual(self.check("Geom/Source:\nGeom/Cgns:\n", files)[0], 1)

    def test_names_files_that_include_what_is_not_installed(self):
        files = {
            "CMakeLists.txt": "set(headers\n    DNDS/Base/A.hpp\n    DNDS/Base/B.hpp)\n",
            "DNDS/Base/A.hpp": '#include "DNDS/Base/B.hpp"\n',
            "DNDS/Base/B.hpp": '#include "DNDS/Base/Private.hpp"\n',
            "../python/src/C.cpp": '#include "DNDS/Base/A.hpp"\n#include "DNDS/Base/Other.hpp"\n',
        }
        code, text = self.check("DNDS/Base:\n", files)
        self.assertEqual(code, 1)
        self.assertIn("B.hpp includes DNDS/Base/Private.hpp, which is not installed", text)
        self.assertIn("C.cpp includes DNDS/Base/Other.hpp, which is not installed", text)
        self.assertEqual(len(text.splitlines()), 2, text)

    def test_names_installed_headers_that_no_program_includes(self):
        files = {
            "CMakeLists.txt": "set(headers\n    DNDS/Base/A.hpp\n    DNDS/Base/B.hpp\n    DNDS/Base/C.hpp)\n",
            "DNDS/Base/A.hpp": "",
            "DNDS/Base/B.hpp": "",
            "DNDS/Base/C.hpp": "",
            "../cases/a/A.cpp": '#include "DNDS/Base/A.hpp"\n',
            "../cases/a/BTest.cpp": '#include "DNDS/Base/B.hpp"\n',
            "../docs/guide.md": "`DNDS/Base/C.hpp` has more.\n",
        }
        code, text = self.check("DNDS/Base:\n", files)
        self.assertEqual((code, len(text.splitlines())), (1, 1), text)
        self.assertIn("DNDS/Base/B.hpp is installed, but no tutorial", text)

    def test_refuses_cycles_unlisted_folders_unused_edges_and_paths_upward(self):
        code, text = self.check("DNDS/A: DNDS/B\nDNDS/B: DNDS/A\n", {})
        self.assertEqual(code, 1)
        self.assertIn("cycle", text)
        code, text = self.check("DNDS/A:\n", {"DNDS/B/C.hpp": '#include "DNDS/A/D.hpp"\n'})
        self.assertIn("the folder DNDS/B is not in", text)
        code, text = self.check("DNDS/A:\nDNDS/B: DNDS/A\n", {"DNDS/B/C.hpp": ""})
        self.assertIn("DNDS/B includes nothing of DNDS/A", text)
        code, text = self.check("DNDS/A:\nDNDS/B:\n", {"DNDS/B/C.hpp": '#include "../A/D.hpp"\n'})
        self.assertIn("include ../A/D.hpp by its path from src/", text)


if __name__ == "__main__":
    unittest.main()
