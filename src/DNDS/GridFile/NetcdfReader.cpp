#include "DNDS/GridFile/Netcdf.hpp"

#include "DNDS/Base/Error.hpp"
#include "DNDS/GridFile/ElementConversion.hpp"
#include "DNDS/GridFile/NetcdfCalls.hpp"
#include "DNDS/GridFile/Packing.hpp"
#include "DNDS/Mpi/Communicator.hpp"
#include "DNDS/Mpi/FailTogether.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace DNDS {

namespace {

using Detail::NetcdfPlace;
using Detail::Packing;
using Detail::SlabChunk;
using Detail::SlabChunks;

/// A pick with its index resolved.
struct PickedPlace {
    std::size_t dimension;
    index at;
};

// The dimension that a pick names; variables have few.
std::size_t dimensionOf(const NetcdfVariable &variable, const DimensionPick &pick) {
    for (std::size_t d = 0; d < variable.dimensions.size(); d++)
        if (variable.dimensions[d].name == pick.dimension)
            return d;
    throw ArgumentError(fmt::format("{} has no dimension '{}' to pick", variable.description(), pick.dimension));
}

/// The remaining shape of a variable; throws if a dimension is picked twice.
std::vector<index> shapeLeft(const NetcdfVariable &variable, std::span<const DimensionPick> picks) {
    std::vector<index> shape = variable.shape();
    for (const DimensionPick &pick : picks) {
        index &length = shape[dimensionOf(variable, pick)];
        DNDS_CHECK(length >= 0, ArgumentError, "{}: dimension '{}' is picked twice", variable.description(),
                   pick.dimension);
        length = -1;
    }
    shape.erase(std::remove(shape.begin(), shape.end(), index{-1}), shape.end());
    return shape;
}

/// The coordinate variable of a dimension: of the same name, in the variable's group or the nearest enclosing one. The
/// convention of coordinate variables: NetCDF User Guide, "Variables".
const NetcdfVariable *coordinateOf(const NetcdfContent &content, const NetcdfVariable &variable,
                                   const std::string &dimension) {
    std::string group = variable.name;
    for (;;) {
        const std::size_t slash = group.rfind('/');
        group.resize(slash == std::string::npos ? 0 : slash);
        const std::string name = group.empty() ? dimension : fmt::format("{}/{}", group, dimension);
        if (content.has(name)) {
            const NetcdfVariable &found = content.variable(name, "");
            if (found.dimensions.size() == 1 && found.dimensions[0].name == dimension)
                return &found;
        }
        if (group.empty())
            return nullptr;
    }
}

/// A variable's data for `read`. Everything that `read` decides before it touches values: the same on all ranks except
/// for their boxes.
struct ReadPlan {
    const NetcdfVariable *variable = nullptr;
    NetcdfPlace place;
    std::vector<PickedPlace> picks; ///< ascending
    Packing packing;
    bool raw = false;
    std::optional<real> fill;
};

/// Reads one box through the library. Throws DataError.
/// Picked dimensions have count 1 in the file and none in memory.
/// Memory: at most 64 MiB beside the slab. Reads are independent: ranks need not have the same number of boxes.
void readSlab(const std::string &path, const ReadPlan &plan, const Slab &slab) {
    const std::size_t elementBytes = Detail::bytesOf(plan.variable->kind);
    const SlabChunks chunks(slab.count, Detail::requestBytes / static_cast<index>(elementBytes));
    std::vector<std::byte> buffer;
    for (index k = 0; k < chunks.size(); k++) {
        const SlabChunk chunk = chunks.at(k);
        std::vector<index> first = fileStart(slab, chunk);
        std::vector<index> counts = chunk.count;
        // Ascending, so that each insertion is at its final place.
        for (const PickedPlace &pick : plan.picks) {
            first.insert(first.begin() + static_cast<std::ptrdiff_t>(pick.dimension), pick.at);
            counts.insert(counts.begin() + static_cast<std::ptrdiff_t>(pick.dimension), 1);
        }
        const std::vector<std::size_t> start(first.begin(), first.end());
        const std::vector<std::size_t> count(counts.begin(), counts.end());
        buffer.resize(static_cast<std::size_t>(chunk.elements) * elementBytes);
        Detail::requireNetcdf(
            nc_get_vara(plan.place.group, plan.place.variable, start.data(), count.data(), buffer.data()), path,
            fmt::format("read '{}'", plan.variable->name));
        if (plan.raw)
            Detail::scatterChunk(slab, chunk, elementBytes, buffer.data());
        else
            Detail::unpackChunk(plan.packing, buffer.data(), slab, chunk, plan.fill,
                                fmt::format("{}: '{}'", path, plan.variable->name));
    }
}

} // namespace

