#!/usr/bin/env bash
# Runs an MPI program on two "hosts" of one machine: network namespaces with addresses of their own, joined by a virtual cable, so that
# messages between them really go through TCP. Open MPI only. Skips (exit code 77) where the rights or programs for it are missing.
#
#   test/network/two_hosts.sh [--ranks-per-host N] PROGRAM [ARGUMENT]...
set -euo pipefail

skip() {
    printf 'two_hosts.sh: SKIPPED: %s\n' "$*"
    exit 77
}

ranks=2
if [ "${1:-}" = --ranks-per-host ]; then
    ranks=$2
    shift 2
fi
[ $# -gt 0 ] || {
    sed -n '2,5s/^# \{0,1\}//p' "$0"
    exit 2
}

mpirun=$(command -v mpirun.openmpi || command -v mpirun || true)
version=$("${mpirun:-false}" --version 2>/dev/null || true)
[[ $version == *"Open MPI"* || $version == *OpenRTE* ]] || skip "needs Open MPI's mpirun"
command -v ip >/dev/null || skip "needs ip (package iproute2)"
[ "$(id -u)" = 0 ] || skip "needs root, to make network namespaces"

name=dnds$$
folder=$(mktemp -d)
# shellcheck disable=SC2317 # called by the trap
cleanup() {
    ip netns del "$name-a" 2>/dev/null || true
    ip netns del "$name-b" 2>/dev/null || true
    rm -rf "$folder"
}
trap cleanup EXIT
ip netns add "$name-a" 2>/dev/null || skip "this environment forbids network namespaces"
ip netns add "$name-b"
ip link add "$name-va" netns "$name-a" type veth peer name "$name-vb" netns "$name-b" 2>/dev/null ||
    skip "this environment forbids virtual cables"
for side in a b; do
    number=$([ "$side" = a ] && echo 1 || echo 2)
    ip -n "$name-$side" addr add "10.123.77.$number/24" dev "$name-v$side"
    ip -n "$name-$side" link set lo up
    ip -n "$name-$side" link set "$name-v$side" up
done

# What mpirun uses in place of ssh: runs a command "on" the second host, which has a host name of its own.
cat >"$folder/agent" <<AGENT
#!/bin/sh
shift
exec ip netns exec $name-b unshare --uts sh -c 'hostname host-b; exec sh -c "\$0"' "\$*"
AGENT
chmod +x "$folder/agent"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
code=0
# Each host has as many slots as ranks, so mpirun sees no oversubscription: without yielding, ranks that spin keep the cores from those
# that they wait for, and a run takes ten times as long.
# shellcheck disable=SC2016 # the inner shell expands its own arguments
ip netns exec "$name-a" unshare --uts sh -c 'hostname host-a; exec "$0" "$@"' \
    timeout 120 "$mpirun" --mca plm_rsh_agent "$folder/agent" --mca plm_rsh_no_tree_spawn 1 \
    --mca oob_tcp_if_include 10.123.77.0/24 --mca btl_tcp_if_include 10.123.77.0/24 --mca btl self,vader,tcp --mca pml ob1 \
    --mca mpi_yield_when_idle 1 --oversubscribe --bind-to none --host "10.123.77.1:$ranks,10.123.77.2:$ranks" -n "$((2 * ranks))" "$@" || code=$?
exit "$code"
