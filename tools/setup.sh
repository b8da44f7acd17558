#!/usr/bin/env bash
# Makes this checkout usable on a fresh machine: system packages (Debian and Ubuntu), a virtual environment, the package.
#
#   bash tools/setup.sh            the package, with what its examples need
#   bash tools/setup.sh test       and what its tests need
#   bash tools/setup.sh dev        and the linters
#
# VENV=path puts the environment elsewhere than ./.venv; PYTHON=name takes another interpreter than python3.
# BESIDE="package ..." are installed, too, with what the package needs, while the native code is compiled.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
extra=${1:-}
venv=${VENV:-.venv}
python=${PYTHON:-python3}

missing_packages() {
    command -v c++ >/dev/null || echo g++
    "$python" -c 'import ensurepip, venv' 2>/dev/null || echo python3-venv
    "$python" -c 'import os, sys, sysconfig; sys.exit(not os.path.exists(sysconfig.get_path("include") + "/Python.h"))' ||
        echo python3-dev
    # The Vulkan device is built where its headers are, and runs (in tests: on Mesa's software driver) where a driver is.
    [ -e /usr/include/vulkan/vulkan_core.h ] || echo libvulkan-dev
    ls /usr/share/vulkan/icd.d/*.json /etc/vulkan/icd.d/*.json >/dev/null 2>&1 || echo mesa-vulkan-drivers
    if [ -n "$extra" ]; then
        ls /usr/share/vulkan/explicit_layer.d/*.json >/dev/null 2>&1 || echo vulkan-validationlayers
        command -v spirv-val >/dev/null || echo spirv-tools
        # tests/windows: a display that nobody sees, and its user
        command -v Xvfb >/dev/null || echo xvfb
        command -v xdotool >/dev/null || echo xdotool
    fi
    if [ "$extra" = dev ]; then # tools/check_windows.sh
        command -v x86_64-w64-mingw32-g++-posix >/dev/null || echo g++-mingw-w64-x86-64-posix
    fi
}

install_system_packages() {
    local packages sudo=
    mapfile -t packages < <(missing_packages)
    [ ${#packages[@]} -gt 0 ] || return 0
    if ! command -v apt-get >/dev/null; then
        echo "setup: not found: ${packages[*]} (names on Debian); install them with this system's package manager" >&2
        return 0
    fi
    if [ "$(id -u)" != 0 ]; then
        if ! command -v sudo >/dev/null; then
            echo "setup: as root, run: apt-get install ${packages[*]}" >&2
            return 0
        fi
        sudo=sudo
    fi
    $sudo apt-get update -qq || true # an old package list may still serve
    if ! $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${packages[@]}" >/dev/null
    then
        echo "setup: apt-get could not install ${packages[*]}; going on without" >&2
    fi
}

# The Direct3D 12 device: built with vkd3d's headers, run with its libraries, DXC, and a Vulkan driver with descriptor
# indexing, which Debian 12's own Mesa is not. What a folder beside this checkout offers is unpacked into build/, so that
# nothing of the system changes; else whatever is installed serves. build/d3d12/env.sh says how to run with it.
d3d12_source=../shared/d3d12/install.sh
d3d12=$PWD/build/d3d12

unpack_d3d12() { # what the native code is compiled with
    [ -f "$d3d12_source" ] && [ ! -f "$d3d12/env.sh" ] || return 0
    mkdir -p "$d3d12/apt/lists/partial" "$d3d12/apt/cache/archives/partial"
    if ! sh "$d3d12_source" "$d3d12" >/dev/null; then
        echo "setup: Direct3D 12 could not be unpacked; going on without" >&2
        rm -rf "$d3d12/usr"
    fi
}

install_driver() { # what it runs with
    [ -d "$d3d12/usr" ] && [ ! -f "$d3d12/env.sh" ] || return 0
    local mesa package release site
    mesa=$d3d12/usr/lib/x86_64-linux-gnu/libvulkan_lvp.so
    # Backports lie where this machine's own packages come from.
    release=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
    site=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' "Release: $release" 'Component: main' | sort -u | head -n 1) || site=
    echo "deb $site $release-backports main" >"$d3d12/apt/sources.list"
    local apt=(-o "Dir::Etc::sourcelist=$d3d12/apt/sources.list" -o Dir::Etc::sourceparts=-
        -o "Dir::State::lists=$d3d12/apt/lists" -o "Dir::Cache=$d3d12/apt/cache")
    if apt-get "${apt[@]}" update -qq && (cd "$d3d12" && apt-get "${apt[@]}" download -qq mesa-vulkan-drivers); then
        for package in "$d3d12"/mesa-vulkan-drivers_*.deb; do dpkg-deb -x "$package" "$d3d12"; done
        sed "s|\"library_path\": \".*\"|\"library_path\": \"$mesa\"|" "$d3d12/usr/share/vulkan/icd.d/lvp_icd.json" \
            >"$d3d12/lvp_icd.json"
    fi
    {
        echo "export SLANGPY_D3D12_PATH=$d3d12/usr/lib/x86_64-linux-gnu"
        [ ! -f "$d3d12/lvp_icd.json" ] ||
            echo "export VK_DRIVER_FILES=$d3d12/lvp_icd.json VK_ICD_FILENAMES=$d3d12/lvp_icd.json"
    } >"$d3d12/env.sh"
}

install_environment() {
    [ -x "$venv/bin/python" ] || "$python" -m venv "$venv"
    local tools=("scikit-build-core>=0.11" "nanobind>=2.9")
    command -v cmake >/dev/null || tools+=(cmake)
    command -v ninja >/dev/null || tools+=(ninja)
    "$venv/bin/python" -m pip install -q "${tools[@]}"
}

# requirements EXTRA...: what the package and these extras need, one a line, as pyproject.toml says.
requirements() {
    "$venv/bin/python" - "$@" <<'CODE'
import re, sys
try:
    import tomllib
except ImportError:  # Python 3.10
    from pip._vendor import tomli as tomllib
with open("pyproject.toml", "rb") as file:
    project = tomllib.load(file)["project"]
seen, todo = set(), list(project["dependencies"])
for extra in sys.argv[1:]:
    todo += project["optional-dependencies"][extra]
while todo:
    name = todo.pop()
    if name in seen:
        continue
    seen.add(name)
    own = re.fullmatch(r"slangpy\[(.+)\]", name)  # an extra that consists of others
    if own is None:
        print(name)
    for extra in own[1].split(",") if own else ():
        todo += project["optional-dependencies"][extra.strip()]
CODE
}

install_package() {
    local pip=("$venv/bin/python" -m pip) wheels=build/setup beside= packages found
    read -ra packages <<<"${BESIDE:-}"
    found=$(requirements examples ${extra:+"$extra"})
    mapfile -t -O "${#packages[@]}" packages <<<"$found"
    "${pip[@]}" install -q "${packages[@]}" & # one of two processors would do nothing while the wheel is packed
    beside=$!
    rm -rf "$wheels"
    # Without isolation a second run compiles only what has changed.
    PATH="$(cd "$venv/bin" && pwd):$PATH" "${pip[@]}" wheel -q --no-build-isolation --no-deps --wheel-dir "$wheels" .
    wait "$beside"
    local wheel=("$wheels"/slangpy-*.whl)
    "${pip[@]}" install -q --no-deps --force-reinstall "${wheel[0]}" # pip leaves one of the same version as it is
    "${pip[@]}" install -q "${wheel[0]}[examples${extra:+,$extra}]"  # says what is missing
}

install_system_packages
if [ "$extra" = dev ]; then
    unpack_d3d12 &
    unpacked=$!
fi
install_environment
if [ "$extra" = dev ]; then
    wait "$unpacked"
    install_driver &
    driver=$!
fi
install_package
[ "$extra" != dev ] || wait "$driver"
