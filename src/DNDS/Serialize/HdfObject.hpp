/// @file HdfObject.hpp
/// @brief Owners of HDF5 handles, and attributes by type. Part of Checkpoint.
#pragma once

#include "DNDS/Base/Error.hpp"
#include "DNDS/Serialize/CheckpointContent.hpp"

#include <hdf5.h>

#include <string>
#include <utility>

namespace DNDS::Detail {

/// Owns a handle. Throws DataError where HDF5 gave none.
class HdfObject {
  public:
    using Close = herr_t (*)(hid_t);

    HdfObject(hid_t id, Close closeWith, const std::string &what) : id_(id), close_(closeWith) {
        DNDS_CHECK(id >= 0, DataError, "HDF5 fails with {}", what);
    }
    HdfObject(HdfObject &&other) noexcept : id_(std::exchange(other.id_, H5I_INVALID_HID)), close_(other.close_) {}
    HdfObject(const HdfObject &) = delete;
    HdfObject &operator=(const HdfObject &) = delete;
    HdfObject &operator=(HdfObject &&) = delete;
    ~HdfObject() { (void)close(); }

    hid_t get() const noexcept { return id_; }
    herr_t close() noexcept {
        const hid_t id = std::exchange(id_, H5I_INVALID_HID);
        return id >= 0 ? close_(id) : 0;
    }

  private:
    hid_t id_;
    Close close_;
};

/// Keeps HDF5 from printing what is thrown as an exception anyway.
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
    H5E_auto2_t function_ = nullptr;
    void *data_ = nullptr;
};

/// Throws DataError where a call of HDF5 failed.
template <class Result>
Result hdfNeed(Result result, const std::string &what) {
    DNDS_CHECK(result >= 0, DataError, "HDF5 fails with {}", what);
    return result;
}

/// The type of an element's scalars in memory and in the file, or of opaque elements.
HdfObject hdfScalarType(ElementKind kind, index elementBytes);
/// Scalars in an element; 1 for opaque ones.
index scalarsOf(ElementKind kind, index elementBytes);

void writeAttribute(hid_t object, const std::string &name, const CheckpointValue &value);
CheckpointValue readAttribute(hid_t object, const std::string &name);
/// The same, of a known type.
template <class T>
T readAttributeAs(hid_t object, const std::string &name) {
    const CheckpointValue value = readAttribute(object, name);
    if constexpr (std::is_same_v<T, index>) {
        const auto *list = std::get_if<std::vector<index>>(&value);
        DNDS_CHECK(list != nullptr && list->size() == 1, DataError, "attribute {} is no integer", name);
        return list->front();
    } else {
        const auto *typed = std::get_if<T>(&value);
        DNDS_CHECK(typed != nullptr, DataError, "attribute {} has another type", name);
        return *typed;
    }
}

} // namespace DNDS::Detail
