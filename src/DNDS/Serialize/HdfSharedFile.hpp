/// @file HdfSharedFile.hpp
/// @brief An HDF5 file that all ranks write: groups, attributes, boxes of datasets, tables. Part of VtkHdfWriter,
/// VtkGridFile and HdfDataset.
#pragma once

#include "DNDS/Base/Types.hpp"
#include "DNDS/Mpi/Communicator.hpp"
#include "DNDS/Serialize/HdfObject.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace DNDS::Detail {

/// Rows of a table: their width, their number on all ranks, and this rank's rows.
struct HdfRows {
    index columns = 0; ///< 0: the dataset has one dimension
    index global = 0;
    index first = 0;
    index own = 0;

    /// Of the dataset. Local.
    std::size_t dimensions() const noexcept { return columns > 0 ? 2 : 1; }
};

/// A file that all ranks write. All functions are Collective and throw DataError on all ranks if one fails; call them
/// in `failTogether`, since ranks wait for each other within HDF5. HDF5 prints nothing meanwhile.
class HdfSharedFile {
  public:
    /// A new file, or an existing one to add to.
    HdfSharedFile(CommunicatorView comm, std::string path, bool append) : comm_(comm), path_(std::move(path)) {
        const HdfQuiet quiet;
        HdfObject access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
        comm_.beforeCollective(); // HDF5 duplicates the communicator
        require(H5Pset_fapl_mpio(access.get(), comm_.handle(), MPI_INFO_NULL), "by MPI");
        file_ = HdfObject(append ? H5Fopen(path_.c_str(), H5F_ACC_RDWR, access.get())
                                 : H5Fcreate(path_.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access.get()),
                          H5Fclose);
        require(file_.get(), "the file");
    }

    hid_t file() const noexcept { return file_.get(); }
    CommunicatorView comm() const noexcept { return comm_; }

