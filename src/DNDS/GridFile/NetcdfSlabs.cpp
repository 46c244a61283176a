#include "DNDS/GridFile/NetcdfWriterFile.hpp"

#include "DNDS/GridFile/ElementConversion.hpp"
#include "DNDS/GridFile/NetcdfSpace.hpp"
#include "DNDS/Mpi/FailTogether.hpp"
#include "DNDS/Serialize/DurableFile.hpp"

#include <netcdf_par.h>

#include <algorithm>
#include <array>
#include <utility>

namespace DNDS {

using Detail::endless;
using Detail::SlabChunk;
using Detail::WritePlan;

namespace {

constexpr index maxCdf2Records = (index{1} << 32) - 2;

} // namespace

// Checks that need no other rank. Along unlimited dimensions boxes may end anywhere.
void NetcdfWriter::File::prepare(std::string_view name, std::span<const WrittenSlab> slabs, bool raw,
                                 WritePlan &plan) const {
    plan.variable = &content.variable(name, path);
    plan.what = fmt::format("{}: '{}'", path, name);
    DNDS_CHECK(plan.variable->kind != ElementKind::Opaque, LayoutError, "{} holds {}, not numbers", plan.what,
               plan.variable->type);
    plan.place = places[static_cast<std::size_t>(plan.variable - content.variables.data())];
    plan.packing = Detail::packingOf(*plan.variable);
    plan.raw = raw;
    plan.elementBytes = Detail::bytesOf(plan.variable->kind);
    std::vector<index> shape;
    for (const NetcdfDimension &dimension : plan.variable->dimensions)
        shape.push_back(dimension.unlimited ? endless : dimension.length);
    // All boxes are checked before the first is written.
    for (const WrittenSlab &slab : slabs) {
        checkSlab(slab, shape, plan.what, raw ? plan.variable->kind : ElementKind::Opaque);
        if (!raw)
            Detail::checkPacking(plan.packing, slab.kind, plan.what);
    }
    DNDS_CHECK(!shape.empty() || comm.rank() != 0 || slabs.size() == 1, LayoutError,
               "{} is one number, which rank 0 writes", plan.what);
}

/// Writes a chunk, or, without a slab or after a failure, takes part without elements. Never throws between the ranks'
/// collective calls: errors are kept in `failure`, and `nc_put_vara` is called anyway.
int NetcdfWriter::File::put(const WritePlan &plan, const WrittenSlab *slab, const SlabChunk &chunk,
                            std::exception_ptr &failure, std::vector<std::byte> &buffer) const {
    const std::size_t dims = plan.variable->dimensions.size();
    std::vector<std::size_t> start(dims, 0);
    std::vector<std::size_t> count(dims, 0);
    if (slab != nullptr && !failure) {
        attempt(failure, [&] {
            buffer.resize(static_cast<std::size_t>(chunk.elements) * plan.elementBytes);
            plan.numbersOf(*slab, chunk, buffer.data());
            const std::vector<index> first = fileStart(*slab, chunk);
            std::copy(first.begin(), first.end(), start.begin());
            std::copy(chunk.count.begin(), chunk.count.end(), count.begin());
        });
    }
    if (buffer.empty())
        buffer.resize(sizeof(real)); // a valid address for ranks that write nothing
    return nc_put_vara(plan.place.group, plan.place.variable, start.data(), count.data(), buffer.data());
}

// All ranks write the same number, since the call is collective.
void NetcdfWriter::File::putScalar(const WritePlan &plan, std::span<const WrittenSlab> slabs) {
    Detail::PackedNumber number{};
    onRankZero(comm, [&] { plan.numbersOf(slabs[0], SlabChunk{{}, {}, 1}, number.data()); });
    comm.broadcast(number);
    const int status = nc_put_var(plan.place.group, plan.place.variable, number.data());
    comm.guarded([&] { Detail::requireNetcdf(status, path, fmt::format("write '{}'", plan.variable->name)); });
}

// As many collective writes as the busiest rank has chunks. Failures are kept until the end: the other ranks wait in
// the library.
// Memory: one buffer of 64 MiB. One reduction for the rounds, one collective write a round, one agreement at the end.
void NetcdfWriter::File::putAll(const WritePlan &plan, std::span<const WrittenSlab> slabs) {
    const auto chunks = Detail::chunksOf(slabs, plan.elementBytes);
    // Collective writes need the same number of calls on all ranks.
    const index rounds = comm.allReduce(static_cast<index>(chunks.size()), MPI_MAX);
    std::exception_ptr failure;
    std::vector<std::byte> buffer;
    const SlabChunk nothing;
    for (index k = 0; k < rounds; k++) {
        const bool mine = k < static_cast<index>(chunks.size());
        const int status = put(plan, mine ? chunks[static_cast<std::size_t>(k)].first : nullptr,
                               mine ? chunks[static_cast<std::size_t>(k)].second : nothing, failure, buffer);
        attempt(failure, [&] { Detail::requireNetcdf(status, path, fmt::format("write '{}'", plan.variable->name)); });
    }
    comm.agree(failure);
}

/// Classic files: gives the records of a variable before `end` that were never written the fill value, which the
/// library does not do. Rank 0 writes them. Collective.
/// `writtenEnds` is the same on all ranks, so all of them enter the same collective writes. O(filled elements) written,
/// by rank 0 alone.
void NetcdfWriter::File::fillUpTo(std::size_t variable, index end) {
    if (writtenEnds[variable] >= end)
        return;
    const index first = std::exchange(writtenEnds[variable], end);
    WritePlan plan;
    plan.variable = &content.variables[variable];
    plan.place = places[variable];
    plan.packing = Detail::packingOf(*plan.variable);
    plan.raw = true;
    plan.elementBytes = Detail::bytesOf(plan.variable->kind);
    if (plan.packing.missing.empty()) // bytes have no value that means missing
        return;
    // One number in memory, seen as all elements by strides of 0.
    std::vector<WrittenSlab> mine;
    if (comm.rank() == 0) {
        WrittenSlab &slab = mine.emplace_back();
        slab.count = plan.variable->shape();
        slab.start.assign(slab.count.size(), 0);
        slab.strides = slab.start;
        slab.start[0] = first;
        slab.count[0] = end - first;
        slab.kind = plan.variable->kind;
        slab.data = plan.packing.missing[0].data();
    }
    putAll(plan, mine);
}

/// Extends unlimited dimensions and reserves disk space before writing. Collective; a reduction for each unlimited
/// dimension. Classic files get their space on rank 0, see makeRoomInNetcdf.
void NetcdfWriter::File::grow(const WritePlan &plan, std::span<const WrittenSlab> slabs) {
    for (std::size_t d = 0; d < plan.variable->dimensions.size(); d++) {
        if (!plan.variable->dimensions[d].unlimited)
            continue;
        std::array<index, 2> reach{0, -endless}; // the end, and the start negated
        for (const WrittenSlab &slab : slabs)
            if (slab.elements() > 0) {
                reach[0] = std::max(reach[0], slab.start[d] + slab.count[d]);
                reach[1] = std::max(reach[1], -slab.start[d]);
            }
        // Some other rank may write the last record.
        comm.allReduce(reach.data(), 2, MPI_MAX);
        const index end = reach[0];
        const std::string name = plan.variable->dimensions[d].name;
        for (NetcdfDimension &dimension : content.dimensions) {
            if (dimension.name != name || dimension.length >= end)
                continue;
            comm.guarded([&] {
                int format = 0;
                Detail::requireNetcdf(nc_inq_format(id, &format), path, "tell its format");
                DNDS_CHECK(format > NC_FORMAT_64BIT_OFFSET || end < maxCdf2Records, LayoutError,
                           "{}: {} steps of '{}', but a CDF-2 file has at most {}", plan.what, end, name,
                           maxCdf2Records - 1);
                if (comm.rank() == 0)
                    Detail::makeRoomInNetcdf(temporary, end);
            });
            dimension.length = end;
        }
        if (end > 0 && !writtenEnds.empty()) {
            const auto variable = toSize(plan.variable - content.variables.data());
            fillUpTo(variable, -reach[1]);
            writtenEnds[variable] = std::max(writtenEnds[variable], end);
        }
    }
}

/// The same for NetCDF-4. Collective; one reduction of the box that all ranks together write. HDF5 appends chunks, so
/// space is reserved beyond the end of the file, and rank 0 frees the rest in `close`.
/// The union of boxes is bounded by one box: an upper bound of the chunks that are touched, without their lists.
void NetcdfWriter::File::reserve(const WritePlan &plan, std::span<const WrittenSlab> slabs) {
    if (extents.empty())
        return;
    const std::size_t dims = plan.variable->dimensions.size();
    std::vector<index> ends(2 * dims, -endless); // maxima of the negated starts and of the ends
    for (const WrittenSlab &slab : slabs)
        for (std::size_t d = 0; d < dims && slab.elements() > 0; d++) {
            ends[d] = std::max(ends[d], -slab.start[d]);
            ends[dims + d] = std::max(ends[dims + d], slab.start[d] + slab.count[d]);
        }
    comm.allReduce(ends.data(), static_cast<int>(ends.size()), MPI_MAX);
    if (ends[0] == -endless) // no rank writes anything
        return;
    std::vector<index> &extent = extents[static_cast<std::size_t>(plan.variable - content.variables.data())];
    comm.guarded([&] {
        Detail::WrittenBox box;
        for (std::size_t d = 0; d < dims; d++) {
            box.first.push_back(-ends[d]);
            box.last.push_back(ends[dims + d]);
        }
        if (comm.rank() == 0)
            DurableFile::forWriting(temporary).reserveBehind(
                Detail::netcdf4BytesOf(plan.place, plan.variable->kind, extent, box, path));
    });
    for (std::size_t d = 0; d < dims; d++)
        extent[d] = std::max(extent[d], ends[dims + d]);
}

} // namespace DNDS
