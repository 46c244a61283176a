/// @file HdfObject.hpp
/// @brief Owners of HDF5 handles, for all sources that call HDF5. Part of Checkpoint, VtkHdfWriter and CgnsReader.
#pragma once

#include "DNDS/Base/Error.hpp"
#include "DNDS/Base/ExactAccumulator.hpp"

#include <hdf5.h>

#include <array>
#include <string>
#include <utility>

namespace DNDS::Detail {

/// Owns a handle, or none.
class HdfObject {
  public:
    using Close = herr_t (*)(hid_t);

    HdfObject() = default;
    /// A negative `id` means that HDF5 failed: see `valid`.
    HdfObject(hid_t id, Close closeWith) noexcept : id_(id), close_(closeWith) {}
    /// Throws DataError if HDF5 failed: "HDF5 fails with `what`".
    HdfObject(hid_t id, Close closeWith, const std::string &what) : HdfObject(id, closeWith) {
        DNDS_CHECK(valid(), DataError, "HDF5 fails with {}", what);
    }
    HdfObject(HdfObject &&other) noexcept : id_(std::exchange(other.id_, H5I_INVALID_HID)), close_(other.close_) {}
    HdfObject &operator=(HdfObject &&other) noexcept {
        std::swap(id_, other.id_);
        std::swap(close_, other.close_);
        return *this;
    }
    HdfObject(const HdfObject &) = delete;
    HdfObject &operator=(const HdfObject &) = delete;
    ~HdfObject() { (void)close(); }

    hid_t get() const noexcept { return id_; }
    bool valid() const noexcept { return id_ >= 0; }
    /// Negative if HDF5 failed.
    herr_t close() noexcept {
        const hid_t id = std::exchange(id_, H5I_INVALID_HID);
        return id >= 0 ? close_(id) : 0;
    }

  private:
    hid_t id_ = H5I_INVALID_HID;
    Close close_ = nullptr;
};

/// Keeps HDF5 from printing errors that are thrown as exceptions anyway.
class HdfQuiet {
  public:
    HdfQuiet() {
        H5Eget_auto2(H5E_DEFAULT, &function_, &data_);
        H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
    }
    HdfQuiet(const HdfQuiet &) = delete;
    HdfQuiet &operator=(const HdfQuiet &) = delete;
    ~HdfQuiet() { H5Eset_auto2(H5E_DEFAULT, function_, data_); }

  private:
    /// HDF5's printer of errors before, restored at the end.
    H5E_auto2_t function_ = nullptr;
    void *data_ = nullptr;
};

/// The type of a number in memory; negative for kinds that are no numbers.
inline hid_t hdfNumberType(ElementKind kind) {
    const std::array<hid_t, elementKinds> types{
        H5I_INVALID_HID,   H5T_NATIVE_INT8,  H5T_NATIVE_UINT8,  H5T_NATIVE_INT16, H5T_NATIVE_UINT16, H5T_NATIVE_INT32,
        H5T_NATIVE_UINT32, H5T_NATIVE_INT64, H5T_NATIVE_UINT64, H5T_NATIVE_FLOAT, H5T_NATIVE_DOUBLE, H5I_INVALID_HID};
    return types[static_cast<std::size_t>(kind)];
}

/// Throws DataError if a call of HDF5 failed.
template <class Result>
Result requireHdf(Result result, const std::string &what) {
    DNDS_CHECK(result >= 0, DataError, "HDF5 fails with {}", what);
    return result;
}

} // namespace DNDS::Detail
