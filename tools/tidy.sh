#!/usr/bin/env bash
# clang-tidy with the checks of .clang-tidy over C++ files, or over all of src/native; by two processes.
#
#   bash tools/tidy.sh [FILE...]
#
# BUILD names a folder where CMake has written compile_commands.json; default build/tidy, which is made when missing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
build=${BUILD:-build/tidy}
if [ ! -f "$build/compile_commands.json" ]; then
    cmake -S . -B "$build" -DSPY_DEVELOP=ON -DCMAKE_EXPORT_COMPILE_COMMANDS=ON -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON \
        -DPython_EXECUTABLE="$(command -v python)" >/dev/null
fi
if [ $# -gt 0 ]; then
    files=("$@")
else
    mapfile -t files < <(python -c 'import json, sys; print(*sorted({e["file"] for e in json.load(open(sys.argv[1])) if "/src/native/" in e["file"]}), sep="\n")' "$build/compile_commands.json")
fi
printf '%s\0' "${files[@]}" | xargs -0 -P 2 -n 4 clang-tidy --quiet -p "$build"
