#include "DNDS/Geom/Vtk/HdfOutput.hpp"

#include <algorithm>
#include <array>
#include <vector>

namespace DNDS::Geom::Detail {

namespace {

using DNDS::Detail::HdfQuiet;

HdfObject spaceOf(const HdfRows &rows, index length, bool growing) {
    const std::array<hsize_t, 2> size{static_cast<hsize_t>(length), static_cast<hsize_t>(rows.columns)};
    const std::array<hsize_t, 2> most{H5S_UNLIMITED, static_cast<hsize_t>(rows.columns)};
    return {H5Screate_simple(rows.columns > 0 ? 2 : 1, size.data(), growing ? most.data() : nullptr), H5Sclose};
}

} // namespace

HdfOutput::HdfOutput(CommunicatorView comm, std::string path) : comm_(comm), path_(std::move(path)) {
    const HdfQuiet quiet;
    HdfObject access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
    comm_.beforeCollective(); // HDF5 duplicates the communicator
    need(H5Pset_fapl_mpio(access.get(), comm_.handle(), MPI_INFO_NULL), "by MPI");
    file_ = HdfObject(H5Fcreate(path_.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access.get()), H5Fclose);
    need(file_.get(), "the file");
}

HdfObject HdfOutput::makeGroup(hid_t parent, const char *name) {
    const HdfQuiet quiet;
    comm_.beforeCollective();
    HdfObject group(H5Gcreate2(parent, name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT), H5Gclose);
    need(group.get(), name);
    return group;
}

void HdfOutput::writeText(hid_t object, const char *name, const std::string &text) {
    const HdfQuiet quiet;
    comm_.beforeCollective();
    HdfObject type(H5Tcopy(H5T_C_S1), H5Tclose);
    need(H5Tset_size(type.get(), text.size()), name);
    HdfObject space(H5Screate(H5S_SCALAR), H5Sclose);
    HdfObject attribute(H5Acreate2(object, name, type.get(), space.get(), H5P_DEFAULT, H5P_DEFAULT), H5Aclose);
    need(attribute.get(), name);
    need(H5Awrite(attribute.get(), type.get(), text.data()), name);
}

void HdfOutput::writeIntegers(hid_t object, const char *name, const std::vector<index> &values) {
    const HdfQuiet quiet;
    comm_.beforeCollective();
    const hsize_t size = values.size();
    HdfObject space(size == 1 ? H5Screate(H5S_SCALAR) : H5Screate_simple(1, &size, nullptr), H5Sclose);
    HdfObject attribute(H5Acreate2(object, name, H5T_NATIVE_INT64, space.get(), H5P_DEFAULT, H5P_DEFAULT), H5Aclose);
    need(attribute.get(), name);
    need(H5Awrite(attribute.get(), H5T_NATIVE_INT64, values.data()), name);
}

void HdfOutput::writeValue(hid_t parent, const std::string &name, index value) {
    writeRows(parent, name, HdfRows{0, 1, 0, comm_.rank() == 0 ? 1 : 0}, &value);
}

HdfObject HdfOutput::makeDataset(hid_t parent, const std::string &name, hid_t type, const HdfRows &rows, index length,
                                 bool growing) {
    const HdfQuiet quiet;
    comm_.beforeCollective();
    HdfObject properties(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
    H5Pset_obj_track_times(properties.get(), false); // the same content, the same file
    H5Pset_fill_time(properties.get(), H5D_FILL_TIME_NEVER);
    if (growing) {
        constexpr index longestChunk = 1 << 16;
        const std::array<hsize_t, 2> chunk{static_cast<hsize_t>(std::clamp<index>(rows.global, 1, longestChunk)),
                                           static_cast<hsize_t>(rows.columns)};
        need(H5Pset_chunk(properties.get(), rows.columns > 0 ? 2 : 1, chunk.data()), name);
    }
    HdfObject space = spaceOf(rows, length, growing);
    HdfObject data(H5Dcreate2(parent, name.c_str(), type, space.get(), H5P_DEFAULT, properties.get(), H5P_DEFAULT),
                   H5Dclose);
    need(data.get(), name);
    return data;
}

void HdfOutput::grow(hid_t data, const std::string &name, const HdfRows &rows, index length) {
    const HdfQuiet quiet;
    comm_.beforeCollective();
    const std::array<hsize_t, 2> size{static_cast<hsize_t>(length), static_cast<hsize_t>(rows.columns)};
    need(H5Dset_extent(data, size.data()), name);
}

void HdfOutput::write(hid_t data, const std::string &name, hid_t type, const HdfRows &rows, index before,
                      const void *values) {
    const HdfQuiet quiet;
    comm_.beforeCollective();
    HdfObject fileSpace(H5Dget_space(data), H5Sclose);
    HdfObject memorySpace = spaceOf(rows, rows.own, false);
    if (rows.own > 0) {
        const std::array<hsize_t, 2> first{static_cast<hsize_t>(before + rows.first), 0};
        const std::array<hsize_t, 2> count{static_cast<hsize_t>(rows.own), static_cast<hsize_t>(rows.columns)};
        H5Sselect_hyperslab(fileSpace.get(), H5S_SELECT_SET, first.data(), nullptr, count.data(), nullptr);
    } else {
        H5Sselect_none(fileSpace.get());
        H5Sselect_none(memorySpace.get());
    }
    HdfObject transfer(H5Pcreate(H5P_DATASET_XFER), H5Pclose);
    H5Pset_dxpl_mpio(transfer.get(), H5FD_MPIO_COLLECTIVE);
    need(H5Dwrite(data, type, memorySpace.get(), fileSpace.get(), transfer.get(), values), name);
}

void HdfOutput::close() {
    const HdfQuiet quiet;
    comm_.beforeCollective();
    need(file_.close(), "the end of the file");
}

} // namespace DNDS::Geom::Detail
