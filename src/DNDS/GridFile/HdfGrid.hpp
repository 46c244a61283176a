/// @file HdfGrid.hpp
/// @brief HDF5 datasets of several dimensions, written by all ranks together. Part of HdfDataset and VtkGridFile.
#pragma once

#include "DNDS/GridFile/Slab.hpp"
#include "DNDS/Mpi/Communicator.hpp"
#include "DNDS/Serialize/HdfObject.hpp"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace DNDS::Detail {

/// The type of a number in memory. Throws LayoutError for kinds that are no numbers.
hid_t hdfNumberType(ElementKind kind);

/// A file that all ranks write. All functions are Collective and throw DataError on all ranks if one fails; call them
/// in `failTogether`.
class HdfGridFile {
  public:
    /// A new file, or an existing one to add to.
    HdfGridFile(CommunicatorView comm, std::string path, bool append);

    hid_t file() const noexcept { return file_.get(); }
    HdfObject makeGroup(hid_t parent, const char *name);
    void writeText(hid_t object, const char *name, std::string_view text);
    /// An attribute of integers or reals.
    void writeNumbers(hid_t object, const char *name, std::span<const index> numbers);
    void writeNumbers(hid_t object, const char *name, std::span<const real> numbers);
    /// A dataset of this shape with all ranks' boxes, in missing groups of its name, too. Boxes are checked before.
    void writeDataset(hid_t parent, const std::string &name, const std::vector<index> &shape, ElementKind kind,
                      std::span<const WrittenSlab> slabs);
    void close();

  private:
    void writeNumbers(hid_t object, const char *name, hid_t type, std::size_t count, const void *numbers);
    void writeSlabs(hid_t data, const std::string &name, ElementKind kind, std::span<const WrittenSlab> slabs);
    template <class Result>
    Result need(Result result, std::string_view what) const {
        comm_.guarded([&] { DNDS_CHECK(result >= 0, DataError, "{}: HDF5 cannot write {}", path_, what); });
        return result;
    }

    CommunicatorView comm_;
    std::string path_;
    HdfObject file_;
};

} // namespace DNDS::Detail
