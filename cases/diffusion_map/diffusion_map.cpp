// Diffuses a map from a NetCDF file over the sphere, with missing values as walls, and writes the maps before and
// after.
//
//   mpiexec -n 4 diffusion_map input.nc --variable z --radius 500 --output output.nc

#include "MapFile.hpp"

#include "DNDS/Mpi/RunMain.hpp"

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

namespace {

using DiffusionMap::index;
using DiffusionMap::real;
using DNDS::CommunicatorView;

constexpr real earthRadius = 6371; // km
constexpr int skipped = 77;        // the exit code of tests that could not run

struct Options {
    std::string input = DNDS_DIFFUSION_MAP_INPUT;
    std::string output = "diffusion_map.nc";
    std::string variable;
    std::vector<std::string> at;
    std::vector<std::string> near;
    std::vector<real> valid;
    real radius = 500;
    real zonalLatitude = 80;
    bool quiet = false;
};

/// "level=2" as its two halves. @throws ArgumentError.
DNDS::DimensionPick pickOf(const std::string &text, bool byValue) {
    const std::size_t equals = text.find('=');
    DNDS_CHECK(equals != std::string::npos && equals > 0 && equals + 1 < text.size(), DNDS::ArgumentError,
               "'{}' is not DIMENSION=NUMBER", text);
    const std::string number = text.substr(equals + 1);
    std::size_t read = 0;
    real value = 0;
    try {
        value = std::stod(number, &read);
    } catch (const std::exception &) {
        read = 0;
    }
    DNDS_CHECK(read == number.size() && (byValue || value == std::floor(value)), DNDS::ArgumentError, "'{}' is not {}",
               number, byValue ? "a number" : "an integer");
    const std::string dimension = text.substr(0, equals);
    return byValue ? DNDS::atValue(dimension, value) : DNDS::atIndex(dimension, static_cast<index>(value));
}

/// A line every two seconds, on rank 0.
class Progress {
  public:
    Progress(bool shown, index steps) : shown_(shown), steps_(steps) {}
    void operator()(index step) {
        const std::chrono::duration<double> now = std::chrono::steady_clock::now() - begin_;
        if (!shown_ || now.count() < due_)
            return;
        due_ = now.count() + 2;
        fmt::print("step {} of {}, {:.0f} s left\n", step, steps_,
                   now.count() * static_cast<double>(steps_ - step) / static_cast<double>(step));
        std::fflush(stdout);
    }

