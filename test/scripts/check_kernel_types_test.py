#!/usr/bin/env python3
"""scripts/check_kernel_types.py on headers of its own."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts/check_kernel_types.py"


class CheckKernelTypes(unittest.TestCase):
    def check(self, text):
        """What is said of a header, without its name."""
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "A.hpp"
            path.write_text(text)
            run = subprocess.run([sys.executable, SCRIPT, path], capture_output=True, text=True)
            lines = [line.removeprefix(f"{path}:") for line in (run.stdout + run.stderr).splitlines()]
            self.assertEqual(run.returncode, 1 if lines else 0)
            return lines

    def test_refuses_what_compilers_lay_out_differently(self):
        for text, what in [
            ("struct A {\n    [[no_unique_address]] B b{};\n};\n", "2: [[no_unique_address]]"),
            ("struct A {\n    int few : 3;\n};\n", "2: a bit field"),
            ("class A {\n    long double x = 0;\n};\n", "2: long double"),
            ("struct A : virtual B {};\n", "1: a virtual base"),
            ("struct A : public B, public virtual C {};\n", "1: a virtual base"),
        ]:
            with self.subTest(what=what):
                found = self.check(text)
                self.assertEqual(len(found), 1)
                self.assertTrue(found[0].startswith(what), found)

    def test_refuses_members_that_depend_on_a_macro(self):
        text = """namespace N {
template <class T>
requires(sizeof(T) > 3) class A {
    int f() const { return 1; }
#if defined(X)
    std::array<int, 3> q_{};
    int g();
#else
    static constexpr int h = 1;
#endif
    int last = 0;
};
#if defined(X)
using Chosen = A<int>;
#endif
}
"""
        self.assertEqual(self.check(text), ["6: a member that depends on a macro",
                                            "14: a member that depends on a macro"])

    def test_passes_what_is_laid_out_alike(self):
        text = """#pragma once
// [[no_unique_address]] in comments, "long double" in texts
class A : public B {
  public:
    int f(int x) const {
#if defined(X)
        int y = x;
        using T = long double;
#endif
        return x ? 1 : 2;
    }
#if defined(X)
    void g();
#endif
  private:
    int x_ = 0;
    std::function<void(int)> y_;
};
"""
        self.assertEqual(self.check(text), [])


if __name__ == "__main__":
    unittest.main()
