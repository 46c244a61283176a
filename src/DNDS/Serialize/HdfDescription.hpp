/// @file HdfDescription.hpp
/// @brief The part of a checkpoint that HDF5 writes and reads: everything but the bytes of datasets. Part of
/// Checkpoint.
#pragma once

#include "DNDS/Serialize/CheckpointContent.hpp"
#include "DNDS/Serialize/DurableFile.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace DNDS::Detail {

/// A file whose datasets have places, but no values yet.
struct FileImage {
    index bytes = 0;              ///< of the whole file
    std::vector<std::byte> front; ///< all but the values of datasets; the header is still empty
};

/// Makes the file in memory and sets the places of all arrays. HDF5 never sees the disk: a disk that is full when it
/// closes a file makes it crash later (1.10), and in parallel it would leave ranks waiting. Local.
/// @throws DataError; NotBuiltError.
FileImage makeImage(CheckpointContent &content);

/// The text at the begin of the file. `content` is a number for the values of all datasets. Local.
std::string headerOf(const FileImage &image, std::uint64_t content);

/// What a file says about itself, checked: all sizes and places are within the file, and no product of them
/// overflows. HDF5 gets the checked bytes alone, from memory. Local. @throws DataError; NotBuiltError.
CheckpointContent readDescription(const DurableFile &file);

/// A number that two files have in common where their content is the same, and else do not. Ranks compare it, since
/// neither device numbers nor times are the same on all nodes that see a file. Local, one read of the header.
std::uint64_t identityOf(const DurableFile &file);

bool hasHdf5() noexcept;

} // namespace DNDS::Detail
