/// @file HdfSharedFile.hpp
/// @brief An HDF5 file that all ranks write: groups, attributes, boxes of datasets. Part of VtkHdfWriter, VtkGridFile
/// and HdfDataset.
#pragma once

#include "DNDS/Base/Types.hpp"
#include "DNDS/Mpi/Communicator.hpp"
#include "DNDS/Serialize/HdfObject.hpp"

#include <iterator>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace DNDS::Detail {

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
    /// Writes this rank's box of a dataset, which may be empty; no dimensions: a scalar.
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
