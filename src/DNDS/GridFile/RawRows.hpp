/// @file RawRows.hpp
/// @brief Boxes of elements that lie one after another in a file, from a place on. Part of RawFile and VtkGridFile.
#pragma once

#include "DNDS/GridFile/Slab.hpp"
#include "DNDS/Serialize/DurableFile.hpp"

#include <vector>

namespace DNDS::Detail {

/// Reads a box of the elements of `shape`, the first of which is at byte `place`; `swap`: in the other byte order.
/// Requests are as long as elements lie behind each other in the file. Local. Throws DataError.
void readRawSlab(const DurableFile &file, index place, const std::vector<index> &shape, bool swap, const Slab &slab);
void writeRawSlab(const DurableFile &file, index place, const std::vector<index> &shape, bool swap,
                  const WrittenSlab &slab);

} // namespace DNDS::Detail
