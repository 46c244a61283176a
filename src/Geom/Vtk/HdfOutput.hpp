/// @file HdfOutput.hpp
/// @brief Writes an HDF5 file by all ranks together. Part of VtkHdfWriter.
#pragma once

#include "DNDS/Mpi/Communicator.hpp"
#include "DNDS/Mpi/Datatype.hpp"
#include "DNDS/Serialize/HdfObject.hpp"

#include <string>
#include <string_view>
#include <type_traits>

namespace DNDS::Geom::Detail {

using DNDS::Detail::HdfObject;

/// Rows of a table: their width, their number on all ranks, and this rank's rows.
struct HdfRows {
    index columns = 0; ///< 0: the dataset has one dimension
    index global = 0;
    index first = 0;
    index own = 0;
};

/// A file that all ranks write. All functions are Collective and throw DataError on all ranks if one fails; call them
/// in `failTogether`, since ranks wait for each other within HDF5. HDF5 prints nothing meanwhile.
class HdfOutput {
  public:
    HdfOutput(CommunicatorView comm, std::string path);

    hid_t file() const noexcept { return file_.get(); }
    CommunicatorView comm() const noexcept { return comm_; }

    HdfObject makeGroup(hid_t parent, const char *name);
    void writeText(hid_t object, const char *name, const std::string &text);
    void writeIntegers(hid_t object, const char *name, const std::vector<index> &values);

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

    void close();

  private:
    template <class T>
    static hid_t typeOf() {
        if constexpr (std::is_same_v<T, real>)
            return H5T_NATIVE_DOUBLE;
        else if constexpr (std::is_same_v<T, std::uint8_t>)
            return H5T_NATIVE_UINT8;
        else
            return H5T_NATIVE_INT64;
    }
    HdfObject makeDataset(hid_t parent, const std::string &name, hid_t type, const HdfRows &rows, index length,
                          bool growing);
    void grow(hid_t data, const std::string &name, const HdfRows &rows, index length);
    void write(hid_t data, const std::string &name, hid_t type, const HdfRows &rows, index before, const void *values);
    /// Checks the result of an HDF5 call, negative on failure, on all ranks. `what` is not a string, which would be
    /// made before the call and might fail on one rank while others wait within it.
    template <class Result>
    Result need(Result result, std::string_view what) {
        comm_.guarded([&] { DNDS_CHECK(result >= 0, DataError, "{}: HDF5 cannot write {}", path_, what); });
        return result;
    }

    CommunicatorView comm_;
    std::string path_;
    HdfObject file_;
};

} // namespace DNDS::Geom::Detail
