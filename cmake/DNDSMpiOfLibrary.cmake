# dnds_mpi_of_library(<library> <variable>): which MPI the file of a shared library names, as DNDS_MPI_KIND says it;
# DNDS_MPI_KIND itself where it names none.
function(dnds_mpi_of_library library variable)
  file(STRINGS "${library}" names REGEX "^libmpi(ch)?\\.so\\.[0-9]+")
  set(kind "${DNDS_MPI_KIND}")
  if(names MATCHES "libmpi\\.so\\.[2-9][0-9]")
    set(kind openmpi)
  elseif(names)
    set(kind mpich)
  endif()
  set(${variable} "${kind}" PARENT_SCOPE)
endfunction()
