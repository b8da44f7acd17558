# Sets SPY_VULKAN_INCLUDE_DIR. Only headers are needed: the loader is opened at run time.
find_path(SPY_VULKAN_INCLUDE_DIR vulkan/vulkan_core.h
  HINTS "$ENV{VULKAN_SDK}/include" "$ENV{VULKAN_SDK}/Include"
  DOC "Folder that holds vulkan/vulkan_core.h")

# Else one pinned release of the Khronos headers, as the build fetches other things it needs.
set(SPY_VULKAN_HEADERS_URL "" CACHE STRING "Archive of Vulkan-Headers to use where none are installed")
if(NOT SPY_VULKAN_INCLUDE_DIR AND SPY_VULKAN_HEADERS_URL)
  include(FetchContent)
  FetchContent_Declare(vulkan_headers URL "${SPY_VULKAN_HEADERS_URL}")
  FetchContent_GetProperties(vulkan_headers)
  if(NOT vulkan_headers_POPULATED)
    FetchContent_Populate(vulkan_headers)
  endif()
  set(SPY_VULKAN_INCLUDE_DIR "${vulkan_headers_SOURCE_DIR}/include" CACHE PATH "" FORCE)
endif()
