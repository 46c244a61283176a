#include "DNDS/GridFile/Netcdf.hpp"

#include "DNDS/Base/Error.hpp"
#include "DNDS/GridFile/ElementConversion.hpp"
#include "DNDS/GridFile/NetcdfCalls.hpp"
#include "DNDS/GridFile/NetcdfSpace.hpp"
#include "DNDS/GridFile/Packing.hpp"
#include "DNDS/Mpi/FailTogether.hpp"
#include "DNDS/Serialize/DurableFile.hpp"

#include <netcdf_par.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <exception>
#include <functional>
#include <numeric>
#include <utility>

namespace DNDS {

namespace {

using Detail::NetcdfPlace;
using Detail::Packing;
using Detail::SlabChunk;
using Detail::SlabChunks;

constexpr index writeBufferBytes = index{64} << 20;
/// Half of the 2^32 - 4 bytes that the format allows.
constexpr index maxCdf2Bytes = (index{1} << 31) - 4; ///< limit of a variable, or of one of its records
constexpr index maxCdf2Records = (index{1} << 32) - 2;
constexpr auto endless = static_cast<index>(~std::uint64_t{0} >> 1U);

// For the comparison of declarations between ranks.
std::string attributeText(const NetcdfAttribute &attribute) {
    std::string text = fmt::format("{} {}", attribute.name, elementKindName(attribute.kind));
    std::visit(
        [&](const auto &value) {
            if constexpr (std::is_same_v<std::decay_t<decltype(value)>, std::string>)
                text += value;
            else
                for (const auto number : value)
                    text += fmt::format(" {}", number);
        },
        attribute.value);
    return text;
}

/// Puts an attribute; numbers in its own kind.
/// Text has no length limit; numbers are converted one by one, as the list's type is the widest.
int putAttribute(int file, int variable, const NetcdfAttribute &attribute) {
    const char *name = attribute.name.c_str();
    if (const auto *text = std::get_if<std::string>(&attribute.value))
        return nc_put_att_text(file, variable, name, text->size(), text->data());
    std::vector<std::byte> bytes;
    const std::size_t width = Detail::bytesOf(attribute.kind);
    for (std::size_t k = 0;; k++) {
        const auto number = Detail::packedNumber(attribute, k, attribute.kind);
        if (!number)
            break;
        bytes.insert(bytes.end(), number->begin(), number->begin() + static_cast<std::ptrdiff_t>(width));
    }
    return nc_put_att(file, variable, name, Detail::netcdfType(attribute.kind), bytes.size() / width, bytes.data());
}

/// The course of one call of `write` on this rank.
struct WritePlan {
    const NetcdfVariable *variable = nullptr;
    NetcdfPlace place;
    Packing packing;
    bool raw = false;
    std::string what;
    std::size_t elementBytes = 1;

    /// The numbers of a chunk as the file has them.
    void numbersOf(const WrittenSlab &slab, const SlabChunk &chunk, std::byte *to) const {
        if (raw)
            Detail::gatherChunk(slab, chunk, elementBytes, to);
        else
            Detail::packChunk(packing, slab, chunk, to, what);
    }
};

} // namespace

/// All state. Declarations are collected on each rank; `define` compares them, creates the file (`id` >= 0), and ends
/// the declarations.
struct NetcdfWriter::File {
    CommunicatorView comm;
    std::string path;
    std::string temporary;
    NetcdfWriteOptions options;
    /// As declared, or as read with `append`; lengths of unlimited dimensions grow with writes.
    NetcdfContent content;
    /// Values that `define` writes, by the name of the variable.
    std::vector<std::pair<std::string, std::vector<real>>> coordinates;
    /// [content.variables]
    std::vector<NetcdfPlace> places;
    std::vector<std::string> notes;
    std::vector<std::vector<index>> extents; ///< NetCDF-4: the written extents of each variable; else empty
    std::vector<index> writtenEnds;          ///< classic files: the written records of each variable; else empty
    int id = -1;
    bool closed = false;
    /// More in the destructor: an exception destroys the writer, perhaps on this rank only.
    int exceptionsAtStart = std::uncaught_exceptions();

    // A new file gets its name when it is complete.
    File(CommunicatorView ranks, std::string to, const NetcdfWriteOptions &chosen)
        : comm(ranks), path(std::move(to)), temporary(chosen.append ? path : path + ".part"), options(chosen) {}

