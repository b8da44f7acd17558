#!/usr/bin/env bash
# clang-tidy with the checks of .clang-tidy over C++ files, or over all of src/native (some ten minutes); by two processes.
#
#   bash tools/tidy.sh [FILE...]
#   bash tools/tidy.sh --recent N     what the last N commits changed; nothing where the clone's history is shorter
#
# BUILD names a folder where CMake has written compile_commands.json; default build/tidy, which is made when missing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
build=${BUILD:-build/tidy}
if [ ! -f "$build/compile_commands.json" ]; then
    cmake -S . -B "$build" -DSPY_DEVELOP=ON -DCMAKE_EXPORT_COMPILE_COMMANDS=ON -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON \
        -DPython_EXECUTABLE="$(command -v python)" >/dev/null
fi
compiled() { # the files of src/native that are compiled here, of those named on the input when there are any
    python -c 'import json, os, sys
known = {os.path.relpath(entry["file"]) for entry in json.load(open(sys.argv[1]))}
named = set(sys.stdin.read().split()) if len(sys.argv) > 2 else known
print(*sorted(name for name in known & named if name.startswith("src/native/")), sep="\n")' "$build/compile_commands.json" "$@"
}
if [ "${1:-}" = --recent ]; then
    if ! git rev-parse -q --verify "HEAD~$2" >/dev/null; then
        echo "clang-tidy: the history has fewer than $2 commits, so nothing was checked"
        exit 0
    fi
    mapfile -t files < <(git diff --name-only --diff-filter=d "HEAD~$2" | compiled named)
elif [ $# -gt 0 ]; then
    files=("$@")
else
    mapfile -t files < <(compiled)
fi
[ -n "${files[0]:-}" ] || exit 0
echo "clang-tidy: ${#files[@]} files"
printf '%s\0' "${files[@]}" | xargs -0 -P 2 -n 4 clang-tidy --quiet -p "$build"
