#!/bin/bash
# Times simulations by 1 to 16 threads, and independent ones beside each other.
#
#   measure.sh LOCKSTEP PROGRAMS OUT [PLAN]
#
# LOCKSTEP is the command, PROGRAMS the folder with the executables, OUT the folder for `runs.txt` and
# `machine.txt`. PLAN is a file of lines `scale PROGRAM ARGUMENTS` (every number of threads, both
# schedules), `one THREADS SCHEDULE PROGRAM ARGUMENTS`, `many COPIES PROGRAM ARGUMENTS` (as many runs of
# one thread at the same time) and `on PROCESSORS LINE` (one of these, on some processors only); without it,
# all programs of programs.txt are scaled and run in copies. Needs bash and coreutils only, so that it runs where nothing can be
# built. THREADS, SCHEDULES, GPU, REPEAT and LIMIT (seconds after which no further line is begun) change what is done.
set -u
lockstep=$(realpath "$1"); programs=$(realpath "$2"); mkdir -p "$3"; out=$(realpath "$3")
here=$(dirname "$(realpath "$0")")
threads=${THREADS:-1 2 4 8 16}; schedules=${SCHEDULES:-static dynamic}; gpu=${GPU:-h200}
scratch=$(mktemp -d); trap 'rm -rf "$scratch"' EXIT
began=$(date +%s)
{ date -u +%F; echo "processors $(nproc)"; lscpu; "$lockstep" --version; } > "$out/machine.txt" 2>&1
: > "$out/runs.txt"

# What a run left, as one line: its key, blocks of its launches, and its summary without the configuration.
note() {
    local folder=$1; shift
    if [ -f "$folder/summary.json" ]; then
        local blocks
        blocks=$(awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "grid") at = i; next }
            { split($at, d, "x"); b = d[1] * d[2] * d[3]; n++; sum += b; if (b > most) most = b }
            END { printf "%d %.1f %d", n, n ? sum / n : 0, most }' "$folder/kernels.csv")
        echo "$* | $blocks | $(tr -d '\n' < "$folder/summary.json" | sed 's/,  *"configuration".*/}/')"
    else
        echo "$* | failed"
    fi >> "$out/runs.txt"
}

simulate() { # folder, threads, schedule, program and arguments
    local folder=$1 count=$2 schedule=$3 program=$4; shift 4
    rm -rf "$folder"
    timeout 300 $pinned "$lockstep" run --quiet --gpu "$gpu" --mode timing --threads "$count" --schedule "$schedule" \
        --out "$folder" -- "$programs/$program" "$@" > "$folder.log" 2>&1 || tail -3 "$folder.log"
}

one() { # threads, schedule, program and arguments
    for _ in $(seq "${REPEAT:-1}"); do
        simulate "$scratch/run" "$@"
        note "$scratch/run" one$place "$@"
    done
}

many() { # copies, program and arguments
    local copies=$1; shift
    for copy in $(seq "$copies"); do simulate "$scratch/run$copy" 1 auto "$@" & done
    wait
    for copy in $(seq "$copies"); do note "$scratch/run$copy" many$place "$copies" auto "$@"; done
}

scale() { # program and arguments
    for count in $threads; do
        # All others are compared with this one: the better of two.
        if [ "$count" = 1 ]; then one 1 auto "$@"; one 1 auto "$@"; continue; fi
        for schedule in $schedules; do one "$count" "$schedule" "$@"; done
    done
}

on() { # processors, then another line
    pinned="taskset -c $1" place=@$1; shift
    "$@"
    pinned= place=
}

pinned= place=
plan=${4:-}
if [ -z "$plan" ]; then
    plan=$scratch/plan
    most=$(echo "$threads" | tr ' ' '\n' | sort -n | tail -1)
    grep -v '^#' "$here/programs.txt" | while read -r _ program; do
        echo "scale $program"
        echo "many $most $program"
    done > "$plan"
fi
while read -r kind words; do
    case $kind in '#'* | '') continue ;; esac
    if [ $(($(date +%s) - began)) -ge "${LIMIT:-100000}" ]; then
        echo "no time left for: $kind $words"
        continue
    fi
    # The words are to be split.
    # shellcheck disable=SC2086
    "$kind" $words < /dev/null
done < "$plan"
