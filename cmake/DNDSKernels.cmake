# dnds_kernel_sources(<target> <file.cu>...): adds sources whose kernels (calls of parallelFor for the device) nvcc
# compiles where DNDS was built for CUDA, and the C++ compiler elsewhere.
function(dnds_kernel_sources target)
  target_sources(${target} PRIVATE ${ARGN})
  if(DNDS_DEVICE STREQUAL "cuda")
    set_source_files_properties(${ARGN} TARGET_DIRECTORY ${target} PROPERTIES LANGUAGE CUDA)
    # Products and sums are not fused, so that results are those of the host to the bit; std::span is constexpr only. The
    # standard is an option because CMake 3.25 does not know nvcc's. The warnings are of host functions
    # called by functions for host and device, in Eigen and OneSided/Verbs.hpp.
    set(options -std=c++20 --extended-lambda --expt-relaxed-constexpr --fmad=false -diag-suppress=20012,20014,20015)
    get_property(done TARGET ${target} PROPERTY DNDS_HAS_KERNELS)
    if(NOT done)
      target_compile_options(${target} PRIVATE "$<$<COMPILE_LANGUAGE:CUDA>:${options}>")
      target_link_libraries(${target} PRIVATE CUDA::cudart)
      set_property(TARGET ${target} PROPERTY DNDS_HAS_KERNELS ON)
    endif()
  else()
    set_source_files_properties(${ARGN} TARGET_DIRECTORY ${target} PROPERTIES LANGUAGE CXX)
  endif()
endfunction()
