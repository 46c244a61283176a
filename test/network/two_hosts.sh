#!/usr/bin/env bash
# Runs an MPI program on two "hosts" of one machine: network namespaces with addresses of their own, joined by a virtual cable, so that
# messages between them really go through TCP. Open MPI only. Skips (exit code 77) where the rights or programs for it are missing.
#
#   test/network/two_hosts.sh [--ranks-per-host N] [--cable DNDS_CABLE MICROSECONDS] PROGRAM [ARGUMENT]...
#
#   --cable      joined by dnds_cable (bench/task), which delivers each packet so many microseconds after it was sent
set -euo pipefail

skip() {
    printf 'two_hosts.sh: SKIPPED: %s\n' "$*"
    exit 77
}

ranks=2
limit=120
cable=()
while [ $# -gt 0 ]; do
    case "$1" in
    --ranks-per-host) ranks=$2 && shift 2 ;;
    --cable) cable=("$2" "$3") && limit=600 && shift 3 ;;
    *) break ;;
    esac
done
[ $# -gt 0 ] || {
    sed -n '2,7s/^# \{0,1\}//p' "$0"
    exit 2
}

mpirun=$(command -v mpirun.openmpi || command -v mpirun || true)
version=$("${mpirun:-false}" --version 2>/dev/null || true)
[[ $version == *"Open MPI"* || $version == *OpenRTE* ]] || skip "needs Open MPI's mpirun"
command -v ip >/dev/null || skip "needs ip (package iproute2)"
[ "$(id -u)" = 0 ] || skip "needs root, to make network namespaces"

name=dnds$$
forwarder=
folder=$(mktemp -d)
# shellcheck disable=SC2317 # called by the trap
cleanup() {
    [ -z "$forwarder" ] || kill "$forwarder" 2>/dev/null || true
    [ -z "$forwarder" ] || wait "$forwarder" || true
    ip netns del "$name-a" 2>/dev/null || true
    ip netns del "$name-b" 2>/dev/null || true
    rm -rf "$folder"
}
trap cleanup EXIT
ip netns add "$name-a" 2>/dev/null || skip "this environment forbids network namespaces"
ip netns add "$name-b"
if [ ${#cable[@]} -gt 0 ]; then
    [ -c /dev/net/tun ] || skip "there is no /dev/net/tun for a cable with latency"
    "${cable[@]}" "$name-a" "$name-b" &
    forwarder=$!
    for _ in $(seq 100); do
        ! ip -n "$name-b" link show cable >/dev/null 2>&1 || break
        kill -0 "$forwarder" 2>/dev/null || skip "this environment forbids tun devices"
        sleep 0.05
    done
else
    ip link add cable netns "$name-a" type veth peer name cable netns "$name-b" 2>/dev/null ||
        skip "this environment forbids virtual cables"
fi
for side in a b; do
    number=$([ "$side" = a ] && echo 1 || echo 2)
    ip -n "$name-$side" addr add "10.123.77.$number/24" dev cable
    ip -n "$name-$side" link set lo up
    ip -n "$name-$side" link set cable up ${cable[0]:+mtu 65000}
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
    timeout "$limit" "$mpirun" --mca plm_rsh_agent "$folder/agent" --mca plm_rsh_no_tree_spawn 1 \
    --mca oob_tcp_if_include 10.123.77.0/24 --mca btl_tcp_if_include 10.123.77.0/24 --mca btl self,vader,tcp --mca pml ob1 \
    --mca mpi_yield_when_idle 1 --oversubscribe --bind-to none --host "10.123.77.1:$ranks,10.123.77.2:$ranks" -n "$((2 * ranks))" "$@" || code=$?
exit "$code"
