/// @file cuda_runtime.h
/// @brief The names of CUDA that DNDS uses, for HIP: included before everything else by scripts/compile-hip.sh.
///
/// Not run on a GPU. It shows that the sources need nothing that AMD's compiler lacks, and what a port has to name.
#pragma once

#include <hip/hip_runtime.h>

// Sources ask these for the compiler of kernels and for its pass for the device.
#if defined(__HIP__)
#define __CUDACC__ 1
#if defined(__HIP_DEVICE_COMPILE__)
#define __CUDA_ARCH__ 900
#endif
#define __isGlobal(pointer) true
#define __nanosleep(nanoseconds) __builtin_amdgcn_s_sleep(2)

// Missing in HIP 5.2.
__device__ inline long long atomicMin_system(long long *address, long long value) {
    return __hip_atomic_fetch_min(address, value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM);
}
__device__ inline long long atomicMax_system(long long *address, long long value) {
    return __hip_atomic_fetch_max(address, value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM);
}
#endif

// One line for each name of the runtime that some source uses, sorted.
#define cudaDevP2PAttrNativeAtomicSupported hipDevP2PAttrNativeAtomicSupported
#define cudaDeviceAttr hipDeviceAttribute_t
#define cudaDeviceGetAttribute hipDeviceGetAttribute
#define cudaDeviceGetP2PAttribute hipDeviceGetP2PAttribute
#define cudaDeviceGetStreamPriorityRange hipDeviceGetStreamPriorityRange
#define cudaDeviceSynchronize hipDeviceSynchronize
#define cudaEnableDefault 0
#define cudaErrorDevicesUnavailable hipErrorContextAlreadyInUse
#define cudaErrorMemoryAllocation hipErrorOutOfMemory
#define cudaErrorNoKernelImageForDevice hipErrorNoBinaryForGpu
#define cudaErrorNotReady hipErrorNotReady
#define cudaErrorUnsupportedPtxVersion hipErrorInvalidImage
#define cudaErrorStreamCaptureImplicit hipErrorStreamCaptureImplicit
#define cudaError_t hipError_t
#define cudaEventCreateWithFlags hipEventCreateWithFlags
#define cudaEventDestroy hipEventDestroy
#define cudaEventDisableTiming hipEventDisableTiming
#define cudaEventQuery hipEventQuery
#define cudaEventRecord hipEventRecord
#define cudaEventSynchronize hipEventSynchronize
#define cudaEvent_t hipEvent_t
#define cudaFree hipFree
#define cudaFreeHost hipHostFree
#define cudaGetDevice hipGetDevice
#define cudaGetDeviceCount hipGetDeviceCount
#define cudaGetErrorName hipGetErrorName
#define cudaGetErrorString hipGetErrorString
#define cudaGetLastError hipGetLastError
#define cudaGraphDestroy hipGraphDestroy
#define cudaGraphExecDestroy hipGraphExecDestroy
#define cudaGraphExec_t hipGraphExec_t
#define cudaGraphInstantiate hipGraphInstantiateWithFlags
#define cudaGraphInstantiateFlagUseNodePriority 0 // HIP knows no priorities of nodes
#define cudaGraphLaunch hipGraphLaunch
#define cudaGraph_t hipGraph_t
#define cudaHostAlloc hipHostMalloc
#define cudaHostAllocMapped hipHostMallocMapped
#define cudaHostAllocPortable hipHostMallocPortable
#define cudaHostRegister hipHostRegister
#define cudaHostRegisterMapped hipHostRegisterMapped
#define cudaHostRegisterPortable hipHostRegisterPortable
#define cudaHostUnregister hipHostUnregister
#define cudaIpcCloseMemHandle hipIpcCloseMemHandle
#define cudaIpcGetMemHandle hipIpcGetMemHandle
#define cudaIpcMemHandle_t hipIpcMemHandle_t
#define cudaIpcMemLazyEnablePeerAccess hipIpcMemLazyEnablePeerAccess
#define cudaIpcOpenMemHandle hipIpcOpenMemHandle
#define cudaLaunchHostFunc hipLaunchHostFunc
#define cudaMalloc hipMalloc
#define cudaMemGetInfo hipMemGetInfo
#define cudaMemcpyAsync hipMemcpyAsync
#define cudaMemcpyDeviceToDevice hipMemcpyDeviceToDevice
#define cudaMemcpyDeviceToHost hipMemcpyDeviceToHost
#define cudaMemcpyHostToDevice hipMemcpyHostToDevice
#define cudaMemcpyHostToHost hipMemcpyHostToHost
#define cudaMemcpyKind hipMemcpyKind
#define cudaSetDevice hipSetDevice
#define cudaStreamBeginCapture hipStreamBeginCapture
#define cudaStreamCaptureMode hipStreamCaptureMode
#define cudaStreamCaptureModeRelaxed hipStreamCaptureModeRelaxed
#define cudaStreamCaptureStatus hipStreamCaptureStatus
#define cudaStreamCaptureStatusNone hipStreamCaptureStatusNone
#define cudaStreamCreateWithPriority hipStreamCreateWithPriority
#define cudaStreamDestroy hipStreamDestroy
#define cudaStreamEndCapture hipStreamEndCapture
#define cudaStreamIsCapturing hipStreamIsCapturing
#define cudaStreamNonBlocking hipStreamNonBlocking
#define cudaStreamQuery hipStreamQuery
#define cudaStreamSynchronize hipStreamSynchronize
#define cudaStreamWaitEvent hipStreamWaitEvent
#define cudaStream_t hipStream_t
#define cudaSuccess hipSuccess
#define cudaThreadExchangeStreamCaptureMode hipThreadExchangeStreamCaptureMode

/// HIP loads all kernels of a program when it starts, and has no function to ask for.
enum cudaDriverEntryPointQueryResult { cudaDriverEntryPointSuccess, cudaDriverEntryPointSymbolNotFound };
inline hipError_t cudaGetDriverEntryPoint(const char * /*name*/, void ** /*function*/, int /*flags*/,
                                          cudaDriverEntryPointQueryResult *found) {
    *found = cudaDriverEntryPointSymbolNotFound;
    return hipSuccess;
}

/// HIP has a function for what is a member here.
struct cudaDeviceProp : hipDeviceProp_t {
    hipUUID uuid{};
};
inline hipError_t cudaGetDeviceProperties(cudaDeviceProp *properties, int number) {
    hipDevice_t device = 0;
    hipError_t status = hipGetDeviceProperties(properties, number);
    if (status == hipSuccess)
        status = hipDeviceGet(&device, number);
    return status == hipSuccess ? hipDeviceGetUuid(&properties->uuid, device) : status;
}
