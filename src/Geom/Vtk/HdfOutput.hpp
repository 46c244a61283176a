/// @file HdfOutput.hpp
/// @brief Writes an HDF5 file by all ranks together. Part of VtkHdfWriter.
#pragma once

#include "DNDS/Serialize/HdfSharedFile.hpp"

#include <string>
#include <utility>

namespace DNDS::Geom::Detail {

using DNDS::Detail::HdfObject;

/// Rows of a table: their width, their number on all ranks, and this rank's rows.
struct HdfRows {
    index columns = 0; ///< 0: the dataset has one dimension
    index global = 0;
    index first = 0;
    index own = 0;
};

/// A new file of tables that all ranks write.
/// Every function is Collective, also for ranks without rows, as parallel HDF5 requires.
class HdfOutput : public DNDS::Detail::HdfSharedFile {
  public:
    HdfOutput(CommunicatorView comm, std::string path) : HdfSharedFile(comm, std::move(path), false) {}

    /// A dataset of all ranks' rows.
    template <class T>
    void writeRows(hid_t parent, const std::string &name, const HdfRows &rows, const T *values) {
        HdfObject data = makeDataset(parent, name, typeOf<T>(), rows, rows.global, false);
        write(data.get(), name, typeOf<T>(), rows, 0, values);
    }
    /// A dataset of one value, which is the same on all ranks.
    void writeValue(hid_t parent, const std::string &name, index value);

    /// A dataset that grows by `appendRows`.
    template <class T>
    HdfObject makeGrowing(hid_t parent, const std::string &name, const HdfRows &rows) {
        return makeDataset(parent, name, typeOf<T>(), rows, 0, true);
    }
    /// Appends `rows.global` rows to a dataset of `before` rows.
    template <class T>
    void appendRows(const HdfObject &data, const std::string &name, const HdfRows &rows, index before,
                    const T *values) {
        grow(data.get(), name, rows, before + rows.global);
        write(data.get(), name, typeOf<T>(), rows, before, values);
    }

  private:
    template <class T>
    static hid_t typeOf() {
        return DNDS::Detail::hdfNumberType(elementKindOf<T>());
    }
    /// A data set of `length` rows, whose chunks let it grow if `growing`.
    HdfObject makeDataset(hid_t parent, const std::string &name, hid_t type, const HdfRows &rows, index length,
                          bool growing);
    void grow(hid_t data, const std::string &name, const HdfRows &rows, index length);
    void write(hid_t data, const std::string &name, hid_t type, const HdfRows &rows, index before, const void *values);
};

} // namespace DNDS::Geom::Detail
