#!/usr/bin/env python3
"""What scripts/weight.py counts as a class, as a comment and as code."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))

import weight  # noqa: E402


def classes(text):
    return len(weight.CLASS.findall(weight.split(text)[0]))


class Classes(unittest.TestCase):
    def test_definitions_count(self):
        self.assertEqual(classes("struct A { int x; };"), 1)
        self.assertEqual(classes("class [[nodiscard]] A final : public B<int>, C {\n};"), 1)
        self.assertEqual(classes("template <class T, class U = V<T>>\nclass A : public B<T> {};"), 1)
        self.assertEqual(classes("template <>\nstruct A<int, 3> {};"), 1)
        self.assertEqual(classes("struct A {\n    struct B {};\n    class C {};\n};"), 3)

    def test_others_do_not(self):
        self.assertEqual(classes("struct A;\nclass B;\nfriend class C;"), 0)
        self.assertEqual(classes("enum class A { b };\nenum struct C : int { d };"), 0)
        self.assertEqual(classes("template <class T>\nvoid f(T x) {\n}"), 0)
        self.assertEqual(classes('/// struct A {};\nconst char *text = "struct B {};"; /* class C {}; */'), 0)


class Comments(unittest.TestCase):
    def test_lines_and_numbers(self):
        code, comments = weight.split('int a; // one\n/* two\nthree */\nauto s = "// no";\nint n = 1\'000; // four\n')
        self.assertEqual([number for number, _ in comments], [1, 2, 3, 5])
        lines = [line.strip() for line in code.split("\n")]
        self.assertEqual(lines, ["int a;", "", "", 'auto s = "";', "int n = 1'000;", ""])


if __name__ == "__main__":
    unittest.main()
