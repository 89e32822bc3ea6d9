#!/usr/bin/env bash
# Builds every workload and runs it on the GPU of this machine; ends with a table and fails if any program fails.
#
#   run_all.sh [--size small|default|medium|large] [--arch sm_90] [--only REGEX] [--bin DIR] [--build-only | --run-only | --libraries]
#
# With --libraries each program becomes a shared library for validation/runner.cu, of the same device code.
#
# Environment: NVCC (default: nvcc on PATH, else the project's own), JOBS (parallel builds), RUN_JOBS (programs that
# share the GPU), LIMIT (seconds for one program), LAUNCHER (words put before each program),
# DRIVER_FOLDER (where a libcuda.so to link with is), OUT (a folder for workloads.csv and each program's output).
set -u -o pipefail
here=$(cd "$(dirname "$0")" && pwd)
size=default arch=sm_90 only=. bin= build=1 run=1 suffix=
while [ $# -gt 0 ]; do
    case $1 in
        --size) size=$2; shift 2 ;;
        --arch) arch=$2; shift 2 ;;
        --only) only=$2; shift 2 ;;
        --bin) bin=$2; shift 2 ;;
        --build-only) run=0; shift ;;
        --run-only) build=0; shift ;;
        --libraries) run=0 suffix=.so; shift ;;
        *) echo "run_all.sh: unknown argument \`$1\`; see the head of this file" >&2; exit 2 ;;
    esac
done
case $size in small | default | medium | large) ;; *) echo "run_all.sh: --size is small, default, medium or large, not \`$size\`" >&2; exit 2 ;; esac
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
bin=${bin:-$scratch/bin}
mkdir -p "$bin" "$scratch/out"
bin=$(cd "$bin" && pwd)

# name, source, architecture, libraries and arguments of each program, separated by bars, from one-line values.
awk -v size="$size" -v only="$only" '
    function flush() { if (name ~ only) print name "|" source "|" need "|" links "|" (size == "default" ? "" : words[size]) }
    function plain(v) { gsub(/[]["]/, "", v); gsub(/, /, " ", v); return v }
    /^\[\[program\]\]/ { if (name) flush(); name = source = need = links = ""; delete words; next }
    / = / { key = $1; value = $0; sub(/^[^=]*= /, "", value); value = plain(value)
            if (key == "name") name = value; else if (key == "source") source = value
            else if (key == "architecture") need = value; else if (key == "links") links = value
            else words[key] = value }
    END { if (name) flush() }' "$here/workloads.toml" >"$scratch/programs"

if [ $build = 1 ]; then
    nvcc=${NVCC:-$(command -v nvcc || ls "$here"/../.lockstep/venv/lib/python3*/site-packages/nvidia/cu*/bin/nvcc 2>/dev/null | head -n 1)}
    if [ -z "$nvcc" ]; then
        echo "run_all.sh: no nvcc found; put it on PATH or name it in NVCC" >&2
        exit 2
    fi
    build_one() {
        IFS='|' read -r name source need links _ <<<"$1"
        # A program may need more than the architecture asked for; the GPU then decides whether it runs.
        target=$arch
        [ "${need#sm_}" -gt "${arch#sm_}" ] 2>/dev/null && target=$need
        options=()
        if [ -n "$suffix" ]; then
            options+=(-shared -Xcompiler -fPIC -include "$scratch/main.h" -Dmain=workload_main)
        else
            [ -n "${DRIVER_FOLDER:-}" ] && options+=("-L$DRIVER_FOLDER")
            for library in $links; do options+=("-l$library"); done
        fi
        if ! "$nvcc" -O3 -std=c++17 "-arch=$target" "$here/$source" -o "$bin/$name$suffix" "${options[@]}" >"$scratch/out/$name.build" 2>&1; then
            # Where the toolkit has no stub of the driver's library, link with the driver itself.
            [ -n "$links" ] && "$nvcc" -O3 -std=c++17 "-arch=$target" "$here/$source" -o "$bin/$name" -Xlinker -l:libcuda.so.1 \
                >>"$scratch/out/$name.build" 2>&1 && return 0
            echo "cannot build $name:" >&2
            head -n 5 "$scratch/out/$name.build" >&2
        fi
    }
    export -f build_one
    export nvcc arch here bin scratch suffix
    echo 'extern "C" int workload_main(int, char**);' >"$scratch/main.h"
    xargs -d '\n' -P "${JOBS:-$(nproc)}" -I{} bash -c 'build_one "$1"' _ {} <"$scratch/programs"
fi
if [ $run = 0 ]; then
    missing=0
    while IFS='|' read -r name _; do [ -e "$bin/$name$suffix" ] || missing=$((missing + 1)); done <"$scratch/programs"
    echo "$(wc -l <"$scratch/programs") programs for $arch under $bin, $missing not built"
    exit $((missing > 0))
fi

run_one() {
    IFS='|' read -r name _ _ _ arguments <<<"$1"
    start=$(date +%s.%N)
    if [ -x "$bin/$name" ]; then
        # Arguments and launcher are words on purpose.
        timeout "${LIMIT:-60}" ${LAUNCHER:-} "$bin/$name" $arguments >"$scratch/out/$name.txt" 2>&1
        code=$?
    else
        echo "not built" >"$scratch/out/$name.txt"
        code=127
    fi
    seconds=$(awk -v a="$start" -v b="$(date +%s.%N)" 'BEGIN { printf "%.2f", b - a }')
    verdict=fail
    [ $code = 0 ] && grep -q "^PASS $name " "$scratch/out/$name.txt" && verdict=pass
    [ $code = 124 ] && verdict=timeout
    line=$(grep -E "^(PASS|FAIL) " "$scratch/out/$name.txt" | tail -n 1)
    printf '%s|%s|%s|%s|%s\n' "$name" "$verdict" "$code" "$seconds" "${line:-$(tail -n 1 "$scratch/out/$name.txt")}" >"$scratch/out/$name.row"
}
export -f run_one
export bin scratch
xargs -d '\n' -P "${RUN_JOBS:-4}" -I{} bash -c 'run_one "$1"' _ {} <"$scratch/programs"

passed=0 failed=0
echo "program,verdict,exit_code,seconds,arguments,line" >"$scratch/workloads.csv"
while IFS='|' read -r name _ _ _ arguments; do
    IFS='|' read -r _ verdict code seconds line <"$scratch/out/$name.row"
    printf '%-26s %-8s %7ss  %s\n' "$name" "$verdict" "$seconds" "$line"
    printf '%s,%s,%s,%s,"%s","%s"\n' "$name" "$verdict" "$code" "$seconds" "$arguments" "${line//\"/\"\"}" >>"$scratch/workloads.csv"
    if [ "$verdict" = pass ]; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
done <"$scratch/programs"
if [ -n "${OUT:-}" ]; then
    mkdir -p "$OUT/workloads"
    cp "$scratch/workloads.csv" "$OUT/"
    cp "$scratch"/out/*.txt "$OUT/workloads/"
fi
echo "$passed passed, $failed failed"
[ $failed = 0 ]