/// The library's handle of the file, closed with this.
struct NetcdfReader::File {
    int id = -1;
    /// [content.variables]
    std::vector<NetcdfPlace> places;
    std::vector<std::string> notes;

    File() = default;
    File(const File &) = delete;
    File &operator=(const File &) = delete;
    ~File() {
        if (id >= 0)
            nc_close(id);
    }
};

// Rank 0 checks the file before any rank opens it. Each rank reads the description itself and compares it with rank
// 0's.
NetcdfReader::NetcdfReader(CommunicatorView comm, std::string path) : comm_(comm), path_(std::move(path)) {
    // A damaged header must not reach the library.
    onRankZero(comm_, [&] { Detail::checkNetcdfFile(path_); });
    comm_.guarded([&] {
        file_ = std::make_unique<File>();
        Detail::requireNetcdf(nc_open(path_.c_str(), NC_NOWRITE, &file_->id), path_, "open it");
        content_ = Detail::readNetcdfContent(file_->id, path_, file_->places, file_->notes);
        for (const NetcdfVariable &variable : content_.variables)
            if (variable.kind != ElementKind::Opaque)
                for (std::string &note : Detail::packingOf(variable).notes)
                    file_->notes.push_back(std::move(note));
    });
    const std::vector<std::string> manifest{content_.format + content_.manifest()};
    requireSame(comm_, manifest, [&](std::size_t, const std::string *) {
        throw DataError(fmt::format("{} is another file on this rank than on rank 0", path_));
    });
}
NetcdfReader::NetcdfReader(NetcdfReader &&) noexcept = default;
NetcdfReader &NetcdfReader::operator=(NetcdfReader &&) noexcept = default;
NetcdfReader::~NetcdfReader() = default;

std::vector<index> NetcdfReader::shape(std::string_view name, std::span<const DimensionPick> picks) const {
    return shapeLeft(variable(name), picks);
}

// Rank 0 reads, the others get a copy.
std::vector<real> NetcdfReader::values(std::string_view name) const {
    std::vector<real> all;
    std::vector<Slab> slabs;
    comm_.guarded([&] {
        const NetcdfVariable &found = variable(name);
        DNDS_CHECK(found.dimensions.size() <= 1, LayoutError, "{}: '{}' has not one dimension: {}", path_, name,
                   found.description());
        const std::vector<index> shape = found.shape();
        if (comm_.rank() != 0)
            return;
        all.resize(shape.empty() ? 1 : static_cast<std::size_t>(shape[0]));
        // The only box; other ranks take part without one.
        slabs.push_back(slabOf(all.data(), std::vector<index>(shape.size(), 0), shape));
    });
    read(name, slabs);
    broadcastList(comm_, all);
    return all;
}

