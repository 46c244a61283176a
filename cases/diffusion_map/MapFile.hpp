/// @file MapFile.hpp
/// @brief Maps in NetCDF files: a variable over latitude and longitude.
#pragma once

#include "Diffusion.hpp"

#include "DNDS/GridFile/Netcdf.hpp"

#include <string>
#include <utility>
#include <vector>

namespace DiffusionMap {

/// One variable of a file, at one place of all dimensions but latitude and longitude, which are its last two.
class MapFile {
  public:
    /// `variable` "" is the first one that is a map. Dimensions that `picks` does not name are taken at index 0.
    /// Collective. @throws on all ranks as NetcdfReader; ArgumentError for variables that are no maps.
    MapFile(DNDS::CommunicatorView comm, const std::string &path, const std::string &variable,
            std::vector<DNDS::DimensionPick> picks);

    const DNDS::NetcdfVariable &variable() const { return variable_; }
    const Sphere &sphere() const { return sphere_; }
    /// The dimensions of size one, readable: "level = 1".
    std::string place() const;

    /// Reads this rank's cells; missing values are NaN. Collective. @throws as NetcdfReader::read.
    void read(Field &field) const;

  private:
    DNDS::NetcdfReader file_;
    DNDS::NetcdfVariable variable_;
    std::vector<DNDS::DimensionPick> picks_;
    Sphere sphere_;
};

/// Writes the maps `before` and `after` of a variable, and which rank had which cells, with coordinates as CF says.
/// Collective. @throws as NetcdfWriter.
void writeMaps(DNDS::CommunicatorView comm, const std::string &path, const DNDS::NetcdfVariable &variable,
               const Sphere &sphere, const Field &before, const Field &after);

} // namespace DiffusionMap