    /// A group of a name that does not exist yet.
    HdfObject makeGroup(hid_t parent, const char *name) {
        const HdfQuiet quiet;
        comm_.beforeCollective();
        HdfObject group(H5Gcreate2(parent, name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT), H5Gclose);
        require(group.get(), name);
        return group;
    }
    /// An attribute of one text, which must not be empty.
    void writeText(hid_t object, const char *name, std::string_view text) {
        const HdfQuiet quiet;
        comm_.beforeCollective();
        HdfObject type(H5Tcopy(H5T_C_S1), H5Tclose);
        require(H5Tset_size(type.get(), text.size()), name);
        HdfObject space(H5Screate(H5S_SCALAR), H5Sclose);
        writeAttribute(object, name, type.get(), space, text.data());
    }
    /// A dataset of `size`; `chunk` > 0: its first dimension may grow, by chunks of that many rows, and it has at most
    /// two. No times and no fill values are stored: equal contents make equal files.
    HdfObject makeDataset(hid_t parent, const std::string &name, hid_t type, std::span<const hsize_t> size,
                          hsize_t chunk = 0, hid_t links = H5P_DEFAULT) {
        const HdfQuiet quiet;
        comm_.beforeCollective();
        HdfObject properties(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
        H5Pset_obj_track_times(properties.get(), false);
        H5Pset_fill_time(properties.get(), H5D_FILL_TIME_NEVER);
        const int dimensions = static_cast<int>(size.size());
        const hsize_t last = size.empty() ? 0 : size.back();
        const std::array<hsize_t, 2> chunks{chunk, last};
        const std::array<hsize_t, 2> most{H5S_UNLIMITED, last};
        if (chunk > 0)
            require(H5Pset_chunk(properties.get(), dimensions, chunks.data()), name);
        HdfObject space(size.empty() ? H5Screate(H5S_SCALAR)
                                     : H5Screate_simple(dimensions, size.data(), chunk > 0 ? most.data() : nullptr),
                        H5Sclose);
        HdfObject data(H5Dcreate2(parent, name.c_str(), type, space.get(), links, properties.get(), H5P_DEFAULT),
                       H5Dclose);
        require(data.get(), name);
        return data;
    }
    /// A table of all ranks' rows.
    template <class T>
    void writeRows(hid_t parent, const std::string &name, const HdfRows &rows, const T *values) {
        const hid_t type = hdfNumberType(elementKindOf<T>());
        const std::array size{static_cast<hsize_t>(rows.global), static_cast<hsize_t>(rows.columns)};
        HdfObject data = makeDataset(parent, name, type, std::span(size).first(rows.dimensions()));
        writeRowsAfter(data.get(), name, type, rows, 0, values);
    }
    /// A table that grows by `appendRows`, by chunks of `rows.global` rows, at most 65536.
    template <class T>
    HdfObject makeGrowing(hid_t parent, const std::string &name, const HdfRows &rows) {
        constexpr index longestChunk = 1 << 16;
        const std::array size{hsize_t{0}, static_cast<hsize_t>(rows.columns)};
        return makeDataset(parent, name, hdfNumberType(elementKindOf<T>()), std::span(size).first(rows.dimensions()),
                           static_cast<hsize_t>(std::clamp<index>(rows.global, 1, longestChunk)));
    }
    /// Appends `rows.global` rows to a table of `before` rows.
    template <class T>
    void appendRows(const HdfObject &data, const std::string &name, const HdfRows &rows, index before,
                    const T *values) {
        const HdfQuiet quiet;
        comm_.beforeCollective();
        const std::array size{static_cast<hsize_t>(before + rows.global), static_cast<hsize_t>(rows.columns)};
        require(H5Dset_extent(data.get(), size.data()), name);
        writeRowsAfter(data.get(), name, hdfNumberType(elementKindOf<T>()), rows, before, values);
    }
    /// Writes this rank's box of a dataset, which may be empty; no dimensions: a scalar.
    /// Ranks without elements take part with empty selections. MPI-IO may merge the boxes of all ranks into large
    /// writes, by two-phase I/O (Thakur, Gropp and Lusk, Data sieving and collective I/O in ROMIO, Frontiers 1999).
    void writeBox(hid_t data, std::string_view name, hid_t type, std::span<const hsize_t> first,
                  std::span<const hsize_t> count, const void *values) {
        const HdfQuiet quiet;
        comm_.beforeCollective();
        HdfObject fileSpace(H5Dget_space(data), H5Sclose);
        hsize_t elements = 1;
        for (const hsize_t n : count)
            elements *= n;
        const hsize_t room = elements > 0 ? elements : 1;
        HdfObject memorySpace(H5Screate_simple(1, &room, nullptr), H5Sclose);
        if (elements == 0) {
            H5Sselect_none(fileSpace.get());
            H5Sselect_none(memorySpace.get());
        } else if (!first.empty()) {
            H5Sselect_hyperslab(fileSpace.get(), H5S_SELECT_SET, first.data(), nullptr, count.data(), nullptr);
        }
        HdfObject transfer(H5Pcreate(H5P_DATASET_XFER), H5Pclose);
        H5Pset_dxpl_mpio(transfer.get(), H5FD_MPIO_COLLECTIVE);
        require(H5Dwrite(data, type, memorySpace.get(), fileSpace.get(), transfer.get(), values), name);
    }
    /// An attribute of integers or reals: one number is a scalar.
    template <class Numbers>
    void writeNumbers(hid_t object, const char *name, const Numbers &numbers) {
        const HdfQuiet quiet;
        comm_.beforeCollective();
        const hsize_t count = std::size(numbers);
        HdfObject space(count == 1 ? H5Screate(H5S_SCALAR) : H5Screate_simple(1, &count, nullptr), H5Sclose);
        const hid_t type = hdfNumberType(elementKindOf<std::ranges::range_value_t<Numbers>>());
        writeAttribute(object, name, type, space, std::data(numbers));
    }
    /// Completes the file; objects in it must be closed before.
    void close() {
        const HdfQuiet quiet;
        comm_.beforeCollective();
        require(file_.close(), "the end of the file");
    }

    /// Checks the result of an HDF5 call, negative on failure, on all ranks. `what` is not a string, which would be
    /// made before the call and might fail on one rank while others wait within it.
    template <class Result>
    Result require(Result result, std::string_view what) const {
        comm_.guarded([&] { DNDS_CHECK(result >= 0, DataError, "{}: HDF5 cannot write {}", path_, what); });
        return result;
    }

  private:
    /// This rank's rows, after the `before` rows of earlier steps.
    void writeRowsAfter(hid_t data, std::string_view name, hid_t type, const HdfRows &rows, index before,
                        const void *values) {
        const std::array first{static_cast<hsize_t>(before + rows.first), hsize_t{0}};
        const std::array count{static_cast<hsize_t>(rows.own), static_cast<hsize_t>(rows.columns)};
        writeBox(data, name, type, std::span(first).first(rows.dimensions()), std::span(count).first(rows.dimensions()),
                 values);
    }
    void writeAttribute(hid_t object, const char *name, hid_t type, const HdfObject &space, const void *values) {
        HdfObject attribute(H5Acreate2(object, name, type, space.get(), H5P_DEFAULT, H5P_DEFAULT), H5Aclose);
        require(attribute.get(), name);
        require(H5Awrite(attribute.get(), type, values), name);
    }

    CommunicatorView comm_;
    std::string path_;
    /// Open from the constructor to `close`, which is collective: the destructor alone must not be relied on.
    HdfObject file_;
};

} // namespace DNDS::Detail
