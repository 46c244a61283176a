#include <DNDS/Base/Error.hpp>
#include <DNDS/Base/Types.hpp>

#include <mpi.h>

#include <cstdio>

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    DNDS::setErrorRank(rank);
    int status = 1;
    try {
        DNDS_CHECK(rank < 0, DNDS::IndexError, "row {} is out of range", DNDS::index{7});
    } catch (const DNDS::IndexError &error) {
        status = error.rank() == rank ? 0 : 1;
        std::printf("%s\n", error.what());
    }
    MPI_Finalize();
    return status;
}
