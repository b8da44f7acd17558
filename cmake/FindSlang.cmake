# Sets SPY_SLANG_INCLUDE_DIR, SPY_SLANG_LIBRARY (libslang-compiler) and SPY_SLANG_LIBRARY_DIR.
# Order: SLANG_ROOT; a CMake package `slang` or the Vulkan SDK; one pinned wheel fetched by pip.
set(SLANG_ROOT "$ENV{SLANG_ROOT}" CACHE PATH "Folder with include/slang.h and lib/libslang-compiler.so")
if(DEFINED ENV{SLANG_ROOT} AND NOT SLANG_ROOT) # the build folder is older than the variable
  set(SLANG_ROOT "$ENV{SLANG_ROOT}" CACHE PATH "" FORCE)
endif()

function(spy_use_slang root)
  find_path(include_dir slang.h PATHS "${root}/include" "${root}/include/slang" NO_DEFAULT_PATH NO_CACHE)
  find_library(library NAMES slang-compiler slang PATHS "${root}/lib" "${root}/bin" NO_DEFAULT_PATH NO_CACHE)
  if(include_dir AND library)
    get_filename_component(folder "${library}" DIRECTORY)
    set(SPY_SLANG_INCLUDE_DIR "${include_dir}" PARENT_SCOPE)
    set(SPY_SLANG_LIBRARY "${library}" PARENT_SCOPE)
    set(SPY_SLANG_LIBRARY_DIR "${folder}" PARENT_SCOPE)
  endif()
endfunction()

set(SPY_SLANG_LIBRARY "")
if(SLANG_ROOT)
  spy_use_slang("${SLANG_ROOT}")
  if(NOT SPY_SLANG_LIBRARY)
    message(FATAL_ERROR "SLANG_ROOT=${SLANG_ROOT} has no include/slang.h with lib/libslang-compiler")
  endif()
endif()

if(NOT SPY_SLANG_LIBRARY)
  find_package(slang CONFIG QUIET)
  if(TARGET slang::slang)
    get_target_property(SPY_SLANG_LIBRARY slang::slang LOCATION)
    get_target_property(SPY_SLANG_INCLUDE_DIR slang::slang INTERFACE_INCLUDE_DIRECTORIES)
    get_filename_component(SPY_SLANG_LIBRARY_DIR "${SPY_SLANG_LIBRARY}" DIRECTORY)
  elseif(DEFINED ENV{VULKAN_SDK})
    spy_use_slang("$ENV{VULKAN_SDK}")
  endif()
endif()

if(NOT SPY_SLANG_LIBRARY)
  if(NOT CMAKE_SYSTEM_NAME STREQUAL "Linux" OR NOT CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    message(FATAL_ERROR "No Slang found. Set SLANG_ROOT to an unpacked release of Slang for this platform.")
  endif()
  execute_process(
    COMMAND "${Python_EXECUTABLE}" "${CMAKE_CURRENT_LIST_DIR}/fetch_slang.py"
    OUTPUT_STRIP_TRAILING_WHITESPACE OUTPUT_VARIABLE fetched RESULT_VARIABLE failed)
  if(failed)
    message(FATAL_ERROR "Fetching Slang failed. Set SLANG_ROOT to an unpacked release of Slang instead.")
  endif()
  spy_use_slang("${fetched}")
endif()

if(NOT SPY_SLANG_LIBRARY)
  message(FATAL_ERROR "No Slang found. Set SLANG_ROOT to an unpacked release of Slang.")
endif()
message(STATUS "Slang: ${SPY_SLANG_LIBRARY}")
