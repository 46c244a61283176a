/// @file VtkHdfFile.hpp
/// @brief Data sets of a VTKHDF file, from this library or another program. Part of VtkHdfReader and VtkHdfWriter.
#pragma once

#include "DNDS/Base/Error.hpp"
#include "DNDS/Serialize/HdfObject.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace DNDS::Geom::Detail {

using DNDS::Detail::HdfObject;
using DNDS::Detail::HdfQuiet;

/// A file that this rank reads independently: a damaged part that one rank reads cannot leave the others in a
/// collective call. Names are of the group VTKHDF. All is Local, and throws DataError, with the path, where the file
/// cannot be read.
class VtkHdfFile {
  public:
    explicit VtkHdfFile(std::string path) : path_(std::move(path)) {
        DNDS_CHECK(std::filesystem::exists(path_), DataError, "there is no file {}: give one that is complete", path_);
        bytes_ = static_cast<index>(std::filesystem::file_size(path_));
        const HdfQuiet quiet;
        const HdfObject access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
        H5Pset_fclose_degree(access.get(), H5F_CLOSE_STRONG);
        file_ = HdfObject(H5Fopen(path_.c_str(), H5F_ACC_RDONLY, access.get()), H5Fclose);
        DNDS_CHECK(file_.valid(), DataError, "{} cannot be opened as an HDF5 file", path_);
    }

    bool has(const std::string &name) const {
        const HdfQuiet quiet;
        return H5Lexists(file_.get(), fmt::format("VTKHDF/{}", name).c_str(), H5P_DEFAULT) > 0;
    }
    /// The number of rows of a data set, which must have this many columns.
    index rows(const std::string &name, index columns = 1) const { return open(name, columns).rows; }
    /// The number of columns of a data set.
    index columns(const std::string &name) const { return open(name, anyColumns).columns; }
    /// The names in a group; none without it.
    std::vector<std::string> names(const std::string &group) const {
        const HdfQuiet quiet;
        const HdfObject data(H5Gopen2(file_.get(), ("VTKHDF/" + group).c_str(), H5P_DEFAULT), H5Gclose);
        std::vector<std::string> result;
        const auto nameOf = [&](char *to, std::size_t size) {
            return H5Lget_name_by_idx(data.get(), ".", H5_INDEX_NAME, H5_ITER_INC, result.size(), to, size,
                                      H5P_DEFAULT);
        };
        for (ssize_t length = 0; data.valid() && (length = nameOf(nullptr, 0)) >= 0;) {
            std::string name(static_cast<std::size_t>(length), '\0');
            nameOf(name.data(), name.size() + 1);
            result.push_back(std::move(name));
        }
        return result;
    }

    /// Rows [first, first + count) of a data set.
    template <class T>
    std::vector<T> read(const std::string &name, index first, index count, index columns = 1) const {
        const HdfQuiet quiet;
        const Table table = open(name, columns);
        if (first < 0 || count < 0 || first + count > table.rows)
            fail(name, fmt::format("has {} rows, and {} are needed", table.rows, first + count));
        std::vector<T> values(static_cast<std::size_t>(count * columns));
        if (count == 0)
            return values;
        const std::array<hsize_t, 2> start{static_cast<hsize_t>(first), 0};
        const std::array<hsize_t, 2> size{static_cast<hsize_t>(count), static_cast<hsize_t>(columns)};
        const HdfObject space(H5Dget_space(table.data.get()), H5Sclose, name);
        const HdfObject memory(H5Screate_simple(columns == 1 ? 1 : 2, size.data(), nullptr), H5Sclose, name);
        const hid_t type = DNDS::Detail::hdfNumberType(elementKindOf<T>());
        if (H5Sselect_hyperslab(space.get(), H5S_SELECT_SET, start.data(), nullptr, size.data(), nullptr) < 0 ||
            H5Dread(table.data.get(), type, memory.get(), space.get(), H5P_DEFAULT, values.data()) < 0)
            fail(name, "cannot be read: the file is damaged");
        return values;
    }