    void declare(NetcdfDimension dimension);
    void declare(NetcdfVariable variable);
    void requireDeclaring() const {
        DNDS_CHECK(id < 0, StateError,
                   "{}: declarations precede the first write, and files that are appended to have "
                   "theirs",
                   path);
    }
    NetcdfFormat chooseFormat();
    void checkFormat(NetcdfFormat format) const;
    void openExisting();
    void create(NetcdfFormat format);
    int defineVariable(const NetcdfVariable &variable, const std::vector<int> &dimensions);
    int defineAll();
    void prepare(std::string_view name, std::span<const WrittenSlab> slabs, bool raw, WritePlan &plan) const;
    int put(const WritePlan &plan, const WrittenSlab *slab, const SlabChunk &chunk, std::exception_ptr &failure,
            std::vector<std::byte> &buffer) const;
    void putScalar(const WritePlan &plan, std::span<const WrittenSlab> slabs);
    void putAll(const WritePlan &plan, std::span<const WrittenSlab> slabs);
    void grow(const WritePlan &plan, std::span<const WrittenSlab> slabs);
    void writeTogether(bool hdf);
    void fillUpTo(std::size_t variable, index end);
    void reserve(const WritePlan &plan, std::span<const WrittenSlab> slabs);
};

// The same declaration again is fine.
void NetcdfWriter::File::declare(NetcdfDimension dimension) {
    requireDeclaring();
    DNDS_CHECK(dimension.length > 0 || dimension.unlimited, ArgumentError,
               "{}: dimension '{}' of {} elements: NetCDF has none below 1", path, dimension.name, dimension.length);
    for (const NetcdfDimension &known : content.dimensions) {
        if (known.name != dimension.name)
            continue;
        DNDS_CHECK(known.unlimited == dimension.unlimited && (known.unlimited || known.length == dimension.length),
                   ArgumentError, "{}: dimension '{}' was declared with {} elements, now {}", path, known.name,
                   known.length, dimension.length);
        return;
    }
    content.dimensions.push_back(std::move(dimension));
}

// A fill value is stored in the variable's type, as the library requires.
void NetcdfWriter::File::declare(NetcdfVariable variable) {
    requireDeclaring();
    (void)Detail::netcdfType(variable.kind);
    DNDS_CHECK(!content.has(variable.name), ArgumentError, "{}: variable '{}' is declared twice", path, variable.name);
    for (std::size_t d = 0; d < variable.dimensions.size(); d++)
        DNDS_CHECK(!variable.dimensions[d].unlimited || d == 0 || options.format == NetcdfFormat::Netcdf4,
                   ArgumentError, "{}: the unlimited dimension of '{}' must be its first", path, variable.name);
    if (const NetcdfAttribute *fill = variable.attribute("_FillValue")) {
        const auto number = Detail::packedNumber(*fill, 0, variable.kind);
        if (!number) {
            notes.push_back(fmt::format("_FillValue of '{}' does not fit its type {}: dropped", variable.name,
                                        elementKindName(variable.kind)));
            variable.attributes.erase(variable.attributes.begin() + (fill - variable.attributes.data()));
        } else {
            variable.attributes[static_cast<std::size_t>(fill - variable.attributes.data())].kind = variable.kind;
        }
    }
    variable.type = elementKindName(variable.kind);
    content.variables.push_back(std::move(variable));
}

// The simplest format that can hold the file; `notes` say why.
NetcdfFormat NetcdfWriter::File::chooseFormat() {
    if (options.format != NetcdfFormat::Automatic)
        return options.format;
    const auto choose = [&](NetcdfFormat format, const char *name, const std::string &why) {
        notes.push_back(fmt::format("format {}: {}", name, why));
        return format;
    };
    if (options.deflate > 0)
        return choose(NetcdfFormat::Netcdf4, "NetCDF-4", "it is compressed");
    if (std::ranges::count(content.dimensions, true, &NetcdfDimension::unlimited) > 1)
        return choose(NetcdfFormat::Netcdf4, "NetCDF-4", "it has several unlimited dimensions");
    for (const NetcdfVariable &variable : content.variables) {
        // The first six types are those of all classic formats.
        if (Detail::netcdfType(variable.kind) > NC_DOUBLE)
            return choose(NetcdfFormat::Cdf5, "CDF-5", fmt::format("'{}' is {}", variable.name, variable.type));
        index bytes = static_cast<index>(Detail::bytesOf(variable.kind));
        for (const NetcdfDimension &dimension : variable.dimensions)
            // Saturates just beyond the limit; of record variables the size of one record counts.
            bytes = dimension.unlimited || dimension.length == 0 ? bytes
                    : bytes > maxCdf2Bytes / dimension.length    ? maxCdf2Bytes + 1
                                                                 : bytes * dimension.length;
        if (bytes > maxCdf2Bytes)
            return choose(NetcdfFormat::Cdf5, "CDF-5", fmt::format("'{}' has 2 GiB or more", variable.name));
    }
    return choose(NetcdfFormat::Cdf2, "CDF-2", "every reader knows it, and no variable has 2 GiB");
}

void NetcdfWriter::File::checkFormat(NetcdfFormat format) const {
    DNDS_CHECK(options.deflate >= 0 && options.deflate <= 9, ArgumentError, "{}: deflate {} is not 0 to 9", path,
               options.deflate);
    DNDS_CHECK(options.deflate == 0 || format == NetcdfFormat::Netcdf4, ArgumentError,
               "{}: classic files are not compressed: use NetCDF-4", path);
    if (format == NetcdfFormat::Cdf2)
        for (const NetcdfVariable &variable : content.variables)
            DNDS_CHECK(Detail::netcdfType(variable.kind) <= NC_DOUBLE, LayoutError,
                       "{}: '{}' is {}, which CDF-2 lacks: use CDF-5 or NetCDF-4", path, variable.name, variable.type);
}

// Rank 0 checks the file first, and whether it can be written.
void NetcdfWriter::File::openExisting() {
    onRankZero(comm, [&] {
        Detail::checkNetcdfFile(path);
        (void)DurableFile::forWriting(path);
    });
    comm.beforeCollective();
    const int status = nc_open_par(path.c_str(), NC_WRITE, comm.handle(), MPI_INFO_NULL, &id);
    comm.guarded([&] { Detail::requireNetcdf(status, path, "open it for writing"); });
    comm.guarded([&] {
        content = Detail::readNetcdfContent(id, path, places, notes);
        writeTogether(content.format == "NetCDF-4");
    });
}

/// Variables are written by all ranks together from now on.
void NetcdfWriter::File::writeTogether(bool hdf) {
    for (const NetcdfPlace &place : places)
        Detail::requireNetcdf(nc_var_par_access(place.group, place.variable, NC_COLLECTIVE), path, "write together");
    for (const NetcdfVariable &variable : content.variables)
        if (hdf)
            extents.push_back(variable.shape());
        else // without records nothing is filled
            writtenEnds.push_back(!variable.dimensions.empty() && variable.dimensions[0].unlimited
                                      ? variable.dimensions[0].length
                                      : endless);
}

// The library refuses to compress scalars.
int NetcdfWriter::File::defineVariable(const NetcdfVariable &variable, const std::vector<int> &dimensions) {
    int number = -1;
    // The place is noted even after a failure, to keep the lists equally long.
    int status = nc_def_var(id, variable.name.c_str(), Detail::netcdfType(variable.kind),
                            static_cast<int>(dimensions.size()), dimensions.data(), &number);
    places.push_back({id, number});
    if (status == NC_NOERR && options.deflate > 0 && !dimensions.empty())
        status = nc_def_var_deflate(id, number, 1, 1, options.deflate);
    for (const NetcdfAttribute &attribute : variable.attributes)
        if (status == NC_NOERR)
            status = putAttribute(id, number, attribute);
    return status;
}

/// Makes the same calls on all ranks, so that failures are the same, too.
int NetcdfWriter::File::defineAll() {
    int status = NC_NOERR;
    std::vector<int> ids;
    places.clear(); // of an attempt that failed
    for (const NetcdfDimension &dimension : content.dimensions) {
        ids.push_back(-1);
        if (status == NC_NOERR)
            status = nc_def_dim(id, dimension.name.c_str(),
                                dimension.unlimited ? NC_UNLIMITED : static_cast<std::size_t>(dimension.length),
                                &ids.back());
    }
    for (const NetcdfVariable &variable : content.variables) {
        std::vector<int> dimensions;
        for (const NetcdfDimension &used : variable.dimensions) {
            const auto found = std::ranges::find(content.dimensions, used.name, &NetcdfDimension::name);
            dimensions.push_back(ids[toSize(found - content.dimensions.begin())]);
        }
        if (status == NC_NOERR)
            status = defineVariable(variable, dimensions);
    }
    for (const NetcdfAttribute &attribute : content.attributes)
        if (status == NC_NOERR)
            status = putAttribute(id, NC_GLOBAL, attribute);
    return status;
}

// Space is reserved before the library writes: a full disk is then found here, on rank 0, and not in the middle of a
// collective call.
void NetcdfWriter::File::create(NetcdfFormat format) {
    const bool hdf = format == NetcdfFormat::Netcdf4;
    const index needed = hdf ? Detail::netcdf4BytesAtStart(content, options.deflate) : 0;
    onRankZero(comm, [&] {
        const DurableFile file = DurableFile::create(temporary, 0); // reports why it is impossible
        // Without enough space no file must remain.
        const OnFailure undo([&] { std::remove(temporary.c_str()); });
        file.reserve(needed);
    });
    const int mode = NC_CLOBBER | (hdf ? NC_NETCDF4 : format == NetcdfFormat::Cdf5 ? NC_64BIT_DATA : NC_64BIT_OFFSET);
    comm.beforeCollective();
    int status = nc_create_par(temporary.c_str(), mode, comm.handle(), MPI_INFO_NULL, &id);
    comm.guarded([&] { Detail::requireNetcdf(status, path, "create it"); });
    {
        // On all ranks: closing would write data that may not fit on the disk.
        const OnFailure undo([&] { nc_abort(std::exchange(id, -1)); });
        comm.guarded([&] {
            Detail::requireNetcdf(defineAll(), path, "declare what is written");
            if (hdf && comm.rank() == 0) // creating it released the reservation
                DurableFile::forWriting(temporary).reserveBehind(needed);
        });
    }
    status = nc_enddef(id);
    comm.guarded([&] { Detail::requireNetcdf(status, path, "write the header"); });
    comm.guarded([&] {
        writeTogether(hdf);
        if (comm.rank() == 0)
            Detail::makeRoomInNetcdf(temporary, 0);
    });
}

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
void NetcdfWriter::File::putAll(const WritePlan &plan, std::span<const WrittenSlab> slabs) {
    const index limit = writeBufferBytes / static_cast<index>(plan.elementBytes);
    std::vector<std::pair<const WrittenSlab *, SlabChunk>> chunks;
    for (const WrittenSlab &slab : slabs) {
        const SlabChunks parts(slab.count, limit);
        for (index k = 0; k < parts.size(); k++)
            chunks.emplace_back(&slab, parts.at(k));
    }
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

NetcdfWriter::NetcdfWriter(CommunicatorView comm, std::string path, const NetcdfWriteOptions &options)
    : file_(std::make_unique<File>(comm, std::move(path), options)) {
    if (options.append)
        file_->openExisting();
}
NetcdfWriter::NetcdfWriter(NetcdfWriter &&) noexcept = default;
// A swap: the destructor of the other reports an incomplete file that was here.
NetcdfWriter &NetcdfWriter::operator=(NetcdfWriter &&other) noexcept {
    file_.swap(other.file_);
    return *this;
}

// Closing is collective, so only if all ranks come here in the same way.
NetcdfWriter::~NetcdfWriter() {
    if (!file_ || file_->id < 0)
        return;
    const bool root = file_->comm.rank() == 0;
    // The exception may be local to this rank: the others would not take part in closing.
    if (std::uncaught_exceptions() > file_->exceptionsAtStart) {
        // An existing file is left as it is; a new one is incomplete and is removed.
        if (root && !file_->options.append)
            std::remove(file_->temporary.c_str());
        return;
    }
    nc_close(file_->id);
    if (root)
        warn("{} is not complete: its writer was destroyed without close(). What was written is in {}", file_->path,
             file_->temporary);
}

void NetcdfWriter::dimension(const std::string &name, index length) {
    open().declare(NetcdfDimension{name, length, false});
}

void NetcdfWriter::unlimited(const std::string &name) { open().declare(NetcdfDimension{name, 0, true}); }

void NetcdfWriter::variable(const std::string &name, ElementKind kind, const std::vector<std::string> &dimensions,
                            std::vector<NetcdfAttribute> attributes) {
    NetcdfVariable added;
    added.name = name;
    added.kind = kind;
    added.attributes = std::move(attributes);
    for (const std::string &wanted : dimensions) {
        const auto &known = open().content.dimensions;
        const auto found = std::ranges::find(known, wanted, &NetcdfDimension::name);
        DNDS_CHECK(found != known.end(), ArgumentError, "{}: variable '{}' has dimension '{}', which is not declared",
                   file_->path, name, wanted);
        added.dimensions.push_back(*found);
    }
    open().declare(std::move(added));
}

void NetcdfWriter::attribute(NetcdfAttribute attribute) {
    open().requireDeclaring();
    auto &known = file_->content.attributes;
    std::erase_if(known, [&](const NetcdfAttribute &a) { return a.name == attribute.name; });
    known.push_back(std::move(attribute));
}

void NetcdfWriter::coordinate(const std::string &name, std::vector<real> values,
                              std::vector<NetcdfAttribute> attributes) {
    dimension(name, static_cast<index>(values.size()));
    variable(name, ElementKind::Float64, {name}, std::move(attributes));
    open().coordinates.emplace_back(name, std::move(values));
}

// CF conventions 1.8, sections 4 and 7.1: a coordinate variable of the cells' centres with `bounds` ([cells x 2]) for
// the nodes, or of the nodes themselves for nodal fields.
std::string NetcdfWriter::axis(const GridAxis &axis, bool nodal, bool periodic) {
    File &file = open();
    const std::vector<real> &nodes = axis.nodes;
    const std::size_t cells = nodes.empty() ? 0 : nodes.size() - 1;
    const auto ordered = [&](auto before) {
        return std::ranges::adjacent_find(nodes, [&](real a, real b) { return !before(a, b); }) == nodes.end();
    };
    DNDS_CHECK(cells > 0 && (ordered(std::less<>()) || ordered(std::greater<>())), ArgumentError,
               "{}: the {} nodes of axis '{}' neither ascend nor descend: give one more than there are cells",
               file.path, nodes.size(), axis.name);
    DNDS_CHECK(axis.centres.empty() || axis.centres.size() == cells, ArgumentError,
               "{}: axis '{}' has {} centres of {} cells", file.path, axis.name, axis.centres.size(), cells);
    std::string name = nodal ? axis.name + "_node" : axis.name;
    std::vector<real> values = nodal ? nodes : axis.centres;
    std::vector<NetcdfAttribute> attributes = axis.attributes;
    if (nodal && periodic)
        values.pop_back();
    for (std::size_t k = 0; values.size() < cells && !nodal; ++k)
        values.push_back(std::midpoint(nodes[k], nodes[k + 1]));
    if (!nodal)
        attributes.emplace_back("bounds", name + "_bnds");
    if (file.content.has(name)) { // declared before: of the same length and, in this file's first write, place
        dimension(name, static_cast<index>(values.size()));
        for (const auto &[declared, numbers] : file.coordinates)
            DNDS_CHECK(declared != name || numbers == values, ArgumentError,
                       "{}: coordinate '{}' was declared with other numbers: give the axis another name", file.path,
                       name);
        return name;
    }
    coordinate(name, std::move(values), std::move(attributes));
    if (std::ranges::find(file.content.attributes, "Conventions", &NetcdfAttribute::name) ==
        file.content.attributes.end())
        attribute({"Conventions", "CF-1.8"});
    if (nodal)
        return name;
    std::vector<real> bounds;
    for (std::size_t k = 0; k < cells; ++k)
        bounds.insert(bounds.end(), {nodes[k], nodes[k + 1]});
    dimension("bound", 2);
    variable(name + "_bnds", ElementKind::Float64, {name, "bound"});
    file.coordinates.emplace_back(name + "_bnds", std::move(bounds));
    return name;
}

void NetcdfWriter::like(const NetcdfVariable &variable) {
    NetcdfVariable copy = variable;
    copy.name.erase(0, copy.name.rfind('/') + 1); // npos + 1 is 0
    for (const NetcdfDimension &dimension : copy.dimensions)
        open().declare(dimension.unlimited ? NetcdfDimension{dimension.name, 0, true} : dimension);
    open().declare(std::move(copy));
}

// Compares all declarations; rank 0 then writes the coordinates.
void NetcdfWriter::define() {
    // Also called by `write` and `close`: a file without declared variables is a file, too.
    File &file = open();
    if (file.id >= 0)
        return;
    std::vector<std::string> declared;
    NetcdfFormat format = NetcdfFormat::Automatic;
    file.comm.guarded([&] {
        format = file.chooseFormat();
        file.checkFormat(format);
        for (const NetcdfDimension &dimension : file.content.dimensions)
            declared.push_back(
                fmt::format("dimension {} {} {}", dimension.name, dimension.length, dimension.unlimited));
        for (const NetcdfVariable &variable : file.content.variables) {
            declared.push_back(variable.description());
            for (const NetcdfAttribute &attribute : variable.attributes)
                declared.push_back(attributeText(attribute));
        }
        for (const NetcdfAttribute &attribute : file.content.attributes)
            declared.push_back(attributeText(attribute));
    });
    requireSame(file.comm, declared, [&](std::size_t k, const std::string *first) {
        throw ArgumentError(fmt::format("{}: this rank declares {}, rank 0 {}", file.path,
                                        k < declared.size() ? declared[k] : "nothing more",
                                        first == nullptr ? "nothing more" : *first));
    });
    file.create(format);
    // All ranks have the values; rank 0 writes them.
    for (const auto &[name, values] : file.coordinates) {
        std::vector<WrittenSlab> mine;
        const std::vector<index> shape = file.content.variable(name, file.path).shape();
        if (file.comm.rank() == 0)
            mine.push_back(slabOf(values.data(), std::vector<index>(shape.size()), shape));
        write(name, mine);
    }
}

// Checks, growth and reservation precede the write, each agreed on by all ranks.
void NetcdfWriter::write(std::string_view name, std::span<const WrittenSlab> slabs, bool raw) {
    define();
    File &file = open();
    WritePlan plan;
    file.comm.guarded([&] { file.prepare(name, slabs, raw, plan); });
    if (plan.variable->dimensions.empty()) {
        file.putScalar(plan, slabs);
        return;
    }
    file.grow(plan, slabs);
    file.reserve(plan, slabs);
    file.putAll(plan, slabs);
}

index NetcdfWriter::length(std::string_view dimension) const {
    for (const NetcdfDimension &known : made().content.dimensions)
        if (known.name == dimension)
            return known.length;
    throw ArgumentError(fmt::format("{} has no dimension '{}'", file_->path, dimension));
}

// The handle is dropped even if closing fails, so that the destructor does not try again.
void NetcdfWriter::close() {
    define();
    File &file = open();
    // Variables that were not written in the last steps.
    for (std::size_t variable = 0; variable < file.writtenEnds.size(); variable++)
        if (const auto &used = file.content.variables[variable].dimensions; !used.empty() && used[0].unlimited)
            file.fillUpTo(variable, length(used[0].name));
    file.comm.beforeCollective();
    file.closed = true;
    const int status = nc_close(std::exchange(file.id, -1));
    file.comm.guarded([&] { Detail::requireNetcdf(status, file.path, "complete it"); });
    onRankZero(file.comm, [&] {
        Detail::makeRoomInNetcdf(file.temporary, 0);
        // Unused reserved space of NetCDF-4.
        if (!file.extents.empty())
            DurableFile::forWriting(file.temporary).giveBackBehind();
        if (!file.options.append)
            renameDurably(file.temporary, file.path);
    });
}

const std::vector<std::string> &NetcdfWriter::notes() const { return made().notes; }
const std::string &NetcdfWriter::path() const { return made().path; }

NetcdfWriter::File &NetcdfWriter::made() const {
    DNDS_CHECK(file_ != nullptr, StateError, "this NetcdfWriter was moved from");
    return *file_;
}

NetcdfWriter::File &NetcdfWriter::open() const {
    DNDS_CHECK(!made().closed, StateError, "{} is closed: open it again with `append` to add to it", made().path);
    return *file_;
}

} // namespace DNDS
