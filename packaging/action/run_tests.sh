#!/usr/bin/env bash
# Runs CUDA tests on a simulated GPU, from an archive of Lockstep.
#
#   run_tests.sh --archive FILE|URL [--sha256 HASH] [--gpu NAME] [--mode functional|timing] [--out DIR] -- COMMAND [ARGUMENT...]
#
# Ends with the exit code of the tests. If $GITHUB_STEP_SUMMARY names a file, the end of the report goes there.
set -euo pipefail

fail() {
    echo "run_tests.sh: $1" >&2
    exit 2
}

archive="" hash="" gpu=h200 mode=functional out=lockstep-results
while [ $# -gt 0 ]; do
    case $1 in
    --)
        shift
        break
        ;;
    --archive | --sha256 | --gpu | --mode | --out)
        [ $# -ge 2 ] || fail "$1 needs a value"
        case $1 in
        --archive) archive=$2 ;;
        --sha256) hash=$2 ;;
        --gpu) gpu=$2 ;;
        --mode) mode=$2 ;;
        --out) out=$2 ;;
        esac
        shift 2
        ;;
    *) fail "unknown option $1; tests follow after --" ;;
    esac
done
[ -n "$archive" ] || fail "--archive names no file; \`cargo xtask package\` makes one"
[ $# -gt 0 ] || fail "there are no tests after --"

place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT

case $archive in
http://*) fail "$archive: fetch it by https" ;;
https://*)
    [ -n "$hash" ] || fail "an archive from elsewhere needs its --sha256"
    curl --fail --silent --show-error --location --output "$place/archive.tar.gz" "$archive"
    archive=$place/archive.tar.gz
    ;;
*) [ -f "$archive" ] || fail "$archive is no file" ;;
esac
if [ -n "$hash" ]; then
    echo "$hash  $archive" | sha256sum --check --quiet || fail "$archive is not the archive that was meant"
fi
mkdir "$place/lockstep"
tar -xzf "$archive" -C "$place/lockstep" --strip-components=1
lockstep=$place/lockstep/bin/lockstep
[ -x "$lockstep" ] || fail "$archive holds no bin/lockstep"

# The report goes on as it comes and is kept as well; the exit code is that of the tests, since tee has none.
code=0
{
    "$lockstep" run --gpu "$gpu" --mode "$mode" --out "$out" --overwrite -- "$@" 2>&1 >&3 3>&- |
        tee "$place/report" >&2 3>&-
} 3>&1 || code=$?
if [ -n "${GITHUB_STEP_SUMMARY:-}" ]; then
    {
        echo "Tests on a simulated $gpu ended with exit code $code."
        echo '```'
        tail -n 40 "$place/report"
        echo '```'
    } >>"$GITHUB_STEP_SUMMARY"
fi
exit "$code"
