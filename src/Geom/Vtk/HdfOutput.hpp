/// @file HdfOutput.hpp
/// @brief Writes an HDF5 file by all ranks together. Part of VtkHdfWriter.
#pragma once

#include "DNDS/Mpi/Communicator.hpp"
#include "DNDS/Mpi/Datatype.hpp"

#include <hdf5.h>

#include <string>
#include <type_traits>
#include <utility>

namespace DNDS::Geom::Detail {

/// Owns an HDF5 handle.
class HdfHandle {
  public:
    using Close = herr_t (*)(hid_t);

    HdfHandle() = default;
    HdfHandle(hid_t id, Close close) noexcept : id_(id), close_(close) {}
    HdfHandle(HdfHandle &&other) noexcept : id_(std::exchange(other.id_, H5I_INVALID_HID)), close_(other.close_) {}
    HdfHandle &operator=(HdfHandle &&other) noexcept {
        std::swap(id_, other.id_);
        std::swap(close_, other.close_);
        return *this;
    }
    HdfHandle(const HdfHandle &) = delete;
    HdfHandle &operator=(const HdfHandle &) = delete;
    ~HdfHandle() { reset(); }

    hid_t get() const noexcept { return id_; }
    bool valid() const noexcept { return id_ >= 0; }
    herr_t reset() noexcept {
        const hid_t id = std::exchange(id_, H5I_INVALID_HID);
        return id >= 0 ? close_(id) : 0;
    }

  private:
    hid_t id_ = H5I_INVALID_HID;
    Close close_ = nullptr;
};

/// Rows of a table: how wide, how many there are in all, and which this rank writes.
struct HdfRows {
    index columns = 0; ///< 0: the dataset has one dimension
    index global = 0;
    index first = 0;
    index own = 0;
};

/// A file that all ranks write. All functions are Collective and throw DataError on all ranks where one fails. HDF5
/// prints nothing meanwhile.
class HdfOutput {
  public:
    HdfOutput(CommunicatorView comm, std::string path);

    hid_t file() const noexcept { return file_.get(); }
    CommunicatorView comm() const noexcept { return comm_; }

    HdfHandle makeGroup(hid_t parent, const char *name);
    void writeText(hid_t object, const char *name, const std::string &text);
    void writeIntegers(hid_t object, const char *name, const std::vector<index> &values);

    /// A dataset of all ranks' rows.
    template <class T>
    void writeRows(hid_t parent, const std::string &name, const HdfRows &rows, const T *values) {
        HdfHandle data = makeDataset(parent, name, typeOf<T>(), rows, rows.global, false);
        write(data.get(), name, typeOf<T>(), rows, 0, values);
    }
    /// A dataset of one value, which is the same on all ranks.
    void writeValue(hid_t parent, const std::string &name, index value);

    /// A dataset that grows by `appendRows`.
    template <class T>
    HdfHandle makeGrowing(hid_t parent, const std::string &name, const HdfRows &rows) {
        return makeDataset(parent, name, typeOf<T>(), rows, 0, true);
    }
    /// Makes a dataset longer by `rows.global` rows behind `before`.
    template <class T>
    void appendRows(const HdfHandle &data, const std::string &name, const HdfRows &rows, index before,
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
    HdfHandle makeDataset(hid_t parent, const std::string &name, hid_t type, const HdfRows &rows, index length,
                          bool growing);
    void grow(hid_t data, const std::string &name, const HdfRows &rows, index length);
    void write(hid_t data, const std::string &name, hid_t type, const HdfRows &rows, index before, const void *values);
    /// Takes the result of a call of HDF5, which is negative on failure, and agrees on it.
    template <class Result>
    Result need(Result result, const std::string &what) {
        comm_.guarded([&] { DNDS_CHECK(result >= 0, DataError, "{}: HDF5 cannot write {}", path_, what); });
        return result;
    }

    CommunicatorView comm_;
    std::string path_;
    HdfHandle file_;
};

} // namespace DNDS::Geom::Detail
