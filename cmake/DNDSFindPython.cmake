# Finds what the Python module is built with, and sets DNDS_HAS_PYTHON, or DNDS_PYTHON_REASON where something is missing.
#
# Of the interpreters, the one in build/python-venv is taken where scripts/install-deps.sh --python has made it, else
# that of the distribution, whose mpi4py was compiled with the distribution's MPI; -DPython_EXECUTABLE=... chooses. Only
# what the user chose is cached: an environment that was made after a build folder is found there the next time.
set(DNDS_HAS_PYTHON FALSE)
set(DNDS_PYTHON_REASON "")

if(DNDS_SANITIZE AND NOT DNDS_SANITIZE MATCHES "^address(,undefined)?$")
  set(DNDS_PYTHON_REASON "the interpreter cannot run under -fsanitize=${DNDS_SANITIZE}")
  return()
endif()

if(NOT DEFINED CACHE{Python_EXECUTABLE} AND NOT SKBUILD)
  cmake_path(SET venv NORMALIZE "${CMAKE_CURRENT_LIST_DIR}/../build/python-venv")
  foreach(candidate IN ITEMS "${venv}/bin/python3" /usr/bin/python3)
    if(EXISTS "${candidate}")
      set(Python_EXECUTABLE "${candidate}")
      break()
    endif()
  endforeach()
endif()
find_package(Python 3.10 QUIET COMPONENTS Interpreter Development.Module)
if(NOT Python_FOUND)
  set(DNDS_PYTHON_REASON "no Python 3.10 or newer with headers (scripts/install-deps.sh --python installs all of it)")
  return()
endif()

# Asks the interpreter; an empty answer means no.
function(dnds_ask_python result code)
  execute_process(
    COMMAND "${Python_EXECUTABLE}" -c "${code}"
    OUTPUT_VARIABLE answer
    OUTPUT_STRIP_TRAILING_WHITESPACE
    ERROR_QUIET)
  set(${result} "${answer}" PARENT_SCOPE)
endfunction()

dnds_ask_python(nanobind_DIR "import nanobind; print(nanobind.cmake_dir())")
if(NOT nanobind_DIR)
  set(DNDS_PYTHON_REASON "${Python_EXECUTABLE} has no nanobind (scripts/install-deps.sh --python)")
  return()
endif()
if(NOT SKBUILD)
  # A wheel is built without mpi4py; everything else runs it, and so needs one of this MPI.
  dnds_ask_python(libraries "import mpi4py.MPI as M, numpy; print(open('/proc/self/maps').read())")
  if(NOT libraries)
    set(DNDS_PYTHON_REASON "${Python_EXECUTABLE} has no mpi4py and NumPy (scripts/install-deps.sh --python)")
    return()
  endif()
  set(theirs other)
  if(libraries MATCHES "libmpich")
    set(theirs mpich)
  elseif(libraries MATCHES "libmpi\\.so")
    set(theirs openmpi)
  endif()
  if(NOT theirs STREQUAL DNDS_MPI_KIND)
    set(DNDS_PYTHON_REASON "mpi4py of ${Python_EXECUTABLE} is of ${theirs}, this build of ${DNDS_MPI_KIND}")
    return()
  endif()
endif()
set(DNDS_HAS_PYTHON TRUE)
