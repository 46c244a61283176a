/// @file RawRows.hpp
/// @brief Boxes of elements stored contiguously from a place in a file. Part of RawFile and VtkGridFile.
#pragma once

#include "DNDS/GridFile/Slab.hpp"
#include "DNDS/Serialize/DurableFile.hpp"

#include <vector>

namespace DNDS::Detail {

/// Reads a box of the elements of `shape`, the first of which is at byte `place`; `swap` reverses the byte order.
/// Requests are as long as elements are contiguous in the file. Local. Throws DataError.
void readRawSlab(const DurableFile &file, index place, const std::vector<index> &shape, bool swap, const Slab &slab);
void writeRawSlab(const DurableFile &file, index place, const std::vector<index> &shape, bool swap,
                  const WrittenSlab &slab);

} // namespace DNDS::Detail
