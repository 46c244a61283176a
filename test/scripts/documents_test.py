#!/usr/bin/env python3
"""What documents list is all there: layers, and the page of the Python package."""

import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "docs/site"))

import stubs  # noqa: E402


class Layers(unittest.TestCase):
    def test_all_folders_are_listed(self):
        folders = [path.name for path in (ROOT / "src/DNDS").iterdir() if path.is_dir() and not path.is_symlink()]
        for document in ("CONTRIBUTING.md", "docs/inside/architecture.md"):
            text = (ROOT / document).read_text()
            words = text[text.index("## Layers") :].split("```")[1].split()
            for folder in folders:
                self.assertIn(folder, words, f"{document} lists layers without {folder}")


class PythonReference(unittest.TestCase):
    def test_it_says_where_the_module_was_not_built(self):
        with tempfile.TemporaryDirectory() as folder:
            script, stub = pathlib.Path(folder) / "mesh.py", pathlib.Path(folder) / "_core.pyi"
            script.write_text('def of_python():\n    """Written in Python."""\n')
            stub.write_text('def of_module() -> None:\n    """Bound."""\n')
            partly = stubs.page([("dnds.mesh", script)])
            self.assertNotIn("All public names", partly)
            self.assertIn("made without a build of the module", partly)
            self.assertIn("of_python", partly)
            whole = stubs.page([("dnds", stub), ("dnds.mesh", script)])
            self.assertIn("All public names of the package", whole)
            self.assertIn("of_module", whole)


if __name__ == "__main__":
    unittest.main()
