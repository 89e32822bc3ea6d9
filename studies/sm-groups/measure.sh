#!/bin/bash
# The seed's figure 6: the time of one simulation with its SMs in 1, 2 and 4 groups, a thread each, five times.
#
#   measure.sh LOCKSTEP ACCUMULATE OUT        OUT gets groups.csv
#
# Build ACCUMULATE with `nvcc -O3 -std=c++17 accumulate.cu`.
set -u
lockstep=$(realpath "$1"); program=$(realpath "$2"); mkdir -p "$3"; out=$(realpath "$3")
scratch=$(mktemp -d); trap 'rm -rf "$scratch"' EXIT
echo "groups,repetition,seconds,simulating_seconds,cycles,digest" > "$out/groups.csv"
for groups in ${GROUPS_TRIED:-1 2 4 8}; do
    for repetition in 1 2 3 4 5; do
        rm -rf "$scratch/run"
        "$lockstep" run --quiet --gpu v100 --mode timing --threads "$groups" --schedule static \
            --out "$scratch/run" -- "$program" 84 "${ACCUMULATIONS:-2000}" > "$scratch/log" 2>&1 || cat "$scratch/log"
        value() { sed -n "s/^ *\"$1\": *\"\{0,1\}\([^\",]*\)\"\{0,1\},\{0,1\}$/\1/p" "$scratch/run/summary.json" | head -1; }
        echo "$groups,$repetition,$(value seconds),$(value simulating_seconds),$(value cycles),$(value digest)" >> "$out/groups.csv"
    done
done
awk -F, 'NR > 1 { n[$1]++; s[$1] += $3; if (!($1 in low) || $3 < low[$1]) low[$1] = $3; if ($3 > high[$1]) high[$1] = $3; seen[$6] = 1 }
    END { for (g in n) printf "%d groups: mean %.2f s, least %.2f s, most %.2f s\n", g, s[g] / n[g], low[g], high[g] | "sort -n"
        close("sort -n"); for (d in seen) k++; print k " digest(s)" }' "$out/groups.csv"
