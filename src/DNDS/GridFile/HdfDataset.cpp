#include "DNDS/GridFile/Slab.hpp"

#include "DNDS/Base/Error.hpp"
#include "DNDS/GridFile/ElementConversion.hpp"
#include "DNDS/GridFile/HdfGrid.hpp"
#include "DNDS/GridFile/SlabChunks.hpp"
#include "DNDS/Mpi/Communicator.hpp"
#include "DNDS/Mpi/FailTogether.hpp"
#include "DNDS/Serialize/DurableFile.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <optional>

namespace DNDS {

namespace {

using Detail::HdfObject;
using Detail::HdfQuiet;

// A callback of HDF5, which must not throw: -1 ends the visit.
herr_t addDatasetName(hid_t, const char *name, const H5O_info_t *info, void *names) noexcept {
    const auto failure = attempt([&] {
        if (info->type == H5O_TYPE_DATASET)
            static_cast<std::vector<std::string> *>(names)->emplace_back(name);
    });
    return failure ? -1 : 0;
}

/// Aborts a conversion at the first value that the memory type cannot hold, and notes it; HDF5 would clamp it.
/// Infinities fit floating-point types, and integers may be rounded to those.
H5T_conv_ret_t noteUnfit(H5T_conv_except_t kind, hid_t from, hid_t to, void *source, void *, void *unfit) noexcept {
    // Reading into a narrower floating-point type implies rounding.
    if (kind == H5T_CONV_EXCEPT_PRECISION)
        return H5T_CONV_UNHANDLED;
    std::array<std::byte, 64> buffer{};
    const std::size_t bytes = H5Tget_size(from);
    double value = 0;
    if (bytes > 0 && bytes <= buffer.size()) {
        std::memcpy(buffer.data(), source, bytes);
        if (H5Tconvert(from, H5T_NATIVE_DOUBLE, 1, buffer.data(), nullptr, H5P_DEFAULT) >= 0)
            std::memcpy(&value, buffer.data(), sizeof value);
    }
    if (!std::isfinite(value) && H5Tget_class(to) == H5T_FLOAT)
        return H5T_CONV_UNHANDLED;
    *static_cast<std::optional<double> *>(unfit) = value;
    return H5T_CONV_ABORT;
}

/// An open dataset of a file that this rank reads independently.
struct OpenDataset {
    HdfObject file;
    HdfObject data;
    std::vector<index> shape;

    // Opens the file as such first, as HDF5 does not tell why it fails.
    OpenDataset(const std::string &path, const std::string &name) {
        (void)DurableFile::forReading(path); // reports why it cannot be opened
        file = HdfObject(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), H5Fclose);
        DNDS_CHECK(file.valid(), DataError, "{} is no HDF5 file, or is damaged or truncated", path);
        data = HdfObject(H5Dopen2(file.get(), name.c_str(), H5P_DEFAULT), H5Dclose);
        // The error lists what the file has instead.
        if (!data.valid()) {
            std::vector<std::string> names;
            H5Ovisit2(file.get(), H5_INDEX_NAME, H5_ITER_NATIVE, addDatasetName, &names, H5O_INFO_BASIC);
            throw ArgumentError(fmt::format("{} has no dataset '{}', but {}", path, name, fmt::join(names, ", ")));
        }
        const HdfObject type(H5Dget_type(data.get()), H5Tclose, "the type of " + name);
        const H5T_class_t kind = H5Tget_class(type.get());
        DNDS_CHECK(kind == H5T_INTEGER || kind == H5T_FLOAT, LayoutError,
                   "{}: dataset '{}' holds neither integers nor floating-point numbers", path, name);
        const HdfObject space(H5Dget_space(data.get()), H5Sclose, "the shape of " + name);
        std::vector<hsize_t> size(static_cast<std::size_t>(
            std::max(Detail::requireHdf(H5Sget_simple_extent_ndims(space.get()), "the shape of " + name), 0)));
        Detail::requireHdf(H5Sget_simple_extent_dims(space.get(), size.data(), nullptr), "the shape of " + name);
        shape.assign(size.begin(), size.end());
    }

