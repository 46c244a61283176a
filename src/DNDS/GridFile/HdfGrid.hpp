/// @file HdfGrid.hpp
/// @brief HDF5 datasets of several dimensions, written by all ranks together. Part of HdfDataset and VtkGridFile.
#pragma once

#include "DNDS/GridFile/Slab.hpp"
#include "DNDS/Serialize/HdfSharedFile.hpp"

#include <span>
#include <string>
#include <vector>

namespace DNDS::Detail {

/// The type of a number in memory. Throws LayoutError for kinds that are no numbers.
hid_t hdfNumberType(ElementKind kind);

/// A file of boxes that all ranks write.
class HdfGridFile : public HdfSharedFile {
  public:
    using HdfSharedFile::HdfSharedFile;

    /// Writes a dataset of all ranks' boxes and creates missing groups of its name. The boxes are checked already.
    void writeDataset(hid_t parent, const std::string &name, const std::vector<index> &shape, ElementKind kind,
                      std::span<const WrittenSlab> slabs);

  private:
    void writeSlabs(hid_t data, const std::string &name, ElementKind kind, std::span<const WrittenSlab> slabs);
};

} // namespace DNDS::Detail
