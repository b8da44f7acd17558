#pragma once
// The CUDA driver and NVRTC entry points this backend uses, opened at run time: building needs no CUDA toolkit.
// Types and constants follow NVIDIA's documented binary interface.
#include "core/error.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace spy {

using CUresult = int;
using CUdevice = int;
using CUdeviceptr = unsigned long long;
using CUcontext = struct CUctx_st*;
using CUstream = struct CUstream_st*;
using CUevent = struct CUevent_st*;
using CUmodule = struct CUmod_st*;
using CUfunction = struct CUfunc_st*;
using CUarray = struct CUarray_st*;
using CUmipmappedArray = struct CUmipmappedArray_st*;
using CUmemoryPool = struct CUmemPoolHandle_st*;
using CUtexObject = unsigned long long;
using CUsurfObject = unsigned long long;
using CUexternalMemory = struct CUextMemory_st*;
using CUexternalSemaphore = struct CUextSemaphore_st*;
struct CUuuid {
    unsigned char bytes[16];
};

enum : CUresult {
    CUDA_SUCCESS = 0,
    CUDA_ERROR_INVALID_VALUE = 1,
    CUDA_ERROR_OUT_OF_MEMORY = 2,
    CUDA_ERROR_NOT_FOUND = 500,
    CUDA_ERROR_NOT_READY = 600,
    CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES = 701,
};
enum : unsigned {
    CU_EVENT_DEFAULT = 0,
    CU_EVENT_DISABLE_TIMING = 2,
    CU_STREAM_WAIT_VALUE_GEQ = 0,
    CU_MEMHOSTALLOC_PORTABLE = 1,
    CU_MEMHOSTALLOC_DEVICEMAP = 2,
    CUDA_ARRAY3D_LAYERED = 1,
    CUDA_ARRAY3D_SURFACE_LDST = 2,
    CUDA_ARRAY3D_CUBEMAP = 4,
    CUDA_ARRAY3D_TEXTURE_GATHER = 8,
    CU_TRSF_READ_AS_INTEGER = 1,
    CU_TRSF_NORMALIZED_COORDINATES = 2,
    CU_TRSF_SRGB = 0x10,
    CU_TRSF_SEAMLESS_CUBEMAP = 0x40,
};
enum CUdevice_attribute : int {
    CU_DEVICE_MAX_THREADS_PER_BLOCK = 1,
    CU_DEVICE_MAX_BLOCK_DIM_X = 2,
    CU_DEVICE_MAX_BLOCK_DIM_Y = 3,
    CU_DEVICE_MAX_BLOCK_DIM_Z = 4,
    CU_DEVICE_MAX_GRID_DIM_X = 5,
    CU_DEVICE_MAX_GRID_DIM_Y = 6,
    CU_DEVICE_MAX_GRID_DIM_Z = 7,
    CU_DEVICE_WARP_SIZE = 10,
    CU_DEVICE_MAX_TEXTURE1D = 21,
    CU_DEVICE_MAX_TEXTURE2D = 22,
    CU_DEVICE_MAX_TEXTURE3D = 24,
    CU_DEVICE_MAX_TEXTURE2D_LAYERS = 29,
    CU_DEVICE_PCI_DEVICE_ID = 34,
    CU_DEVICE_MAX_TEXTURECUBEMAP = 52,
    CU_DEVICE_COMPUTE_MAJOR = 75,
    CU_DEVICE_COMPUTE_MINOR = 76,
    CU_DEVICE_MEMORY_POOLS_SUPPORTED = 115,
    CU_DEVICE_64_BIT_STREAM_MEM_OPS = 122,
};
enum CUarray_format : unsigned {
    CU_AD_FORMAT_UNSIGNED_INT8 = 0x01,
    CU_AD_FORMAT_UNSIGNED_INT16 = 0x02,
    CU_AD_FORMAT_UNSIGNED_INT32 = 0x03,
    CU_AD_FORMAT_SIGNED_INT8 = 0x08,
    CU_AD_FORMAT_SIGNED_INT16 = 0x09,
    CU_AD_FORMAT_SIGNED_INT32 = 0x0a,
    CU_AD_FORMAT_HALF = 0x10,
    CU_AD_FORMAT_FLOAT = 0x20,
};
enum CUmemorytype : unsigned {
    CU_MEMORYTYPE_HOST = 1,
    CU_MEMORYTYPE_DEVICE = 2,
    CU_MEMORYTYPE_ARRAY = 3,
    CU_MEMORYTYPE_UNIFIED = 4
};
enum CUresourcetype : unsigned {
    CU_RESOURCE_TYPE_ARRAY = 0,
    CU_RESOURCE_TYPE_MIPMAPPED_ARRAY = 1,
    CU_RESOURCE_TYPE_LINEAR = 2
};
enum CUaddress_mode : unsigned {
    CU_TR_ADDRESS_MODE_WRAP,
    CU_TR_ADDRESS_MODE_CLAMP,
    CU_TR_ADDRESS_MODE_MIRROR,
    CU_TR_ADDRESS_MODE_BORDER
};
enum CUfilter_mode : unsigned { CU_TR_FILTER_MODE_POINT, CU_TR_FILTER_MODE_LINEAR };
enum CUresourceViewFormat : unsigned { CU_RES_VIEW_FORMAT_UINT_1X8 = 1 }; // the others are computed from it
enum CUmemPool_attribute : int {
    CU_MEMPOOL_ATTR_RELEASE_THRESHOLD = 4,
    CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT = 5,
    CU_MEMPOOL_ATTR_USED_MEM_CURRENT = 7,
};
enum CUstreamCaptureStatus : int { CU_STREAM_CAPTURE_STATUS_NONE = 0 };
enum CUstreamCaptureMode : int { CU_STREAM_CAPTURE_MODE_RELAXED = 2 };
enum CUfunction_attribute : int {
    CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 0,
    CU_FUNC_ATTRIBUTE_NUM_REGS = 4,
    CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8
};
enum CUjit_option : int { CU_JIT_ERROR_LOG_BUFFER = 5, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES = 6 };

