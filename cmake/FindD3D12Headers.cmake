# Sets SPY_D3D12_INCLUDE_DIR: the headers of vkd3d, which is Direct3D 12 where there is no Windows. They come from
# libvkd3d-headers 2.0 or later, or from the folder that SLANGPY_D3D12_HEADERS names. On Windows the SDK has its own.
if(NOT WIN32)
  find_path(SPY_D3D12_INCLUDE_DIR vkd3d_d3d12.h
    HINTS "$ENV{SLANGPY_D3D12_HEADERS}"
    PATHS /usr/include/vkd3d /usr/local/include/vkd3d "${CMAKE_CURRENT_SOURCE_DIR}/build/d3d12/usr/include/vkd3d"
    NO_DEFAULT_PATH
    DOC "Folder that holds vkd3d_d3d12.h")
endif()
