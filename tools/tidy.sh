#!/usr/bin/env bash
# clang-tidy with the checks of .clang-tidy over C++ files, or over all of src/native (some ten minutes); by two processes.
#
#   bash tools/tidy.sh [FILE...]
#   bash tools/tidy.sh --recent N     what the last N commits changed; nothing where the clone's history is shorter
#
# BUILD names a folder where CMake has written compile_commands.json; default build/tidy, which is made.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
build=${BUILD:-build/tidy}
if [ -z "${BUILD:-}" ]; then # again, as there may be new files
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
# Up to eight files of a folder are read as one, as the build does: most of the time goes to their headers.
python - "$build" "${files[@]}" <<'GROUPS'
import json, os, re, shutil, sys

build, files = sys.argv[1], sys.argv[2:]
folder = os.path.join(build, "groups")
shutil.rmtree(folder, ignore_errors=True)
os.makedirs(folder)
entries = {os.path.relpath(entry["file"]): entry for entry in json.load(open(os.path.join(build, "compile_commands.json")))}
groups = {}
if unknown := [name for name in files if name not in entries]:
    sys.exit(f"clang-tidy: not compiled here: {' '.join(unknown)}")
for name in sorted(files):
    flags = re.sub(r" -o \S+ -c \S+$", "", entries[name]["command"])
    groups.setdefault((os.path.dirname(name), flags), []).append(name)
commands = []
for (_, flags), names in groups.items():
    for first in range(0, len(names), 8):
        path = os.path.abspath(os.path.join(folder, f"{len(commands)}.cpp"))
        with open(path, "w") as file:
            file.writelines(f'#include "{os.path.abspath(name)}"\n' for name in names[first : first + 8])
        commands.append({"directory": os.path.abspath(build), "command": f"{flags} -c {path}", "file": path})
json.dump(commands, open(os.path.join(folder, "compile_commands.json"), "w"))
GROUPS
printf '%s\0' "$build"/groups/*.cpp | xargs -0 -P 2 -n 1 clang-tidy --quiet -p "$build/groups"