    /// The times of all steps.
    std::vector<real> times() const {
        return has("Steps") ? read<real>("Steps/Values", 0, rows("Steps/Values")) : std::vector<real>();
    }
    /// The attribute Type; "" without one.
    std::string type() const {
        const HdfQuiet quiet;
        const HdfObject attribute(H5Aopen_by_name(file_.get(), "VTKHDF", "Type", H5P_DEFAULT, H5P_DEFAULT), H5Aclose);
        const HdfObject kind(attribute.valid() ? H5Aget_type(attribute.get()) : -1, H5Tclose);
        const HdfObject space(attribute.valid() ? H5Aget_space(attribute.get()) : -1, H5Sclose);
        if (!kind.valid() || !space.valid() || H5Tget_class(kind.get()) != H5T_STRING ||
            H5Sget_simple_extent_npoints(space.get()) != 1)
            return "";
        if (H5Tis_variable_str(kind.get()) > 0) {
            char *text = nullptr;
            std::string result = H5Aread(attribute.get(), kind.get(), &text) >= 0 && text != nullptr ? text : "";
            H5free_memory(text);
            return result;
        }
        std::string text(std::min<std::size_t>(H5Tget_size(kind.get()), 256), '\0');
        if (H5Tget_size(kind.get()) != text.size() || H5Aread(attribute.get(), kind.get(), text.data()) < 0)
            return "";
        return text.substr(0, text.find('\0'));
    }

    [[noreturn]] void fail(std::string_view name, const std::string &message) const {
        throw DataError(fmt::format("{}: VTKHDF/{} {}", path_, name, message));
    }

  private:
    static constexpr index anyColumns = -1;
    /// The best ratio of HDF5's compressors: a larger data set cannot be in the file.
    static constexpr hsize_t maxCompression = 1100;

    /// An open data set and its size; vectors are tables of one column.
    struct Table {
        HdfObject data;
        index rows;
        index columns;
    };

    /// Opens a data set of numbers and checks that the file can hold it: HDF5 1.10 reads beyond its buffers where a
    /// damaged file reserves less room than the extent needs.
    Table open(const std::string &name, index columns) const {
        const HdfQuiet quiet;
        HdfObject data(H5Dopen2(file_.get(), fmt::format("VTKHDF/{}", name).c_str(), H5P_DEFAULT), H5Dclose);
        if (!data.valid())
            fail(name, "is not there or cannot be opened");
        const HdfObject space(H5Dget_space(data.get()), H5Sclose, name);
        const HdfObject type(H5Dget_type(data.get()), H5Tclose, name);
        const HdfObject creation(H5Dget_create_plist(data.get()), H5Pclose, name);
        std::array<hsize_t, 2> size{0, 1};
        const int dimensions = H5Sget_simple_extent_ndims(space.get());
        if (dimensions < 1 || dimensions > 2 || H5Sget_simple_extent_dims(space.get(), size.data(), nullptr) < 0 ||
            size[1] == 0 || (columns != anyColumns && size[1] != static_cast<hsize_t>(columns)))
            fail(name, columns == anyColumns ? "is no table" : fmt::format("has not {} columns", columns));
        const H5T_class_t kind = H5Tget_class(type.get());
        const H5D_layout_t layout = H5Pget_layout(creation.get());
        if ((kind != H5T_INTEGER && kind != H5T_FLOAT) || layout == H5D_VIRTUAL || layout < 0 ||
            H5Pget_external_count(creation.get()) != 0)
            fail(name, "has no numbers in this file");
        const auto most = static_cast<hsize_t>(bytes_) * maxCompression;
        const hsize_t width = H5Tget_size(type.get());
        const hsize_t row = size[1] * width;
        if (size[1] > most / width || size[0] > most / row ||
            (size[0] > 0 && H5Dget_storage_size(data.get()) < (layout == H5D_CHUNKED ? 1 : size[0] * row)))
            fail(name, fmt::format("has {} rows, which are not all in the file", size[0]));
        return {std::move(data), static_cast<index>(size[0]), static_cast<index>(size[1])};
    }

    std::string path_;
    index bytes_ = 0;
    HdfObject file_;
};

} // namespace DNDS::Geom::Detail
