#!/usr/bin/env bash
# Compiles the native source without Python (core, device, null, cpu, cuda, vulkan, d3d12, slang) for Windows, with
# mingw-w64's compiler and headers.
#
#   tools/check_windows.sh               syntax only, by two processes
#   tools/check_windows.sh --recent N    the same, for what the last N commits changed, and for what includes such a header;
#                                        for all where the clone's history is shorter
#   tools/check_windows.sh --run WINE [DEVICE...]
#                                        instead builds tests/device/contract.cpp and runs it under Wine (on Debian:
#                                        apt-get install wine64, /usr/lib/wine/wine64) with the devices null and cpu, or
#                                        those named; vulkan needs an X server (xvfb), which Wine's driver asks for
#
# CXX_WINDOWS=name takes another compiler; PYTHON=name the interpreter that has nanobind. Exit status 77: no compiler.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
cxx=${CXX_WINDOWS:-x86_64-w64-mingw32-g++-posix}
command -v "$cxx" >/dev/null || { echo "check_windows: no $cxx (apt-get install g++-mingw-w64-x86-64-posix)" >&2; exit 77; }
python=${PYTHON:-${VENV:-.venv}/bin/python}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

nanobind=$("$python" -c 'import nanobind; print(nanobind.include_dir())')
slang=${SLANG_ROOT:-$("$python" cmake/fetch_slang.py)}/include
mkdir "$work/include" # Vulkan's headers alone: those of this system's C library beside them are not Windows'
for folder in vulkan vk_video; do
    [ ! -d "/usr/include/$folder" ] || ln -s "/usr/include/$folder" "$work/include/"
done

cat >"$work/common.h" <<'HEADERS'
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>
HEADERS
includes=(-Isrc/native -isystem "$nanobind" -isystem "$slang" -isystem "$work/include" -isystem third_party/dlpack -isystem third_party/nvtx
    -isystem third_party/spirv-headers)
options=(-std=c++20 -Wall -Wextra -Werror "${includes[@]}" -DSPY_HAS_VULKAN=1 -DSPY_HAS_CUDA=1 -DSPY_HAS_D3D12=1)

if [ "${1:-}" = --run ]; then
    build() {
        "$cxx" -std=c++20 -O1 "${includes[@]}" -DSPY_HAS_VULKAN=1 -DSPY_HAS_D3D12=1 -c "$1" -o "$work/$(echo "$1" | tr / _).o"
    }
    export -f build
    export cxx work
    declare -p includes >"$work/includes"
    # without core/ref.cpp: the program defines the counter itself
    files=(src/native/{core,device,null,cpu,vulkan,d3d12}/*.cpp tests/device/contract.cpp)
    printf '%s\n' "${files[@]}" | grep -v core/ref.cpp | xargs -P 2 -I{} bash -c '. "$work/includes"; build {}'
    "$cxx" -static -o "$work/contract.exe" "$work"/*.o
    wine=$2 && shift 2
    [ $# -gt 0 ] || set -- null cpu
    WINEPREFIX=${WINEPREFIX:-$work/wine} WINEDEBUG=${WINEDEBUG:--all} "$wine" "$work/contract.exe" "$@"
    exit
fi

"$cxx" "${options[@]}" -x c++-header "$work/common.h" -o "$work/common.h.gch"

check() { # up to eight files of a folder as one, as the build does: their headers are read once
    printf '#include "%s"\n' "$@" | "$cxx" "${options[@]}" -include "$work/common.h" -iquote . -fsyntax-only -x c++ - ||
        { echo "check_windows: FAILED in $*" >&2; return 1; }
}
export -f check
declare -p options >"$work/options"
export cxx work
folders=(src/native/{core,device,null,cpu,cuda,vulkan,d3d12,slang,slang/{reflection,rewrite,rewrite/rules,syntax}})
for folder in "${folders[@]}"; do printf '%s\n' "$folder"/*.cpp; done >"$work/files"
if [ "${1:-}" = --recent ] && git rev-parse -q --verify "HEAD~$2" >/dev/null; then
    git diff --name-only --diff-filter=d "HEAD~$2" -- src/native >"$work/changed"
    sed -n 's|^src/native/\(.*\.h\)$|#include "\1"|p' "$work/changed" >"$work/headers"
    xargs -a "$work/files" grep -lFf "$work/headers" >>"$work/changed" || true
    grep -xFf "$work/changed" "$work/files" >"$work/recent" || true
    mv "$work/recent" "$work/files"
fi
for folder in "${folders[@]}"; do { grep "^$folder/[^/]*$" "$work/files" || true; } | xargs -r -n 8; done >"$work/groups"
xargs -r -P 2 -L 1 bash -c '. "$work/options"; check "$@"' check <"$work/groups"
echo "check_windows: $(wc -w <"$work/groups") files compile for Windows"
