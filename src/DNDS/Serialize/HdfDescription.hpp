/// @file HdfDescription.hpp
/// @brief The part of a checkpoint that HDF5 writes and reads: all except the bytes of datasets. Part of Checkpoint.
#pragma once

#include "DNDS/Serialize/Checkpoint.hpp"
#include "DNDS/Serialize/DurableFile.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace DNDS::Detail {

/// A file whose datasets have places but no values yet.
struct FileImage {
    index bytes = 0;              ///< size of the whole file
    std::vector<std::byte> front; ///< everything except the values of datasets; the header is still empty
};

/// Makes the file in memory and sets the places of all arrays. HDF5 never accesses the disk: HDF5 1.10 crashes later if
/// the disk is full when it closes a file, and in parallel it would leave ranks waiting. Local. @throws DataError;
/// NotBuiltError.
FileImage makeImage(CheckpointContent &content);

/// The header text of the file. `content` is a hash of the values of all datasets. Local.
std::string headerOf(const FileImage &image, std::uint64_t content);

/// Reads a file's description and compares it with its checksum. Local. @throws DataError; NotBuiltError.
FileImage readImage(const DurableFile &file);

/// Contents of the description, checked: all sizes and places are within the file, and no product of them overflows.
/// HDF5 gets only the checked bytes, from memory. Local. @throws DataError, which names `path`; NotBuiltError.
CheckpointContent contentOf(const FileImage &image, const std::string &path);

/// A hash that two files share only if their content is the same. Ranks compare it, since neither device numbers nor
/// times are the same on all nodes that see a file. Local, one read of the header.
std::uint64_t identityOf(const DurableFile &file);

/// Whether this build contains HDF5.
bool hasHdf5() noexcept;

} // namespace DNDS::Detail
