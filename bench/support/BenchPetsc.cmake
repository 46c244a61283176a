# dnds_bench_petsc(<benchmark> <source> <source without PETSc>): adds to bench_<benchmark> what compares with PETSc, or what
# says that there is none.
function(dnds_bench_petsc benchmark source absent)
  if(TARGET DNDS::Petsc)
    target_sources(bench_${benchmark} PRIVATE ${source})
    target_link_libraries(bench_${benchmark} PRIVATE DNDS::Petsc)
  else()
    target_sources(bench_${benchmark} PRIVATE ${absent})
    message(STATUS "bench_${benchmark} goes without PETSc")
  endif()
endfunction()