// Of two coordinates at equal distance the first is taken; NaN never is.
// Linear: coordinates need not be sorted. All ranks have the same values and find the same place.
index NetcdfReader::place(const NetcdfVariable &variable, const DimensionPick &pick) const {
    const NetcdfDimension &dimension = variable.dimensions[dimensionOf(variable, pick)];
    if (!pick.byValue) {
        // Negative places count from the end.
        const index at = pick.at < 0 ? pick.at + dimension.length : pick.at;
        DNDS_CHECK(at >= 0 && at < dimension.length, ArgumentError,
                   "{}: {} has no place {} along '{}', which has {} elements", path_, variable.description(), pick.at,
                   dimension.name, dimension.length);
        return at;
    }
    const NetcdfVariable *coordinate = coordinateOf(content_, variable, dimension.name);
    DNDS_CHECK(coordinate != nullptr, ArgumentError,
               "{}: dimension '{}' has no coordinates (a variable of its name): pick it by index", path_,
               dimension.name);
    const std::vector<real> coordinates = values(coordinate->name);
    index best = -1;
    for (std::size_t i = 0; i < coordinates.size(); i++)
        if (!std::isnan(coordinates[i]) &&
            (best < 0 || std::abs(coordinates[i] - pick.value) <
                             std::abs(coordinates[static_cast<std::size_t>(best)] - pick.value)))
            best = static_cast<index>(i);
    DNDS_CHECK(best >= 0, ArgumentError, "{}: dimension '{}' has no coordinate to pick {} by", path_, dimension.name,
               pick.value);
    return best;
}

// Local checks and the comparison of requests come first; picks by value then read coordinates, on all ranks.
void NetcdfReader::read(std::string_view name, std::span<const Slab> slabs, const NetcdfReadOptions &options) const {
    ReadPlan plan;
    std::vector<std::string> asked;
    comm_.guarded([&] {
        DNDS_CHECK(file_ != nullptr, StateError, "this NetcdfReader was moved from");
        asked.push_back(fmt::format("variable '{}'", name));
        for (const DimensionPick &pick : options.picks)
            asked.push_back(pick.byValue ? fmt::format("'{}' near {}", pick.dimension, pick.value)
                                         : fmt::format("place {} of '{}'", pick.at, pick.dimension));
        plan.variable = &variable(name);
        const std::string what = fmt::format("{}: '{}'", path_, name);
        DNDS_CHECK(plan.variable->kind != ElementKind::Opaque, LayoutError, "{} holds {}, not numbers", what,
                   plan.variable->type);
        plan.place = file_->places[static_cast<std::size_t>(plan.variable - content_.variables.data())];
        plan.packing = Detail::packingOf(*plan.variable);
        plan.raw = options.raw;
        plan.fill = options.fill;
        const std::vector<index> shape = shapeLeft(*plan.variable, options.picks);
        for (const Slab &slab : slabs) {
            checkSlab(slab, shape, what, plan.raw ? plan.variable->kind : ElementKind::Opaque);
            if (!plan.raw)
                Detail::checkUnpacking(plan.packing, slab.kind, what);
        }
    });
    requireSame(comm_, asked, [&](std::size_t k, const std::string *first) {
        throw ArgumentError(fmt::format("{}: this rank reads {}, rank 0 {}", path_,
                                        k < asked.size() ? asked[k] : "nothing more of it",
                                        first == nullptr ? "nothing more of it" : *first));
    });
    for (const DimensionPick &pick : options.picks)
        plan.picks.push_back({dimensionOf(*plan.variable, pick), place(*plan.variable, pick)});
    // For readSlab.
    std::sort(plan.picks.begin(), plan.picks.end(),
              [](const PickedPlace &a, const PickedPlace &b) { return a.dimension < b.dimension; });
    comm_.guarded([&] {
        for (const Slab &slab : slabs)
            if (slab.elements() > 0)
                readSlab(path_, plan, slab);
    });
}

std::vector<std::string> NetcdfReader::notes() const {
    DNDS_CHECK(file_ != nullptr, StateError, "this NetcdfReader was moved from");
    return file_->notes;
}

bool NetcdfReader::built() noexcept { return true; }

} // namespace DNDS
