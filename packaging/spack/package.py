# Recipe of Spack for DNDS: see packaging/README.md.
from spack.package import *  # noqa: F403


class Dnds(CMakePackage):  # noqa: F405
    """Distributed arrays with ghost rows for unstructured-mesh solvers on MPI."""

    homepage = "https://example.org/dnds"
    url = "https://example.org/dnds-0.1.0.tar.gz"  # what scripts/release.sh makes

    license("Apache-2.0")  # noqa: F405

    version("0.1.0")  # noqa: F405

    variant("geom", default=True, description="Meshes: readers, partitioning, ghosts")  # noqa: F405
    variant("cgns", default=True, when="+geom", description="CGNS files of the ADF type")  # noqa: F405
    variant("netcdf", default=True, description="NetCDF files of structured blocks")  # noqa: F405
    variant("petsc", default=False, description="Adapters to PETSc")  # noqa: F405
    variant("tools", default=True, description="The programs dnds-mesh and dnds-doctor")  # noqa: F405
    variant("cuda", default=False, description="Arrays and kernels on GPUs")  # noqa: F405
    variant("shared", default=False, description="Shared libraries")  # noqa: F405

    depends_on("cxx", type="build")  # noqa: F405
    depends_on("cmake@3.25:", type="build")  # noqa: F405
    depends_on("mpi")  # noqa: F405
    depends_on("fmt")  # noqa: F405
    depends_on("eigen@3.4:")  # noqa: F405
    depends_on("zlib-api")  # noqa: F405
    depends_on("hdf5+mpi")  # noqa: F405
    depends_on("scotch+mpi~metis", when="+geom")  # noqa: F405
    depends_on("cgns", when="+cgns")  # noqa: F405
    depends_on("netcdf-c+mpi", when="+netcdf")  # noqa: F405
    depends_on("petsc+mpi~complex", when="+petsc")  # noqa: F405
    depends_on("cli11", when="+tools", type="build")  # noqa: F405
    depends_on("nlohmann-json", when="+tools", type="build")  # noqa: F405
    depends_on("cuda@12:", when="+cuda")  # noqa: F405

    def cmake_args(self):
        return [
            self.define("DNDS_BUILD_TESTS", False),
            self.define("DNDS_BUILD_CASES", False),
            self.define("DNDS_BUILD_PYTHON", "OFF"),
            self.define("DNDS_DEVICE", "cuda" if self.spec.satisfies("+cuda") else "absent"),
            self.define_from_variant("DNDS_BUILD_TOOLS", "tools"),
            self.define_from_variant("DNDS_GEOM", "geom"),
            self.define_from_variant("DNDS_CGNS", "cgns"),
            self.define_from_variant("DNDS_NETCDF", "netcdf"),
            self.define_from_variant("DNDS_PETSC", "petsc"),
            self.define("DNDS_HYPRE", False),
            self.define_from_variant("BUILD_SHARED_LIBS", "shared"),
        ]
