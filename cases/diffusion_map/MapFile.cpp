#include "MapFile.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <string_view>

namespace DiffusionMap {

namespace {

/// Whether the coordinate of this name is in degrees of a direction, "north" or "east": CF conventions 1.8, sections
/// 4.1 and 4.2 ("degrees_north", "degree_north", "degree_N", "degrees_N", "degreeN", "degreesN").
bool isIn(const DNDS::NetcdfContent &content, const std::string &name, const std::string &direction) {
    if (!content.has(name))
        return false;
    const std::string units = content.variable(name, "").text("units");
    const std::string letter = direction == "north" ? "N" : "E";
    for (const char *stem : {"degree", "degrees"})
        for (const std::string &ending : {"_" + direction, "_" + letter, letter})
            if (units == stem + ending)
                return true;
    return false;
}

bool isMap(const DNDS::NetcdfContent &content, const DNDS::NetcdfVariable &variable) {
    const auto &dimensions = variable.dimensions;
    if (dimensions.size() < 2 || variable.kind == DNDS::ElementKind::Opaque)
        return false;
    const std::string &north = dimensions[dimensions.size() - 2].name;
    const std::string &east = dimensions.back().name;
    return isIn(content, north, "north") && isIn(content, east, "east");
}

const DNDS::NetcdfVariable &chosen(const DNDS::NetcdfReader &file, const std::string &name) {
    const DNDS::NetcdfContent &content = file.content();
    if (name.empty()) {
        const auto found = std::ranges::find_if(content.variables, [&](const auto &v) { return isMap(content, v); });
        DNDS_CHECK(found != content.variables.end(), DNDS::ArgumentError,
                   "no variable of '{}' is a map, with latitude (units degrees_north) and longitude (degrees_east) as "
                   "last dimensions:\n{}",
                   file.path(), content.manifest());
        return *found;
    }
    const DNDS::NetcdfVariable &variable = file.variable(name);
    DNDS_CHECK(isMap(content, variable), DNDS::ArgumentError,
               "{} is no map: its last dimensions must have coordinates in degrees_north and degrees_east",
               variable.description());
    return variable;
}

} // namespace

MapFile::MapFile(DNDS::CommunicatorView comm, const std::string &path, const std::string &variable,
                 std::vector<DNDS::DimensionPick> picks)
    : file_(comm, path), picks_(std::move(picks)) {
    comm.guarded([&] {
        variable_ = chosen(file_, variable);
        for (std::size_t d = 0; d + 2 < variable_.dimensions.size(); ++d) {
            const std::string &name = variable_.dimensions[d].name;
            if (std::ranges::none_of(picks_, [&](const auto &pick) { return pick.dimension == name; }))
                picks_.push_back(DNDS::atIndex(name, 0));
        }
    });
    std::vector<real> latitudes = file_.values(variable_.dimensions[variable_.dimensions.size() - 2].name);
    std::vector<real> longitudes = file_.values(variable_.dimensions.back().name);
    comm.guarded([&] { sphere_ = Sphere(std::move(latitudes), std::move(longitudes)); });
}

std::string MapFile::place() const {
    std::string text;
    for (const DNDS::DimensionPick &pick : picks_)
        text += (text.empty() ? "" : ", ") + (pick.byValue ? fmt::format("{} near {}", pick.dimension, pick.value)
                                                           : fmt::format("{}[{}]", pick.dimension, pick.at));
    return text;
}

void MapFile::read(Field &field) const {
    DNDS::NetcdfReadOptions options;
    options.picks = picks_;
    DNDS::readNetcdf(file_, variable_.name, field.field(), options);
}

void writeMaps(DNDS::CommunicatorView comm, const std::string &path, const DNDS::NetcdfVariable &variable,
               const Sphere &sphere, const Field &before, const Field &after) {
    DNDS::BlockField<std::int32_t> rank("rank", comm, after.field().grid(), {});
    std::fill_n(rank.array().data(), rank.array().size(), comm.rank());
    DNDS::NetcdfWriter file(comm, path);
    comm.guarded([&] {
        file.attribute({"Conventions", "CF-1.8"});
        file.coordinate("latitude", sphere.latitudes(), {{"units", "degrees_north"}, {"standard_name", "latitude"}});
        file.coordinate("longitude", sphere.longitudes(), {{"units", "degrees_east"}, {"standard_name", "longitude"}});
        const std::vector<std::string> dimensions{"latitude", "longitude"};
        for (const char *when : {"before", "after"}) {
            std::vector<DNDS::NetcdfAttribute> attributes{
                {"long_name", fmt::format("{} {} diffusion", variable.name, when)},
                {"_FillValue", std::numeric_limits<real>::quiet_NaN()}};
            if (const std::string units = variable.text("units"); !units.empty())
                attributes.emplace_back("units", units);
            file.variable(when, DNDS::ElementKind::Float64, dimensions, attributes);
        }
        file.variable("rank", DNDS::ElementKind::Int32, dimensions, {{"long_name", "rank that had the cell"}});
    });
    DNDS::writeNetcdf(file, "before", before.field());
    DNDS::writeNetcdf(file, "after", after.field());
    DNDS::writeNetcdf(file, "rank", rank);
    file.close();
}

} // namespace DiffusionMap
