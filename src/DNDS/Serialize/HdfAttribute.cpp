#include "DNDS/Serialize/HdfAttribute.hpp"

#include <algorithm>
#include <array>

namespace DNDS::Detail {

namespace {

HdfObject copied(hid_t type) { return {H5Tcopy(type), H5Tclose, "a type"}; }

// Fixed length, filled up with zeros. HDF5 has no texts of length 0.
HdfObject textType(std::size_t size) {
    HdfObject type = copied(H5T_C_S1);
    requireHdf(H5Tset_size(type.get(), std::max<std::size_t>(1, size)), "a type");
    requireHdf(H5Tset_strpad(type.get(), H5T_STR_NULLPAD), "a type");
    requireHdf(H5Tset_cset(type.get(), H5T_CSET_UTF8), "a type");
    return type;
}

// One value is a scalar, as other programs expect.
void writeElements(hid_t object, const std::string &name, hid_t type, std::size_t count, const void *values) {
    const hsize_t size = count;
    const HdfObject space(count == 1 ? H5Screate(H5S_SCALAR) : H5Screate_simple(1, &size, nullptr), H5Sclose, name);
    const HdfObject attribute(H5Acreate2(object, name.c_str(), type, space.get(), H5P_DEFAULT, H5P_DEFAULT), H5Aclose,
                              name);
    if (count > 0)
        requireHdf(H5Awrite(attribute.get(), type, values), name);
}

template <class T>
std::vector<T> readNumbers(const HdfObject &attribute, const std::string &name, std::size_t count, hid_t type) {
    std::vector<T> numbers(count);
    if (count > 0)
        requireHdf(H5Aread(attribute.get(), type, numbers.data()), name);
    return numbers;
}

} // namespace

// Indexed by ElementKind: Opaque, the integers, the two floating-point types, Accumulator.
index scalarBytesOf(ElementKind kind) {
    constexpr std::array<index, elementKinds> bytes{1, 1, 1, 2, 2, 4, 4, 8, 8, 4, 8, 1};
    return bytes[static_cast<std::size_t>(kind)];
}

// Numbers in an element; kinds that HDF5 does not know are one opaque value.
index scalarsOf(ElementKind kind, index elementBytes) {
    return kind == ElementKind::Opaque || kind == ElementKind::Accumulator ? 1 : elementBytes / scalarBytesOf(kind);
}

// Of one number, or of a whole opaque element.
HdfObject hdfScalarType(ElementKind kind, index elementBytes) {
    if (const hid_t number = hdfNumberType(kind); number >= 0)
        return copied(number);
    return {H5Tcreate(H5T_OPAQUE, static_cast<std::size_t>(std::max<index>(1, elementBytes))), H5Tclose, "a type"};
}

void writeAttribute(hid_t object, const std::string &name, const CheckpointValue &value) {
    if (const auto *integers = std::get_if<std::vector<index>>(&value)) {
        writeElements(object, name, H5T_NATIVE_INT64, integers->size(), integers->data());
    } else if (const auto *numbers = std::get_if<std::vector<real>>(&value)) {
        writeElements(object, name, H5T_NATIVE_DOUBLE, numbers->size(), numbers->data());
    } else {
        const auto &text = std::get<std::string>(value);
        writeElements(object, name, textType(text.size()).get(), 1, text.data());
    }
}

// HDF5 converts numbers of other widths. Sizes are compared with the file's before memory is allocated for them.
// Damaged files may claim any size.
CheckpointValue readAttribute(hid_t object, const std::string &name) {
    const HdfObject attribute(H5Aopen(object, name.c_str(), H5P_DEFAULT), H5Aclose, name);
    const HdfObject space(H5Aget_space(attribute.get()), H5Sclose, name);
    const HdfObject type(H5Aget_type(attribute.get()), H5Tclose, name);
    const auto count = static_cast<std::size_t>(requireHdf(H5Sget_simple_extent_npoints(space.get()), name));
    const HdfObject file(H5Iget_file_id(object), H5Fclose, name);
    hsize_t fileBytes = 0;
    requireHdf(H5Fget_filesize(file.get(), &fileBytes), name);
    DNDS_CHECK(count <= fileBytes / sizeof(index) + 1 && H5Tget_size(type.get()) <= fileBytes, DataError,
               "attribute {} has more values than fit in the file", name);
    switch (H5Tget_class(type.get())) {
    case H5T_INTEGER:
        return readNumbers<index>(attribute, name, count, H5T_NATIVE_INT64);
    case H5T_FLOAT:
        return readNumbers<real>(attribute, name, count, H5T_NATIVE_DOUBLE);
    case H5T_STRING: {
        DNDS_CHECK(count == 1 && H5Tis_variable_str(type.get()) == 0, DataError, "attribute {} is not a single text",
                   name);
        std::string text(H5Tget_size(type.get()), '\0');
        requireHdf(H5Aread(attribute.get(), textType(text.size()).get(), text.data()), name);
        while (!text.empty() && text.back() == '\0')
            text.pop_back();
        return text;
    }
    default:
        throw DataError(fmt::format("attribute {} has an unknown type", name));
    }
}

} // namespace DNDS::Detail
