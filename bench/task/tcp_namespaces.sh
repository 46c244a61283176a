#!/usr/bin/env bash
# Runs bench_task on two "hosts" of this machine that are joined by TCP: see test/network/two_hosts.sh, which says what it
# needs. By default, steps on meshes of 500 and 2,000 cells a rank.
#
#   bench/task/tcp_namespaces.sh [--ranks-per-host N] [--program PROGRAM] [ARGUMENT OF bench_task]...
set -euo pipefail
cd "$(dirname "$0")/../.."

ranks=1
program=build/bench/bench/task/bench_task
while [ $# -gt 0 ]; do
    case "$1" in
    --ranks-per-host) ranks=$2 ;;
    --program) program=$2 ;;
    -h | --help)
        sed -n '2,5s/^# \{0,1\}//p' "$0"
        exit 0
        ;;
    *) break ;;
    esac
    shift 2
done
[ $# -gt 0 ] || set -- --what latency
if [ ! -x "$program" ]; then
    printf 'tcp_namespaces.sh: no %s: scripts/bench.sh task builds it\n' "$program" >&2
    exit 1
fi
exec test/network/two_hosts.sh --ranks-per-host "$ranks" "$PWD/$program" "$@"
