#include "DNDS/Geom/Vtk/VtkHdfSteps.hpp"

#include "DNDS/Base/Error.hpp"

#include <algorithm>
#include <array>
#include <filesystem>

namespace DNDS::Geom::Detail {

namespace {

using DNDS::Detail::HdfObject;
using DNDS::Detail::HdfQuiet;

// A callback of HDF5, which must not throw: -1 ends the iteration.
herr_t addLinkName(hid_t, const char *name, const H5L_info_t *, void *names) noexcept {
    return attempt([&] { static_cast<std::vector<std::string> *>(names)->emplace_back(name); }) ? -1 : 0;
}

} // namespace

/// Reads sizes and times only; rows follow step by step.
/// Every rank opens the file read-only and for itself; no call is collective.
VtkHdfSteps::VtkHdfSteps(std::string path) : path_(std::move(path)) {
    DNDS_CHECK(std::filesystem::exists(path_), DataError,
               "there is no file {}: give the file of the series to go on with, or begin one without continueFrom",
               path_);
    const HdfQuiet quiet;
    file_ = HdfObject(H5Fopen(path_.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), H5Fclose);
    DNDS_CHECK(file_.valid(), DataError, "{} cannot be opened as an HDF5 file", path_);
    // Sizes of the mesh, by which later reads are bounded.
    points_ = shape("VTKHDF/Points").front();
    cells_ = shape("VTKHDF/Types").front();
    if (H5Lexists(file_.get(), "VTKHDF/Steps", H5P_DEFAULT) > 0)
        times_ = rows("VTKHDF/Steps/Values", 1, 0, shape("VTKHDF/Steps/Values").front());
}

// [rows], or [rows, columns].
std::vector<index> VtkHdfSteps::shape(const std::string &dataset) const {
    const HdfQuiet quiet;
    const HdfObject data(H5Dopen2(file_.get(), dataset.c_str(), H5P_DEFAULT), H5Dclose);
    DNDS_CHECK(data.valid(), DataError, "{} has no '{}': it was not written by VtkHdfWriter", path_, dataset);
    const HdfObject space(H5Dget_space(data.get()), H5Sclose, dataset);
    std::array<hsize_t, 2> size{};
    const int dimensions = H5Sget_simple_extent_ndims(space.get());
    DNDS_CHECK(dimensions == 1 || dimensions == 2, DataError, "{}: '{}' has {} dimensions", path_, dataset, dimensions);
    DNDS::Detail::requireHdf(H5Sget_simple_extent_dims(space.get(), size.data(), nullptr), dataset);
    std::vector<index> shape{static_cast<index>(size[0])};
    if (dimensions == 2)
        shape.push_back(static_cast<index>(size[1]));
    return shape;
}

// Compares the shape with what is wanted first, as the file may be of another program.
void VtkHdfSteps::read(const std::string &dataset, hid_t type, int components, index first, index count,
                       void *values) const {
    const HdfQuiet quiet;
    const std::vector<index> size = shape(dataset);
    DNDS_CHECK((size.size() == 1 ? 1 : size[1]) == components && first + count <= size[0], DataError,
               "{}: '{}' has {} rows of {} numbers, and not {} of {}: it was not written by VtkHdfWriter", path_,
               dataset, size[0], size.size() == 1 ? 1 : size[1], first + count, components);
    if (count == 0)
        return;
    const HdfObject data(H5Dopen2(file_.get(), dataset.c_str(), H5P_DEFAULT), H5Dclose, dataset);
    const HdfObject space(H5Dget_space(data.get()), H5Sclose, dataset);
    const std::array<hsize_t, 2> start{static_cast<hsize_t>(first), 0};
    const std::array<hsize_t, 2> wanted{static_cast<hsize_t>(count), static_cast<hsize_t>(components)};
    const auto dimensions = static_cast<int>(size.size());
    const HdfObject memory(H5Screate_simple(dimensions, wanted.data(), nullptr), H5Sclose, dataset);
    DNDS::Detail::requireHdf(
        H5Sselect_hyperslab(space.get(), H5S_SELECT_SET, start.data(), nullptr, wanted.data(), nullptr), dataset);
    const herr_t result = H5Dread(data.get(), type, memory.get(), space.get(), H5P_DEFAULT, values);
    DNDS_CHECK(result >= 0, DataError, "{}: '{}' cannot be read: the file is damaged", path_, dataset);
}

// Independent reads: each rank takes its own rows.
std::vector<real> VtkHdfSteps::rows(const std::string &dataset, int components, index first, index count) const {
    std::vector<real> values(toSize(count * components));
    read(dataset, H5T_NATIVE_DOUBLE, components, first, count, values.data());
    return values;
}

std::vector<std::uint8_t> VtkHdfSteps::cellTypes(index first, index count) const {
    std::vector<std::uint8_t> types(toSize(count));
    read("VTKHDF/Types", H5T_NATIVE_UINT8, 1, first, count, types.data());
    return types;
}

// O(fields) look-ups, in the order of names: the same on all ranks.
std::vector<VtkHdfSteps::Field> VtkHdfSteps::fields(const std::string &group) const {
    std::vector<std::string> names;
    {
        const HdfQuiet quiet;
        const HdfObject data(H5Gopen2(file_.get(), ("VTKHDF/" + group).c_str(), H5P_DEFAULT), H5Gclose);
        DNDS_CHECK(data.valid() &&
                       H5Literate(data.get(), H5_INDEX_NAME, H5_ITER_INC, nullptr, addLinkName, &names) >= 0,
                   DataError, "{} has no '{}': it was not written by VtkHdfWriter", path_, group);
    }
    std::vector<Field> fields;
    // The number of columns is the number of components.
    for (const std::string &name : names) {
        const std::vector<index> size = shape(fmt::format("VTKHDF/{}/{}", group, name));
        fields.push_back({name, size.size() == 1 ? 1 : static_cast<int>(size[1])});
    }
    return fields;
}

/// Steps follow each other in a data set, with `global` rows each.
std::vector<real> VtkHdfSteps::values(const std::string &group, const Field &field, index step, index global,
                                      index first, index count) const {
    return rows(fmt::format("VTKHDF/{}/{}", group, field.name), field.components, step * global + first, count);
}

} // namespace DNDS::Geom::Detail
