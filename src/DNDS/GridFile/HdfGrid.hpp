/// @file HdfGrid.hpp
/// @brief HDF5 datasets of several dimensions, written by all ranks together. Part of HdfDataset and VtkGridFile.
#pragma once

#include "DNDS/GridFile/Slab.hpp"
#include "DNDS/Serialize/HdfSharedFile.hpp"

#include <span>
#include <string>
#include <vector>

namespace DNDS::Detail {

/// Writes a dataset of all ranks' boxes and creates missing groups of its name. The boxes are checked already.
/// Collective. Throws as HdfSharedFile, and LayoutError for kinds that are no numbers.
void writeHdfGrid(HdfSharedFile &file, hid_t parent, const std::string &name, const std::vector<index> &shape,
                  ElementKind kind, std::span<const WrittenSlab> slabs);

} // namespace DNDS::Detail