inline void* const CU_LAUNCH_PARAM_END = nullptr;
inline void* const CU_LAUNCH_PARAM_BUFFER_POINTER = reinterpret_cast<void*>(1);
inline void* const CU_LAUNCH_PARAM_BUFFER_SIZE = reinterpret_cast<void*>(2);

struct CUDA_ARRAY3D_DESCRIPTOR {
    size_t Width, Height, Depth;
    CUarray_format Format;
    unsigned NumChannels, Flags;
};
struct CUDA_MEMCPY3D {
    size_t srcXInBytes, srcY, srcZ, srcLOD;
    CUmemorytype srcMemoryType;
    const void* srcHost;
    CUdeviceptr srcDevice;
    CUarray srcArray;
    void* reserved0;
    size_t srcPitch, srcHeight;
    size_t dstXInBytes, dstY, dstZ, dstLOD;
    CUmemorytype dstMemoryType;
    void* dstHost;
    CUdeviceptr dstDevice;
    CUarray dstArray;
    void* reserved1;
    size_t dstPitch, dstHeight;
    size_t WidthInBytes, Height, Depth;
};
struct CUDA_RESOURCE_DESC {
    CUresourcetype resType;
    union {
        struct {
            CUarray hArray;
        } array;
        struct {
            CUmipmappedArray hMipmappedArray;
        } mipmap;
        struct {
            CUdeviceptr devPtr;
            CUarray_format format;
            unsigned numChannels;
            size_t sizeInBytes;
        } linear;
        struct {
            int reserved[32];
        } reserved;
    } res;
    unsigned flags;
};
struct CUDA_TEXTURE_DESC {
    CUaddress_mode addressMode[3];
    CUfilter_mode filterMode;
    unsigned flags, maxAnisotropy;
    CUfilter_mode mipmapFilterMode;
    float mipmapLevelBias, minMipmapLevelClamp, maxMipmapLevelClamp, borderColor[4];
    int reserved[12];
};
struct CUDA_RESOURCE_VIEW_DESC {
    CUresourceViewFormat format;
    size_t width, height, depth;
    unsigned firstMipmapLevel, lastMipmapLevel, firstLayer, lastLayer, reserved[16];
};
struct CUmemLocation {
    int type, id;
};
struct CUmemPoolProps {
    int allocType, handleTypes;
    CUmemLocation location;
    void* win32SecurityAttributes;
    size_t maxSize;
    unsigned short usage;
    unsigned char reserved[54];
};
struct CUDA_EXTERNAL_MEMORY_HANDLE_DESC {
    int type;
    union {
        int fd;
        struct {
            void* handle;
            const void* name;
        } win32;
    } handle;
    unsigned long long size;
    unsigned flags, reserved[16];
};
struct CUDA_EXTERNAL_MEMORY_BUFFER_DESC {
    unsigned long long offset, size;
    unsigned flags, reserved[16];
};
struct CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC {
    int type;
    union {
        int fd;
        struct {
            void* handle;
            const void* name;
        } win32;
    } handle;
    unsigned flags, reserved[16];
};
/// The same bytes serve for signalling and waiting: a 64-bit fence value first.
struct CUDA_EXTERNAL_SEMAPHORE_PARAMS {
    unsigned long long fence_value;
    unsigned rest[16];
    unsigned flags, reserved[16];
};
static_assert(sizeof(CUDA_MEMCPY3D) == 200 && sizeof(CUDA_RESOURCE_DESC) == 144 && sizeof(CUDA_TEXTURE_DESC) == 104);
static_assert(sizeof(CUDA_RESOURCE_VIEW_DESC) == 112 && sizeof(CUmemPoolProps) == 88 &&
              sizeof(CUDA_ARRAY3D_DESCRIPTOR) == 40);
