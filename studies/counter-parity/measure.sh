#!/bin/bash
# Measures counters of a real GPU: our exact counts and series beside ncu's, attribution, and cost.
#
#   measure.sh OUT LOCKSTEP [PART...]      parts: parity series attribution graphs processes rates robustness overhead
#
# Needs nvcc, ncu and a GPU whose counters this user may read. LOCKSTEP is the `lockstep` command
# (LOCKSTEP_INJECTOR names the injector if it is not beside it). Every step has a time limit; what
# fails is written down and the rest goes on. Clocks are left alone.
set -u
out=$(realpath -m "$1")
lockstep=$(realpath "$2")
shift 2
parts=${*:-parity series attribution graphs processes rates robustness overhead}
export LOCKSTEP_INJECTOR=${LOCKSTEP_INJECTOR:-$(dirname "$lockstep")/liblockstep_injector.so}
here=$(dirname "$(realpath "$0")")
counters=$here/../../configs/counters
bin=${TMPDIR:-/tmp}/counter-parity
runs=${RUNS:-3}
mkdir -p "$out" "$bin"
ncu_metrics=smsp__inst_executed.sum,sm__cycles_active.sum,smsp__inst_issued.sum,smsp__thread_inst_executed.sum,smsp__warps_launched.sum

for program in vector_add bfs steady contexts graph_turns rounds; do
    [ -x "$bin/$program" ] || nvcc -O3 -arch=native -o "$bin/$program" "$here/programs/$program.cu" -lcuda &
done
[ -x "$bin/vector_add_shared" ] || nvcc -O3 -arch=native --cudart shared -o "$bin/vector_add_shared" "$here/programs/vector_add.cu" &
wait

milliseconds() { echo $(($(date +%s%N) / 1000000)); }

# One step: its name, its limit in seconds, its command. Output goes to a log.
step() {
    local name=$1 limit=$2 begun
    shift 2
    begun=$(milliseconds)
    timeout "$limit" "$@" >> "$out/log.txt" 2>&1
    local code=$?
    echo "$name,$code,$(($(milliseconds) - begun)) ms" >> "$out/steps.csv"
    return $code
}
sample() { step "$1" "${limit:-25}" "$lockstep" sample --quiet --out "$out/$1" "${@:2}"; }

# What each program of several at once does when it is alone.
alone() {
    [ -e "$out/alone-steady/summary.json" ] && return
    sample alone-vector_add --exact -- "$bin/vector_add" 200000000 20000000 2
    sample alone-bfs --exact -- "$bin/bfs" 1000000 8 2
    sample alone-steady --exact -- "$bin/steady" 20000 20 0
}

# The same, with everything that the reader learned, so that it can be divided again.
recorded() { sample "$1" --recording "$out/$1.recording" "${@:2}"; }

{
    date -u +%Y-%m-%dT%H:%M:%SZ
    nvidia-smi --query-gpu=name,uuid,driver_version,clocks.sm,clocks.mem,clocks.max.sm,temperature.gpu,power.draw --format=csv
    nvcc --version | tail -2
    ncu --version | tail -1
    grep RmProfiling /proc/driver/nvidia/params
    uname -r
} > "$out/machine.txt" 2>&1

# If the first sampled program does not end well, nothing after it is worth the time.
sample canary --interval "1 ms" -- "$bin/vector_add" 100000000 || { echo "the canary failed: see log.txt"; exit 1; }

