/// @file Seeds.hpp
/// @brief Small sound files of all formats, from which fuzzing starts.
#pragma once

#include <string>
#include <vector>

namespace DNDS::Geom::fuzz {

struct Seed {
    std::string format; ///< "gmsh", "su2", "ugrid", "adf", "hdf5", "vtkhdf", "vtu", "checkpoint"
    std::string name;
    std::string bytes;
};

/// Boxes of all kinds of cells, written in each format that this build can write, and a checkpoint. Local.
std::vector<Seed> makeSeeds();

} // namespace DNDS::Geom::fuzz
