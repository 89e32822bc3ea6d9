#!/usr/bin/env bash
# Runs every microbenchmark of a folder and prints one table; each is cut off after LIMIT seconds (60).
#
#   run_all.sh DIR > microbench.csv      DIR holds the executables: nvcc -O3 -std=c++17 -arch=sm_90 NAME.cu -o DIR/NAME
set -u
query=name,driver_version,clocks.sm,clocks.mem,clocks.max.sm,clocks.max.mem
echo "# command: microbench/run_all.sh"
echo "# date: $(date -u +%F)"
echo "# card ($query): $(nvidia-smi --query-gpu=$query --format=csv,noheader)"
echo "benchmark,name,parameter,value,unit"
for benchmark in exchange small_caches atomics l2 dram translation copies launch_floor tensor reductions spread calls contention first_touch bursts; do
    begin=$(date +%s.%N)
    timeout "${LIMIT:-60}" "$1/$benchmark" | sed "s/^/$benchmark,/"
    code=${PIPESTATUS[0]}
    awk -v n=$benchmark -v c="$code" -v a="$begin" -v b="$(date +%s.%N)" 'BEGIN { printf "%s: exit %s after %.1f s\n", n, c, b - a }' >&2
done
echo "# clocks afterwards ($query): $(nvidia-smi --query-gpu=$query --format=csv,noheader)"
