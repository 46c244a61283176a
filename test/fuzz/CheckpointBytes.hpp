/// @file CheckpointBytes.hpp
/// @brief Checkpoints with right checksums and wrong content, so that fuzzing reaches the checks after the checksum
/// test.
#pragma once

#include "DNDS/Serialize/Checkpoint.hpp"
#include "fuzz/Random.hpp"

#include <array>
#include <string>
#include <vector>

namespace DNDS::Geom::fuzz {

/// A small sound checkpoint with arrays of all layouts. Local.
std::string soundCheckpoint();

/// Description of a checkpoint, and the bytes of its datasets: values, offsets and ids of each array.
struct CheckpointParts {
    CheckpointContent content;
    std::vector<std::array<std::string, 3>> data;
};

/// Takes a sound checkpoint apart. Local.
CheckpointParts partsOf(const std::string &bytes);

/// The file of these parts, with all its checksums, whatever the parts say. A file that would be large ends with the
/// description. Local. Throws DataError for what HDF5 does not write or survive.
std::string bytesOf(CheckpointParts parts);

/// One to three numbers of the description or words of the data become others. Local.
void mutate(CheckpointParts &parts, Random &random);

/// One number of one array's description becomes another. Local.
void mutateAttribute(std::string &bytes, Random &random);

/// Sets the checksums of the header, of HDF5's superblock and of its objects' headers to what they should be. What is
/// no checkpoint stays. Local.
void repairChecksums(std::string &bytes);

} // namespace DNDS::Geom::fuzz
