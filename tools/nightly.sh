#!/usr/bin/env bash
# What the gate has no time for: every test on every device, the random tests with fresh seeds and ten times as many draws,
# long lives, the source for Windows, instructions of calls (with valgrind), and random programs. Uses the environment that
# tools/setup.sh made; ends with a table and a list of what failed.
#
#   SEED       default: from the clock; printed first, and enough to repeat a run
#   DEVICES    default cpu,vulkan
#   PROGRAMS   random programs of each kind on each device, within HOURS; default 10000
#   HOURS      default 8
#   JOBS       processes at a time; default 2
#   PYTHON     default that of VENV, which is .venv by default
#   OUT        folder for logs; default build/nightly
#   STAGES     names of the stages to run, for a night in several parts; default all of
#              everything many windows instructions attack-backward attack-forward attack-lanes-forward attack-lanes-gradients
#   TESTS      what the stage `everything` runs; default tests
#   DIST       how pytest-xdist gives tests to processes; default loadfile; worksteal where there are dozens of processors
#   LIMIT      seconds for each stage, after which it is ended, and counts as failed; what had failed until then is shown
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
seed=${SEED:-$(date +%s)}
devices=${DEVICES:-cpu,vulkan}
out=${OUT:-build/nightly}
python=${PYTHON:-$PWD/${VENV:-.venv}/bin/python}
jobs=${JOBS:-2}
seconds=$("$python" -c "print(int(float('${HOURS:-8}') * 3600))")
bin=$("$python" -c 'import os, sys; print(os.path.dirname(sys.executable))')
# What is installed, not the folder slangpy/ here, which has no native code.
installed=$(cd / && "$python" -c 'import os, slangpy; print(os.path.dirname(os.path.dirname(slangpy.__file__)))')
mkdir -p "$out"
echo "nightly: SEED=$seed DEVICES=$devices"
failed=()

# stage NAME COMMAND...: runs it with its output in a log, of which the end is shown.
stage() {
    local name=$1 start=$SECONDS
    shift
    [[ " ${STAGES:-$name} " == *" $name "* ]] || return 0
    local code=0
    timeout --signal=INT --kill-after=30 "${LIMIT:-0}" "$@" >"$out/$name.log" 2>&1 || code=$?
    [ $code = 0 ] || failed+=("$name")
    printf '\n== %s (%d s)\n' "$name" $((SECONDS - start))
    if [ $code = 124 ] || [ $code = 137 ]; then
        echo "ended after LIMIT=$LIMIT s; until then"
        grep -cE '(PASSED|SKIPPED|FAILED|ERROR) +tests/' "$out/$name.log" | sed 's/$/ tests were done/'
        grep -hE '(FAILED|ERROR) +tests/' "$out/$name.log" | sort -u
    fi
    tail -n 25 "$out/$name.log"
}

export SLANGPY_TEST_SEED=$seed SLANGPY_TEST_ALL=1 SLANGPY_TEST_DEVICES=null,$devices
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-2} # torch: the processes share the processors
# -v: a night that is cut short has named what failed. A test that takes five minutes says where it stands.
pytest=("$bin/pytest" -v -n "$jobs" --dist "${DIST:-loadfile}" --max-worker-restart=0 -o faulthandler_timeout=300)
[ "${DIST:-loadfile}" != loadfile ] || pytest+=(--no-loadscope-reorder)
read -ra tests <<<"${TESTS:-tests}"
stage everything "${pytest[@]}" "${tests[@]}"
stage many env SLANGPY_TEST_MANY=10 "${pytest[@]}" tests/property tests/cache/test_cache_inputs.py \
    tests/call/module/test_living.py tests/device/test_lifetime.py tests/call/gradient/test_gradients_loops.py
if command -v x86_64-w64-mingw32-g++-posix >/dev/null; then
    stage windows env PYTHON="$python" bash tools/check_windows.sh
fi
if command -v valgrind >/dev/null; then
    stage instructions "$python" benchmarks/host_rows.py --against benchmarks/results/host_rows.json
fi
for kind in backward forward; do
    option=()
    [ $kind = backward ] || option=(--forward)
    stage "attack-$kind" env PYTHONPATH="$installed:." "$python" -m tests.attack "${option[@]}" --device "$devices" --jobs "$jobs" \
        --programs "${PROGRAMS:-10000}" --seed "$seed" --seconds $((seconds / 4)) --out "$out/attack-$kind.jsonl"
done
for kind in forward gradients; do
    stage "attack-lanes-$kind" env PYTHONPATH="$installed:." "$python" -m tests.attack --lanes $kind --device cpu --jobs "$jobs" --batch 8 \
        --programs "${PROGRAMS:-10000}" --seed "$seed" --seconds $((seconds / 8)) --out "$out/attack-lanes-$kind.jsonl"
done
if [ ${#failed[@]} -gt 0 ]; then
    echo "FAILED: ${failed[*]}"
    exit 1
fi
