#!/usr/bin/env bash
# Builds the package on a GPU machine without network, runs the GPU tests and benchmarks, and prints a short table last.
#   SLANG_ROOT      folder with include/slang.h and lib/libslang-compiler.so (copied there beforehand)
#   VULKAN_SDK      folder with include/vulkan, where the machine has no Vulkan headers
#   SPY_DEVICES     devices to test (default cuda,vulkan)
#   SPY_TESTS       what pytest runs, each file in a process of its own (default: see `tests=` below)
#   SPY_SANITIZER   test files to run under compute-sanitizer
#   SPY_ATTACK      how many random differentiable programs to compare with torch on CUDA, within SPY_ATTACK_SECONDS
#   SPY_FORWARD     how many random forward programs to compare with NumPy on each device, within SPY_FORWARD_SECONDS
#   SPY_SCRIPT      a program with its arguments, such as "benchmarks/networks.py --device cuda", to run after the tests
#   SPY_NO_BENCHMARKS  set: tests alone
#   SPY_RUN         folder where tests run (default /tmp/run)
#   OUT             folder for logs (default build/gpu)
set -u
cd "$(dirname "$0")/.."
out="${OUT:-build/gpu}"
mkdir -p "$out"
export SLANGPY_CACHE_DIR="${SLANGPY_CACHE_DIR:-/tmp/slangpy-cache}"
devices="${SPY_DEVICES:-cuda,vulkan}"
export SLANGPY_TEST_ALL=1

start=$SECONDS
site="$(mktemp -d)"
CMAKE_BUILD_PARALLEL_LEVEL="$(nproc)" python3 -m pip install -q --no-build-isolation --no-deps --no-index --target "$site" \
  --config-settings=cmake.define.SPY_PACKAGE_FILES="${SPY_PACKAGE_FILES:-ON}" . \
  >"$out/build.log" 2>&1 || { tail -40 "$out/build.log"; exit 1; }
echo "build: $((SECONDS - start)) s"
export PYTHONPATH="$site"
run="${SPY_RUN:-/tmp/run}"
mkdir -p "$run" && cp -r tests tools pyproject.toml benchmarks examples third_party docs README.md "$run/" && cd "$run" || exit 1

tests="${SPY_TESTS:-$(ls -d tests/{device,call,pytorch,compat} tests/tools/test_{compare,measuring}.py 2>/dev/null)}"
start=$SECONDS
if [ "$tests" != none ]; then
  timeout "${SPY_TEST_TIMEOUT:-300}" python3 tools/run_tests.py --devices "$devices" --jobs "${SPY_WORKERS:-12}" \
    --timeout "${SPY_FILE_TIMEOUT:-120}" --out "$run/logs" $tests --alone test_bad_input.py >"$out/tests.log" 2>&1
  echo "tests: rc $? in $((SECONDS - start)) s"
  head -c 6000 "$out/tests.log"
  cp logs/counts.json "$out/" 2>/dev/null
  tar -czf "$out/logs.tgz" -C "$run" logs
fi
if [ -n "${SPY_ATTACK:-}" ]; then
  timeout "$((${SPY_ATTACK_SECONDS:-200} + 60))" python3 -m tests.attack --device cuda --programs "$SPY_ATTACK" --jobs "${SPY_WORKERS:-12}" \
    --seconds "${SPY_ATTACK_SECONDS:-200}" --out "$out/attack.jsonl" >"$out/attack.log" 2>&1
  echo "attack: rc $?"
  tail -14 "$out/attack.log"
fi
if [ -n "${SPY_FORWARD:-}" ]; then # so many forward programs on each device
  timeout "$((${SPY_FORWARD_SECONDS:-200} + 60))" python3 -m tests.attack --forward --device "$devices" --programs "$SPY_FORWARD" \
    --jobs "${SPY_WORKERS:-12}" --seconds "${SPY_FORWARD_SECONDS:-200}" --out "$out/forward.jsonl" >"$out/forward.log" 2>&1
  echo "forward attack: rc $?"
  tail -14 "$out/forward.log"
fi
if [ -n "${SPY_SANITIZER:-}" ]; then # memory and race checks over a subset
  for tool in memcheck racecheck; do
    SLANGPY_TEST_DEVICES=cuda timeout 150 compute-sanitizer --tool "$tool" --report-api-errors no --show-backtrace no --error-exitcode 9 \
      python3 -m pytest -q -p no:cacheprovider $SPY_SANITIZER >"$out/$tool.log" 2>&1
    echo "$tool: rc $?, $(grep -E 'ERROR SUMMARY|RACECHECK SUMMARY' "$out/$tool.log" | tail -1), $(grep -E 'passed|failed' "$out/$tool.log" | tail -1)"
  done
fi
if [ -n "${SPY_SCRIPT:-}" ]; then
  timeout 150 python3 $SPY_SCRIPT >"$out/script.log" 2>&1
  echo "script: rc $?"
  tail -20 "$out/script.log"
fi
[ -z "${SPY_NO_BENCHMARKS:-}" ] || exit 0
if [ -f benchmarks/torch_overhead.py ]; then
  timeout 120 python3 benchmarks/torch_overhead.py --device cuda >"$out/bench_torch.log" 2>&1
  tail -14 "$out/bench_torch.log"
fi
if [ -f benchmarks/slangtorch_api.py ]; then
  timeout 120 python3 benchmarks/slangtorch_api.py --device cuda >"$out/bench_slangtorch.log" 2>&1
  tail -14 "$out/bench_slangtorch.log"
fi
if [ -d examples/05_torch_splatting ]; then
  (cd examples/05_torch_splatting && timeout 120 python3 torch_splatting.py --device cuda --size 256 --blobs 64 --steps 100 \
    --compare 100 --out /tmp) >"$out/bench_splatting.log" 2>&1
  tail -4 "$out/bench_splatting.log"
fi
for device in ${devices//,/ }; do
  timeout 60 python3 benchmarks/first_call.py --device "$device" --runs 3 2>&1 | tail -3
  timeout 120 python3 benchmarks/gpu_calls.py "$device" >"$out/bench_$device.log" 2>&1
  tail -14 "$out/bench_$device.log"
  timeout 120 python3 benchmarks/gpu_gradients.py "$device" >"$out/bench_gradients_$device.log" 2>&1
  tail -8 "$out/bench_gradients_$device.log"
done