static_assert(sizeof(CUDA_EXTERNAL_MEMORY_HANDLE_DESC) == 104 && sizeof(CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC) == 96);
static_assert(sizeof(CUDA_EXTERNAL_SEMAPHORE_PARAMS) == 144);

// name, exported symbol, required, arguments
#define SPY_CUDA_FUNCTIONS(X)                                                                                          \
    X(cuInit, "cuInit", true, (unsigned))                                                                              \
    X(cuDriverGetVersion, "cuDriverGetVersion", true, (int*))                                                          \
    X(cuGetErrorName, "cuGetErrorName", true, (CUresult, const char**))                                                \
    X(cuGetErrorString, "cuGetErrorString", true, (CUresult, const char**))                                            \
    X(cuDeviceGetCount, "cuDeviceGetCount", true, (int*))                                                              \
    X(cuDeviceGet, "cuDeviceGet", true, (CUdevice*, int))                                                              \
    X(cuDeviceGetName, "cuDeviceGetName", true, (char*, int, CUdevice))                                                \
    X(cuDeviceGetUuid, "cuDeviceGetUuid", true, (CUuuid*, CUdevice))                                                   \
    X(cuDeviceGetLuid, "cuDeviceGetLuid", false, (char*, unsigned*, CUdevice))                                         \
    X(cuDeviceTotalMem, "cuDeviceTotalMem_v2", true, (size_t*, CUdevice))                                              \
    X(cuDeviceGetAttribute, "cuDeviceGetAttribute", true, (int*, CUdevice_attribute, CUdevice))                        \
    X(cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", true, (CUcontext*, CUdevice))                              \
    X(cuDevicePrimaryCtxRelease, "cuDevicePrimaryCtxRelease_v2", true, (CUdevice))                                     \
    X(cuCtxGetCurrent, "cuCtxGetCurrent", true, (CUcontext*))                                                          \
    X(cuCtxSetCurrent, "cuCtxSetCurrent", true, (CUcontext))                                                           \
    X(cuCtxPushCurrent, "cuCtxPushCurrent_v2", true, (CUcontext))                                                      \
    X(cuCtxPopCurrent, "cuCtxPopCurrent_v2", true, (CUcontext*))                                                       \
    X(cuCtxGetDevice, "cuCtxGetDevice", true, (CUdevice*))                                                             \
    X(cuCtxSynchronize, "cuCtxSynchronize", true, ())                                                                  \
    X(cuStreamCreate, "cuStreamCreate", true, (CUstream*, unsigned))                                                   \
    X(cuStreamDestroy, "cuStreamDestroy_v2", true, (CUstream))                                                         \
    X(cuMemGetInfo, "cuMemGetInfo_v2", true, (size_t*, size_t*))                                                       \
    X(cuMemAlloc, "cuMemAlloc_v2", true, (CUdeviceptr*, size_t))                                                       \
    X(cuMemFree, "cuMemFree_v2", true, (CUdeviceptr))                                                                  \
    X(cuMemHostAlloc, "cuMemHostAlloc", true, (void**, size_t, unsigned))                                              \
    X(cuMemFreeHost, "cuMemFreeHost", true, (void*))                                                                   \
    X(cuMemHostGetDevicePointer, "cuMemHostGetDevicePointer_v2", true, (CUdeviceptr*, void*, unsigned))                \
    X(cuMemPoolCreate, "cuMemPoolCreate", false, (CUmemoryPool*, const CUmemPoolProps*))                               \
    X(cuMemPoolDestroy, "cuMemPoolDestroy", false, (CUmemoryPool))                                                     \
    X(cuMemPoolSetAttribute, "cuMemPoolSetAttribute", false, (CUmemoryPool, CUmemPool_attribute, void*))               \
    X(cuMemPoolGetAttribute, "cuMemPoolGetAttribute", false, (CUmemoryPool, CUmemPool_attribute, void*))               \
    X(cuMemPoolTrimTo, "cuMemPoolTrimTo", false, (CUmemoryPool, size_t))                                               \
    X(cuMemAllocFromPoolAsync, "cuMemAllocFromPoolAsync", false, (CUdeviceptr*, size_t, CUmemoryPool, CUstream))       \
    X(cuMemFreeAsync, "cuMemFreeAsync", false, (CUdeviceptr, CUstream))                                                \
    X(cuMemcpyAsync, "cuMemcpyAsync", true, (CUdeviceptr, CUdeviceptr, size_t, CUstream))                              \
    X(cuMemcpyHtoDAsync, "cuMemcpyHtoDAsync_v2", true, (CUdeviceptr, const void*, size_t, CUstream))                   \
    X(cuMemcpyDtoHAsync, "cuMemcpyDtoHAsync_v2", true, (void*, CUdeviceptr, size_t, CUstream))                         \
    X(cuMemcpy3DAsync, "cuMemcpy3DAsync_v2", true, (const CUDA_MEMCPY3D*, CUstream))                                   \
    X(cuMemsetD8Async, "cuMemsetD8Async", true, (CUdeviceptr, unsigned char, size_t, CUstream))                        \
    X(cuMemsetD16Async, "cuMemsetD16Async", true, (CUdeviceptr, unsigned short, size_t, CUstream))                     \
    X(cuMemsetD32Async, "cuMemsetD32Async", true, (CUdeviceptr, unsigned, size_t, CUstream))                           \
    X(cuMemsetD2D32Async, "cuMemsetD2D32Async", true, (CUdeviceptr, size_t, unsigned, size_t, size_t, CUstream))       \
    X(cuMipmappedArrayCreate, "cuMipmappedArrayCreate", true,                                                          \
      (CUmipmappedArray*, const CUDA_ARRAY3D_DESCRIPTOR*, unsigned))                                                   \
    X(cuMipmappedArrayGetLevel, "cuMipmappedArrayGetLevel", true, (CUarray*, CUmipmappedArray, unsigned))              \
    X(cuMipmappedArrayDestroy, "cuMipmappedArrayDestroy", true, (CUmipmappedArray))                                    \
    X(cuTexObjectCreate, "cuTexObjectCreate", true,                                                                    \
      (CUtexObject*, const CUDA_RESOURCE_DESC*, const CUDA_TEXTURE_DESC*, const CUDA_RESOURCE_VIEW_DESC*))             \
    X(cuTexObjectDestroy, "cuTexObjectDestroy", true, (CUtexObject))                                                   \
    X(cuSurfObjectCreate, "cuSurfObjectCreate", true, (CUsurfObject*, const CUDA_RESOURCE_DESC*))                      \
    X(cuSurfObjectDestroy, "cuSurfObjectDestroy", true, (CUsurfObject))                                                \
    X(cuModuleLoadDataEx, "cuModuleLoadDataEx", true, (CUmodule*, const void*, unsigned, CUjit_option*, void**))       \
    X(cuModuleUnload, "cuModuleUnload", true, (CUmodule))                                                              \
    X(cuModuleGetFunction, "cuModuleGetFunction", true, (CUfunction*, CUmodule, const char*))                          \
    X(cuModuleGetGlobal, "cuModuleGetGlobal_v2", true, (CUdeviceptr*, size_t*, CUmodule, const char*))                 \
    X(cuFuncGetAttribute, "cuFuncGetAttribute", true, (int*, CUfunction_attribute, CUfunction))                        \
    X(cuFuncSetAttribute, "cuFuncSetAttribute", true, (CUfunction, CUfunction_attribute, int))                         \
    X(cuFuncGetParamInfo, "cuFuncGetParamInfo", false, (CUfunction, size_t, size_t*, size_t*))                         \
    X(cuLaunchKernel, "cuLaunchKernel", true,                                                                          \
      (CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, void**, void**))    \
    X(cuLaunchHostFunc, "cuLaunchHostFunc", true, (CUstream, void (*)(void*), void*))                                  \
    X(cuStreamSynchronize, "cuStreamSynchronize", true, (CUstream))                                                    \
    X(cuStreamWaitEvent, "cuStreamWaitEvent", true, (CUstream, CUevent, unsigned))                                     \
    X(cuStreamIsCapturing, "cuStreamIsCapturing", true, (CUstream, CUstreamCaptureStatus*))                            \
    X(cuThreadExchangeStreamCaptureMode, "cuThreadExchangeStreamCaptureMode", true, (CUstreamCaptureMode*))            \
    X(cuStreamWriteValue64, "cuStreamWriteValue64_v2", false, (CUstream, CUdeviceptr, uint64_t, unsigned))             \
    X(cuStreamWaitValue64, "cuStreamWaitValue64_v2", false, (CUstream, CUdeviceptr, uint64_t, unsigned))               \
    X(cuEventCreate, "cuEventCreate", true, (CUevent*, unsigned))                                                      \
    X(cuEventDestroy, "cuEventDestroy_v2", true, (CUevent))                                                            \
    X(cuEventRecord, "cuEventRecord", true, (CUevent, CUstream))                                                       \
    X(cuEventQuery, "cuEventQuery", true, (CUevent))                                                                   \
    X(cuEventSynchronize, "cuEventSynchronize", true, (CUevent))                                                       \
    X(cuEventElapsedTime, "cuEventElapsedTime", true, (float*, CUevent, CUevent))                                      \
    X(cuImportExternalMemory, "cuImportExternalMemory", false,                                                         \
      (CUexternalMemory*, const CUDA_EXTERNAL_MEMORY_HANDLE_DESC*))                                                    \
    X(cuExternalMemoryGetMappedBuffer, "cuExternalMemoryGetMappedBuffer", false,                                       \
      (CUdeviceptr*, CUexternalMemory, const CUDA_EXTERNAL_MEMORY_BUFFER_DESC*))                                       \
    X(cuDestroyExternalMemory, "cuDestroyExternalMemory", false, (CUexternalMemory))                                   \
    X(cuImportExternalSemaphore, "cuImportExternalSemaphore", false,                                                   \
      (CUexternalSemaphore*, const CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC*))                                              \
    X(cuSignalExternalSemaphoresAsync, "cuSignalExternalSemaphoresAsync", false,                                       \
      (const CUexternalSemaphore*, const CUDA_EXTERNAL_SEMAPHORE_PARAMS*, unsigned, CUstream))                         \
    X(cuWaitExternalSemaphoresAsync, "cuWaitExternalSemaphoresAsync", false,                                           \
      (const CUexternalSemaphore*, const CUDA_EXTERNAL_SEMAPHORE_PARAMS*, unsigned, CUstream))                         \
    X(cuDestroyExternalSemaphore, "cuDestroyExternalSemaphore", false, (CUexternalSemaphore))

/// The driver's entry points; optional ones are null where the driver is too old.
struct CudaApi {
#define X(name, symbol, required, args) CUresult(*name) args = nullptr;
    SPY_CUDA_FUNCTIONS(X)
#undef X
    int driver_version = 0; ///< 12040 for 12.4

    /// Opens and initialises the driver once per process. Null with the reason in `why` when it cannot.
    static const CudaApi* find(std::string* why = nullptr);
    /// As find(), but throws spy::Error.
    static const CudaApi& get();

    /// "CUDA_ERROR_INVALID_VALUE (1): invalid argument"
    std::string text(CUresult result) const;
};

using nvrtcProgram = struct _nvrtcProgram*;

#define SPY_NVRTC_FUNCTIONS(X)                                                                                         \
    X(nvrtcVersion, true, int, (int*, int*))                                                                           \
    X(nvrtcGetErrorString, true, const char*, (int))                                                                   \
    X(nvrtcGetNumSupportedArchs, false, int, (int*))                                                                   \
    X(nvrtcGetSupportedArchs, false, int, (int*))                                                                      \
    X(nvrtcCreateProgram, true, int,                                                                                   \
      (nvrtcProgram*, const char*, const char*, int, const char* const*, const char* const*))                          \
    X(nvrtcDestroyProgram, true, int, (nvrtcProgram*))                                                                 \
    X(nvrtcCompileProgram, true, int, (nvrtcProgram, int, const char* const*))                                         \
    X(nvrtcGetProgramLogSize, true, int, (nvrtcProgram, size_t*))                                                      \
    X(nvrtcGetProgramLog, true, int, (nvrtcProgram, char*))                                                            \
    X(nvrtcGetPTXSize, true, int, (nvrtcProgram, size_t*))                                                             \
    X(nvrtcGetPTX, true, int, (nvrtcProgram, char*))                                                                   \
    X(nvrtcGetCUBINSize, true, int, (nvrtcProgram, size_t*))                                                           \
    X(nvrtcGetCUBIN, true, int, (nvrtcProgram, char*))

/// One loaded NVRTC.
struct Nvrtc {
#define X(name, required, result, args) result(*name) args = nullptr;
    SPY_NVRTC_FUNCTIONS(X)
#undef X
    std::string path;   ///< the library's file, or its bare name when the loader found it
    std::string folder; ///< where it lies; empty when unknown
    int major = 0, minor = 0;
    std::vector<int> architectures; ///< 75, 80, ...; empty when the library cannot tell

    /// Opens NVRTC once per process: the copy already loaded, then the folders of set_nvrtc_search_paths(), then the
    /// toolkit's usual place, then whatever the loader finds. A version newer than the driver's is taken last.
    static const Nvrtc& get();
    /// First folder that holds `header`: beside the library, in its sibling packages, in the search paths. Or empty.
    std::string find_include(const std::string& header) const;
};

/// Folders that hold libnvrtc (or whose `lib`, `lib64`, `bin` does), best first: pip packages, torch's copy, toolkit.
/// Takes effect when NVRTC has not been opened yet.
void set_nvrtc_search_paths(std::vector<std::string> folders);

} // namespace spy
