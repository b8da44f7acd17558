#!/usr/bin/env bash
# Makes this checkout usable on a fresh machine: system packages (Debian and Ubuntu), a virtual environment, the package.
#
#   bash tools/setup.sh            the package, with what its examples need
#   bash tools/setup.sh test       and what its tests need
#   bash tools/setup.sh dev        and the linters
#
# VENV=path puts the environment elsewhere than ./.venv; PYTHON=name takes another interpreter than python3.
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

install_package() {
    [ -x "$venv/bin/python" ] || "$python" -m venv "$venv"
    local tools=("scikit-build-core>=0.11" "nanobind>=2.9")
    command -v cmake >/dev/null || tools+=(cmake)
    command -v ninja >/dev/null || tools+=(ninja)
    "$venv/bin/python" -m pip install -q "${tools[@]}"
    # Without isolation a second run compiles only what has changed.
    PATH="$(cd "$venv/bin" && pwd):$PATH" "$venv/bin/python" -m pip install -q --no-build-isolation ".[examples${extra:+,$extra}]"
}

install_system_packages
install_package
