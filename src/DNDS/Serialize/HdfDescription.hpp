/// @file HdfDescription.hpp
/// @brief The part of a checkpoint that HDF5 writes and reads: everything but the bytes of datasets. Part of
/// Checkpoint.
#pragma once

#include "DNDS/Serialize/CheckpointContent.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace DNDS::Detail {

/// A file whose datasets have places, but no values yet.
struct FileImage {
    index bytes = 0;              ///< of the whole file
    std::vector<std::byte> front; ///< all but the values of datasets
};

/// Makes the file in memory and sets the places of all arrays. HDF5 never sees the disk: a disk that is full when it
/// closes a file makes it crash later (1.10), and in parallel it would leave ranks waiting. Local.
/// @throws DataError; NotBuiltError.
FileImage makeImage(CheckpointContent &content);

/// What a file says about itself, checked. Local. @throws DataError; NotBuiltError.
CheckpointContent readDescription(const std::string &path);

bool hasHdf5() noexcept;

} // namespace DNDS::Detail