for part in $parts; do
    case $part in
    parity)
        for run in $(seq "$runs"); do
            for program in vector_add bfs; do
                sample "exact-$program-$run" --exact -- "$bin/$program"
                timeout 60 ncu --clock-control none --cache-control none --metrics $ncu_metrics --csv \
                    "$bin/$program" > "$out/ncu-$program-$run.csv" 2>> "$out/log.txt"
            done
        done
        ;;
    series)
        for run in $(seq "$runs"); do
            for program in vector_add bfs; do
                for interval in "10 ms" "1 ms"; do
                    sample "series-$program-${interval// /}-$run" --interval "$interval" -- "$bin/$program"
                done
            done
        done
        ;;
    attribution)
        sample shared-sampled --interval "1 ms" -- "$bin/vector_add_shared"
        sample shared-exact --exact -- "$bin/vector_add_shared" 100000000
        limit=40 sample contexts-exact --exact -- "$bin/contexts" 4 40
        alone
        together="$bin/vector_add 200000000 20000000 40 & $bin/bfs 1000000 8 20 & $bin/steady 20000 12000 0.1 & wait"
        for run in $(seq "$runs"); do
            recorded contexts-sampled-$run --interval "1 ms" -- "$bin/contexts" 4 2000
            recorded threads-sampled-$run --interval "1 ms" -- "$bin/contexts" 4 2000 20000 one
            recorded processes-1ms-$run --interval "1 ms" -- bash -c "$together"
        done
        # Busy for longer than an image of counters lasts.
        sample busy --interval "1 ms" -- "$bin/steady" 20000 80000 0
        printf 'timeline = "kernels"\n' | cat - "$counters/fine.toml" | sed 's/"1 ms"/"100 us"/' > "$bin/clocks.toml"
        sample clocks --metadata "$bin/clocks.toml" -- "$bin/vector_add" 500000000
        ;;
    graphs)
        sample graph-turns --exact -- "$bin/graph_turns"
        for run in $(seq "${GRAPH_RUNS:-20}"); do
            limit=30 sample graphs-exact-$run --exact -- "$bin/contexts" 4 8
        done
        for run in $(seq "${ROUNDS_RUNS:-4}"); do
            limit=40 sample rounds-exact-$run --exact -- "$bin/rounds" 3 2
        done
        ;;
    processes)
        # Counted exactly, several at once: each must count what it counts alone.
        alone
        together="$bin/vector_add 200000000 20000000 2 & $bin/bfs 1000000 8 2 & $bin/steady 20000 20 0 & wait"
        for run in $(seq "${RUNS:-3}"); do
            limit=60 sample processes-exact-$run --exact -- bash -c "$together"
        done
        ;;
    rates)
        # Sampled, with what an exact run has told of the kernels.
        together="$bin/vector_add 200000000 20000000 2 & $bin/bfs 1000000 8 2 & $bin/steady 20000 20 0 & wait"
        [ -e "$out/processes-exact-1" ] || limit=60 sample processes-exact-1 --exact -- bash -c "$together"
        [ -e "$out/contexts-exact" ] || limit=40 sample contexts-exact --exact -- "$bin/contexts" 4 40
        together="$bin/vector_add 200000000 20000000 40 & $bin/bfs 1000000 8 20 & $bin/steady 20000 12000 0.1 & wait"
        for run in $(seq "$runs"); do
            recorded contexts-rates-$run --interval "1 ms" --rates "$out/contexts-exact" -- "$bin/contexts" 4 2000
            recorded processes-rates-$run --interval "1 ms" --rates "$out/processes-exact-1" -- bash -c "$together"
        done
        ;;
    robustness)
        limit=40 sample sixteen --interval "10 ms" -- bash -c "for i in \$(seq 16); do $bin/steady 2000 3000 0.1 & done; wait"
        # The program is killed: what it published is stored.
        sample killed-program --interval "1 ms" -- timeout -s KILL 2 "$bin/steady" 30000 1000000
        # The reader is killed: another one continues.
        "$lockstep" sample --quiet --out "$out/killed-reader" --interval "1 ms" -- "$bin/steady" 30000 30000 >> "$out/log.txt" 2>&1 &
        reader=$!
        sleep 1.5
        kill -9 $reader
        segments=/dev/shm/lockstep-$(id -u)/run-$reader
        sleep 3
        step second-reader 20 "$lockstep" sample --quiet --out "$out/second-reader" --interval "1 ms" --attach "$segments"
        ls -l "$segments" >> "$out/log.txt" 2>&1
        # The daemon owns the counters, every program publishes its time line.
        "$lockstep" sampled --seconds 7 >> "$out/log.txt" 2>&1 &
        sleep 1.5
        step all-reader 12 "$lockstep" sample --quiet --out "$out/all" --all --seconds 5 &
        CUDA_INJECTION64_PATH=$LOCKSTEP_INJECTOR step all-one 12 "$bin/vector_add" 200000000 &
        CUDA_INJECTION64_PATH=$LOCKSTEP_INJECTOR step all-two 12 "$bin/steady" 30000 8000 &
        wait
        # An ordinary user.
        step ordinary-user 20 setpriv --reuid 65534 --regid 65534 --clear-groups env HOME=/tmp \
            LOCKSTEP_INJECTOR="$LOCKSTEP_INJECTOR" "$lockstep" sample --quiet --out /tmp/ordinary -- "$bin/vector_add" 100000000
        cp /tmp/ordinary/summary.json "$out/ordinary-user.json" 2>> "$out/log.txt"
        ;;
    overhead)
        echo "program,interval,run,seconds,microseconds,wall" > "$out/overhead.csv"
        time_one() { # program interval run iterations launches
            local begun line
            begun=$(milliseconds)
            if [ "$2" = none ]; then
                line=$(timeout 20 "$bin/steady" "$4" "$5" 0.2)
            else
                line=$(timeout 20 "$lockstep" sample --quiet --out "$bin/overhead" --interval "$2" -- "$bin/steady" "$4" "$5" 0.2 2>> "$out/log.txt")
                cp "$bin/overhead/summary.json" "$out/overhead-$1-${2// /}.json"
                rm -rf "$bin/overhead"
            fi
            echo "$1,$2,$3,$(echo "$line" | awk '{print $4","$5}'),$(awk "BEGIN { print ($(milliseconds) - $begun) / 1000 }")" >> "$out/overhead.csv"
        }
        for run in $(seq "${OVERHEAD_RUNS:-20}"); do
            for interval in none "10 ms" "1 ms"; do
                time_one kernels-of-69us "$interval" "$run" 30000 8000
                [ "$run" -gt "${LAUNCH_BOUND_RUNS:-10}" ] || time_one launch-bound "$interval" "$run" 100 60000
            done
        done
        ;;
    esac
done
nvidia-smi --query-gpu=clocks.sm,clocks.mem,temperature.gpu,power.draw --format=csv >> "$out/machine.txt"
cat "$out/steps.csv"
