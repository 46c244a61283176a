/// @file HdfAttribute.hpp
/// @brief Types of elements and attributes by type. Part of Checkpoint.
#pragma once

#include "DNDS/Serialize/Checkpoint.hpp"
#include "DNDS/Serialize/HdfObject.hpp"

#include <string>

namespace DNDS::Detail {

/// The type of an element's scalars in memory and in the file, or of opaque elements.
HdfObject hdfScalarType(ElementKind kind, index elementBytes);
/// Bytes of an element's scalars; 1 for opaque ones.
index scalarBytesOf(ElementKind kind);
/// Scalars in an element; 1 for opaque ones.
index scalarsOf(ElementKind kind, index elementBytes);

/// Attributes of a group or file, by the type of the value. Throw DataError.
void writeAttribute(hid_t object, const std::string &name, const CheckpointValue &value);
CheckpointValue readAttribute(hid_t object, const std::string &name);
/// The same, for a known type.
template <class T>
T readAttributeAs(hid_t object, const std::string &name) {
    const CheckpointValue value = readAttribute(object, name);
    if constexpr (std::is_same_v<T, index>) {
        const auto *list = std::get_if<std::vector<index>>(&value);
        DNDS_CHECK(list != nullptr && list->size() == 1, DataError, "attribute {} is not an integer", name);
        return list->front();
    } else {
        const auto *typed = std::get_if<T>(&value);
        DNDS_CHECK(typed != nullptr, DataError, "attribute {} has another type", name);
        return *typed;
    }
}

} // namespace DNDS::Detail
