# Finds the CUDA toolkit, also where nvcc is not in PATH, and enables the language for kernels (.cu files).
if(NOT DEFINED CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX})
  find_package(CUDAToolkit REQUIRED)
  set(CMAKE_CUDA_COMPILER "${CUDAToolkit_NVCC_EXECUTABLE}")
endif()
if(NOT DEFINED CMAKE_CUDA_HOST_COMPILER AND NOT DEFINED ENV{CUDAHOSTCXX})
  set(CMAKE_CUDA_HOST_COMPILER "${CMAKE_CXX_COMPILER}")
endif()
if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES AND NOT DEFINED ENV{CUDAARCHS})
  # Turing, Ampere and Hopper as machine code; anything newer compiles the PTX of the latter when it loads.
  set(CMAKE_CUDA_ARCHITECTURES "75-real;80-real;90" CACHE STRING "CUDA architectures")
endif()
enable_language(CUDA)
find_package(CUDAToolkit REQUIRED) # that of the compiler: there may be others

# Headers of CCCL are a package of their own. Without them, sums, scans and sorts on the device throw NotBuiltError.
include(CheckSourceCompiles)
check_source_compiles(CUDA "#include <cub/version.cuh>
int main() {}" DNDS_HAS_CUB)
if(NOT DNDS_HAS_CUB)
  message(WARNING "The CUDA toolkit has no CUB (package cuda-cccl or nvidia-cuda-cccl): sums, scans and sorts on the "
                  "device, and with them exact sums of ArrayDof, throw NotBuiltError")
endif()