  private:
    std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
    bool shown_;
    index steps_;
    double due_ = 2;
};

/// Values outside of [low, high] become walls.
void keepValid(DiffusionMap::Field &field, real low, real high) {
    const auto v = field.view();
    for (index i = 0; i < v.extent(0); ++i)
        for (index j = 0; j < v.extent(1); ++j)
            if (v(i, j) < low || v(i, j) > high)
                v(i, j) = std::nan("");
}

int diffuse(CommunicatorView comm, const Options &options) {
    const auto say = [&](const std::string &text) {
        if (comm.rank() == 0)
            fmt::print("{}\n", text);
    };
    std::vector<DNDS::DimensionPick> picks;
    comm.guarded([&] {
        for (const std::string &text : options.at)
            picks.push_back(pickOf(text, false));
        for (const std::string &text : options.near)
            picks.push_back(pickOf(text, true));
    });
    const DiffusionMap::MapFile file(comm, options.input, options.variable, picks);
    DiffusionMap::Sphere sphere = file.sphere();
    say(fmt::format("{}: {}{}", options.input, file.variable().description(),
                    file.place().empty() ? "" : " at " + file.place()));

    // A point source becomes a Gauss curve of this radius (standard deviation) where diffusivity x time is half its
    // square.
    const real total = std::pow(options.radius / earthRadius, 2) / 2;
    const auto steps = static_cast<index>(std::ceil(total / (0.9 * sphere.longestStep(options.zonalLatitude))));
    const real step = total / static_cast<real>(steps);
    const index limited = sphere.limitZonal(step / 0.9);
    say(fmt::format("{} x {} cells{}, {} steps; along {} circles of latitude cells exchange less, so that the step is "
                    "stable",
                    sphere.rows(), sphere.columns(), sphere.periodic() ? ", periodic" : "", steps, limited));

    DiffusionMap::Diffusion map(comm, sphere, step);
    say(map.field().describe());
    DiffusionMap::Field before("before");
    before.decompose(comm, {sphere.rows(), sphere.columns()});
    for (DiffusionMap::Field *field : {&before, &map.field()}) {
        file.read(*field);
        if (options.valid.size() == 2)
            keepValid(*field, options.valid[0], options.valid[1]);
    }

    const real integral = map.integral();
    const auto range = map.range();
    DNDS_CHECK(!std::isnan(range.first), DNDS::DataError, "{}: every value of {} is missing{}", options.input,
               file.variable().name,
               options.valid.empty() ? ""
                                     : fmt::format(" or outside of --valid {} {}", options.valid[0], options.valid[1]));
    Progress progress(!options.quiet && comm.rank() == 0, steps);
    for (index done = 1; done <= steps; ++done) {
        map.advance(1);
        progress(done);
    }
    const real drift = map.integral() - integral;
    const auto now = map.range();
    DiffusionMap::writeMaps(comm, options.output, file.variable(), sphere, before, map.field());

    // Each step rounds a few times, on the whole sphere's area.
    const real largest = std::max(std::abs(range.first), std::abs(range.second));
    const real allowed = 2e-16 * 13 * largest * static_cast<real>(steps + 10);
    const bool conserved = std::abs(drift) <= allowed;
    const bool bounded = now.first >= range.first - allowed && now.second <= range.second + allowed;
    say(fmt::format("integral {:.15e}, changed by {:.1e} ({})", integral, drift,
                    conserved ? "rounding" : fmt::format("WRONG: more than {:.1e}", allowed)));
    say(fmt::format("values from {:.6g} to {:.6g} became {:.6g} to {:.6g}{}", range.first, range.second, now.first,
                    now.second, bounded ? "" : " (WRONG: new extremes)"));
    say(options.output);
    return conserved && bounded ? 0 : 1;
}

int run(int argc, char **argv, CommunicatorView comm) {
    Options options;
    CLI::App app("Diffuses a map from a NetCDF file over the sphere, with missing values as walls.");
    app.option_defaults()->always_capture_default();
    CLI::Option *input = app.add_option("input", options.input, "NetCDF file");
    app.add_option("--output", options.output, "NetCDF file for the maps before and after, and ranks");
    app.add_option("--variable", options.variable, "the first map of the file unless given");
    app.add_option("--at", options.at, "DIMENSION=INDEX: where to take other dimensions; index 0 unless given");
    app.add_option("--near", options.near, "DIMENSION=VALUE: the same by the nearest coordinate");
    app.add_option("--valid", options.valid, "LOW HIGH: values outside are walls")->expected(2);
    app.add_option("--radius", options.radius, "km: what becomes of a point is a Gauss curve of this radius")
        ->check(CLI::Range(1.0, 20000.0));
    app.add_option("--zonal-latitude", options.zonalLatitude,
                   "beyond this latitude cells may exchange less along circles; 90: nowhere, with many steps")
        ->check(CLI::Range(1.0, 90.0));
    app.add_flag("--quiet", options.quiet, "show no progress");
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError &stop) { // --help, or an option that does not exist
        return comm.rank() == 0 ? app.exit(stop) : stop.get_exit_code();
    }
    const bool skip = input->count() == 0 && !std::filesystem::exists(options.input);
    if (comm.allReduce(skip ? 1 : 0, MPI_MAX) == 1) {
        if (comm.rank() == 0)
            fmt::print(stderr, "skipped: there is no {}; name a NetCDF file\n", options.input);
        return skipped;
    }
    return diffuse(comm, options);
}

} // namespace

int main(int argc, char **argv) {
    return DNDS::runMain(argc, argv, [&](CommunicatorView world) { return run(argc, argv, world); });
}
