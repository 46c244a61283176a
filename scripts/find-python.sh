#!/usr/bin/env bash
# Prints a Python that has the modules; fails with 1 and a message without one.
#
#   scripts/find-python.sh MODULE...
#
# The distribution's packages belong to its own Python, which need not be the first in PATH.
set -euo pipefail
modules=$(printf ', %s' "$@")
for candidate in python3 /usr/bin/python3; do
    if "$candidate" -c "import ${modules:2}" 2>/dev/null; then
        echo "$candidate"
        exit
    fi
done
echo "no Python with ${modules:2}" >&2
exit 1
