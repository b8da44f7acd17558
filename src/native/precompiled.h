#pragma once
// Compiled once per module, in front of every file: what most files include and none of us changes. A file still
// names what it needs, so that it compiles without this, too.
#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
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
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h> // everywhere or nowhere, as python/bindings.h says