    // In chunks of up to 64 MiB, converted by HDF5 and then spread over the slab's memory.
    // Memory: one buffer of 64 MiB; one request of HDF5 a chunk.
    void read(const Slab &slab, const std::string &what) const {
        const std::size_t width = Detail::bytesOf(slab.kind);
        const Detail::SlabChunks chunks(slab.count, Detail::requestBytes / static_cast<index>(width));
        std::vector<std::byte> buffer;
        const HdfObject fileSpace(H5Dget_space(data.get()), H5Sclose, what);
        std::optional<double> unfit;
        const HdfObject transfer(H5Pcreate(H5P_DATASET_XFER), H5Pclose, what);
        Detail::requireHdf(H5Pset_type_conv_cb(transfer.get(), noteUnfit, &unfit), what);
        for (index k = 0; k < chunks.size(); k++) {
            const Detail::SlabChunk chunk = chunks.at(k);
            const std::vector<index> first = Detail::fileStart(slab, chunk);
            const std::vector<hsize_t> start(first.begin(), first.end());
            const std::vector<hsize_t> count(chunk.count.begin(), chunk.count.end());
            const auto elements = static_cast<hsize_t>(chunk.elements);
            const HdfObject memorySpace(H5Screate_simple(1, &elements, nullptr), H5Sclose, what);
            if (!start.empty())
                Detail::requireHdf(
                    H5Sselect_hyperslab(fileSpace.get(), H5S_SELECT_SET, start.data(), nullptr, count.data(), nullptr),
                    what);
            buffer.resize(static_cast<std::size_t>(chunk.elements) * width);
            // An aborted conversion fails, too: the value is the better message.
            const herr_t result = H5Dread(data.get(), Detail::hdfNumberType(slab.kind), memorySpace.get(),
                                          fileSpace.get(), transfer.get(), buffer.data());
            DNDS_CHECK(!unfit, DataError, "{}: {} does not fit {}", what, *unfit, elementKindName(slab.kind));
            Detail::requireHdf(result, what);
            Detail::scatterChunk(slab, chunk, width, buffer.data());
        }
    }
};

} // namespace

std::vector<index> hdfDatasetShape(CommunicatorView comm, const std::string &path, const std::string &dataset) {
    std::vector<index> shape;
    // One rank reads: a shape is small.
    onRankZero(comm, [&] {
        const HdfQuiet quiet;
        shape = OpenDataset(path, dataset).shape;
    });
    broadcastList(comm, shape);
    return shape;
}

// Each rank opens the file by itself and reads its own boxes: no collective calls of HDF5, and slabs of any number.
void readHdfDataset(CommunicatorView comm, const std::string &path, const std::string &dataset,
                    std::span<const Slab> slabs) {
    comm.guarded([&] {
        const HdfQuiet quiet;
        const OpenDataset open(path, dataset);
        const std::string what = fmt::format("{}: dataset '{}'", path, dataset);
        for (const Slab &slab : slabs)
            checkSlab(slab, open.shape, what);
        for (const Slab &slab : slabs)
            if (slab.elements() > 0)
                open.read(slab, what);
    });
}

// Declarations are compared before the file is opened: HDF5 waits for ranks that do not call it.
// Cost: one comparison of a line of text, then as many collective writes as the rank with the most chunks needs.
void writeHdfDataset(CommunicatorView comm, const std::string &path, const std::string &dataset,
                     const std::vector<index> &shape, ElementKind kind, std::span<const WrittenSlab> slabs,
                     bool append) {
    std::vector<std::string> mine;
    comm.guarded([&] {
        mine.push_back(fmt::format("dataset '{}' of {} {}", dataset, fmt::join(shape, " x "), elementKindName(kind)));
        for (const index n : shape)
            DNDS_CHECK(n >= 0, ArgumentError, "{}: {}", path, mine.front());
    });
    requireSame(comm, mine, [&](std::size_t, const std::string *first) {
        throw ArgumentError(fmt::format("{}: this rank writes {}, rank 0 {}", path, mine.front(), *first));
    });
    comm.guarded([&] {
        for (const WrittenSlab &slab : slabs)
            checkSlab(slab, shape, fmt::format("{}: dataset '{}'", path, dataset), kind);
        if (comm.rank() == 0)
            (void)(append ? DurableFile::forWriting(path) : DurableFile::create(path, 0));
    });
    failTogether(comm, [&] {
        Detail::HdfSharedFile file(comm, path, append);
        writeHdfGrid(file, file.file(), dataset, shape, kind, slabs);
        file.close();
    });
}

} // namespace DNDS
