// Fields on blocks in NetCDF files: blocks_files FILE writes steps of a field and reads the last one.
#include "DNDS/Blocks/NdArray.hpp"
#include "DNDS/Mpi/RunMain.hpp"

#include <array>
#include <cmath>
#include <cstdio>

namespace {

using namespace DNDS;
using DNDS::Index;

void writeSteps(const CommunicatorView &world, const std::string &path) {
    NdArray<float> temperature("temperature");
    temperature.decompose(world, {18, 36}, 0, {}, {1, 1}, {false, true});
    std::vector<real> latitudes(18);
    std::vector<real> longitudes(36);
    for (std::size_t i = 0; i < latitudes.size(); ++i)
        latitudes[i] = 85 - 10 * static_cast<real>(i);
    for (std::size_t j = 0; j < longitudes.size(); ++j)
        longitudes[j] = 10 * static_cast<real>(j);

    NetcdfWriter file(world, path);
    file.unlimited("time");
    file.variable("time", ElementKind::Float64, {"time"}, {{"units", "hours since 2000-01-01"}});
    file.coordinate("lat", latitudes, {{"units", "degrees_north"}});
    file.coordinate("lon", longitudes, {{"units", "degrees_east"}});
    file.variable("temp", ElementKind::Float32, {"time", "lat", "lon"}, {{"units", "K"}, {"_FillValue", -999.0}});
    for (Index step = 0; step < 3; ++step) {
        const auto v = temperature.view();
        for (Index i = 0; i < v.extent(0); ++i)
            for (Index j = 0; j < v.extent(1); ++j)
                v(i, j) = static_cast<float>(280 + step + v.global(i, 0));
        const real hours = 6 * static_cast<real>(step);
        file.write("time", slabOf(&hours, {step}, {world.rank() == 0 ? 1 : 0}));
        writeNetcdf(file, "temp", temperature.field(), {step});
    }
    file.close();
}

/// The value of one cell.
float readSteps(const CommunicatorView &world, const std::string &path) {
    NdArray<double> temperature("temperature");
    temperature.decompose(world, {18, 36}, 0, {}, {1, 1}, {false, true});
    temperature.readNetcdfAuto(path, "temp", -1); // the last step
    temperature.exchangeGhosts();

    const std::array shown{vtkField(temperature.field())}; // 18 x 36 cells: the last dimension is VTK's x
    writeVtkImage(world, path + ".vtkhdf", {36, 18, 1}, {0, -90, 0}, {10, 10, 1}, shown, VtkPlacement::Centres);

    const NetcdfReader file(world, path);
    std::vector<float> row(36); // one latitude at one time, on every rank
    file.read("temp", slabOf(row.data(), {0}, {36}), {.picks = {atValue("time", 7), atValue("lat", 52)}});
    if (world.rank() == 0)
        std::printf("%s, at 55 degrees north after 6 hours: %g %s\n", file.variable("temp").description().c_str(),
                    static_cast<double>(row[0]), file.variable("temp").text("units").c_str());
    return row[0];
}

} // namespace

int main(int argc, char **argv) {
    return DNDS::runMain(argc, argv, [&](DNDS::CommunicatorView world) {
        const std::string path = argc > 1 ? argv[1] : "blocks_files.nc";
        if (!DNDS::NetcdfReader::built())
            return 77;
        writeSteps(world, path);
        return readSteps(world, path) == 284 ? 0 : 1;
    });
}
