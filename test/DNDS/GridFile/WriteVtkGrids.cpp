// Writes a uniform and a rectilinear grid for check_vtk_grids.py: PATH.vtkhdf, PATH.centres.vtkhdf and PATH.vtr.
#include "DNDS/GridFile/Slab.hpp"
#include "DNDS/Mpi/RunMain.hpp"

#include <string>

int main(int argc, char **argv) {
    return DNDS::runMain(argc, argv, [&](DNDS::CommunicatorView comm) {
        DNDS_CHECK(argc == 2, DNDS::ArgumentError, "one argument is needed: PATH");
        using DNDS::index;
        // cells: x 5, y 4, z 3; cut along y
        const index begin = 4 * comm.rank() / comm.size();
        const index end = 4 * (comm.rank() + 1) / comm.size();
        std::vector<double> temperature;
        std::vector<float> velocity;
        for (index k = 0; k < 3; k++)
            for (index j = begin; j < end; j++)
                for (index i = 0; i < 5; i++) {
                    temperature.push_back(static_cast<double>(100 * k + 10 * j + i));
                    for (index c = 0; c < 3; c++)
                        velocity.push_back(static_cast<float>(1000 * c + 100 * k + 10 * j + i));
                }
        std::vector<DNDS::VtkGridField> fields{{"temperature <K>", 1, DNDS::ElementKind::Float64, {}},
                                               {"velocity", 3, DNDS::ElementKind::Float32, {}}};
        if (end > begin) {
            fields[0].slabs.push_back(
                DNDS::slabOf(static_cast<const double *>(temperature.data()), {0, begin, 0}, {3, end - begin, 5}));
            fields[1].slabs.push_back(
                DNDS::slabOf(static_cast<const float *>(velocity.data()), {0, begin, 0, 0}, {3, end - begin, 5, 3}));
        }
        const std::string path = argv[1];
        DNDS::writeVtkImage(comm, path + ".vtkhdf", {5, 4, 3}, {1, 2, 3}, {0.5, 0.25, 0.125}, fields);
        DNDS::writeVtkImage(comm, path + ".centres.vtkhdf", {5, 4, 3}, {1, 2, 3}, {0.5, 0.25, 0.125}, fields,
                            DNDS::VtkPlacement::Centres);
        // A plane of the same numbers: y 4, x 5.
        std::vector<double> plane;
        for (index j = begin; j < end; j++)
            for (index i = 0; i < 5; i++)
                plane.push_back(static_cast<double>(10 * j + i));
        DNDS::VtkGridField flat{"plane", 1, DNDS::ElementKind::Float64, {}};
        if (end > begin)
            flat.slabs.push_back(DNDS::slabOf(plane.data(), {0, begin, 0}, {1, end - begin, 5}));
        flat.slabs.push_back(DNDS::slabOf(static_cast<double *>(nullptr), {0, 0, 0}, {0, 4, 5})); // nothing
        DNDS::writeVtkImage(comm, path + ".flat.vtkhdf", {5, 4, 1}, {0, 0, 0}, {1, 1, 1}, {&flat, 1},
                            DNDS::VtkPlacement::Centres);
        DNDS::writeVtkRectilinear(comm, path + ".vtr", {{{0, 1, 3, 6, 10, 15}, {0, 1, 2, 3, 4}, {-1, 0, 0.5, 2}}},
                                  fields);
    });
}
