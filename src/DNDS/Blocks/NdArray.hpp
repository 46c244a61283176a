/// @file NdArray.hpp
/// @brief An array of 1 to 4 dimensions cut over the ranks: the short way to structured blocks.
#pragma once

#include "DNDS/Blocks/BlockField.hpp"
#include "DNDS/Blocks/BlockFile.hpp"
#include "DNDS/Mpi/FailTogether.hpp"

#include <initializer_list>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace DNDS {

/// Options of `NdArray::decompose`.
struct Decomposition {
    std::vector<index> shape{};    ///< global, the slowest dimension first
    int ranks = 0;                 ///< number of ranks that get cells; 0: all
    std::vector<index> parts = {}; ///< per dimension; {}: the best. 0 or 1: not cut. -1: the best for this dimension
    GhostWidths ghosts{};          ///< layers, and whether exchanges fill corners
    std::array<bool, maxBlockDims> periodic{};
    rowsize components = 1;
    ComponentOrder order = ComponentOrder::Inside;
    Centring centring{}; ///< the points of cells that have values; `shape` counts cells
};

/// An array of `T` of which each rank owns one box of cells, surrounded by ghosts: PETSc's DMDA with its local vector.
/// Move-only. Memory is initially zero.
///
///     NdArray<float> temperature("temperature");
///     temperature.decompose(comm, {1000, 800}, 0, {}, {1, 1});
///     temperature.toDevice();
///     temperature.exchangeGhosts();
///     kernel(temperature.deviceView<DeviceBackend::CUDA>());      // v(i, j), ghosts at -1 and n; v.global(i, d)
///
/// Ranks without cells (more ranks than cells) take part in Collective calls and have views of extent 0. Exchanges,
/// `toDevice`, `toHost` and views are those of BlockField. Functions before `decompose` throw StateError.
template <class T>
class NdArray {
  public:
    using Element = T;

    NdArray() = default;
    /// An array without cells until `decompose`. The name is for messages.
    explicit NdArray(std::string name) : name_(std::move(name)) {}

    /// Cuts the array over the ranks and discards the previous cut and contents, unless it throws. The best cut depends
    /// only on shape, periodic directions and ranks: arrays of one shape have the same cells on each rank. An extent of
    /// 0 makes an array without cells, as in NumPy. Collective; all ranks pass the same. Throws on all ranks as
    /// BlockGrid::cut and BlockField.
    void decompose(const CommunicatorView &comm, const Decomposition &how) {
        field_ = failTogether(comm, [&] {
            // Independent of type and ghosts: arrays of one shape are cut alike, so that their indices match.
            const auto grid = BlockGrid::cut(comm, how.shape, how.periodic, {.ranks = how.ranks, .parts = how.parts});
            return BlockField<T>(
                name_, comm, grid,
                {.ghosts = how.ghosts, .components = how.components, .order = how.order, .centring = how.centring});
        });
    }
    /// The short form: `ranks` 0 for all, `parts` {} for the best, `ghosts` on both sides, by dimension.
    void decompose(const CommunicatorView &comm, std::initializer_list<index> shape, int ranks = 0,
                   std::initializer_list<index> parts = {}, const GhostWidths &ghosts = {},
                   std::initializer_list<bool> periodic = {}) {
        failTogether(comm, [&] {
            Decomposition how{.shape = shape, .ranks = ranks, .parts = parts, .ghosts = ghosts};
            DNDS_CHECK(periodic.size() <= shape.size(), ArgumentError, "'{}': {} periodic directions of {} dimensions",
                       name_, periodic.size(), shape.size());
            std::copy_n(periodic.begin(), std::min<std::size_t>(periodic.size(), maxBlockDims), how.periodic.begin());
            decompose(comm, how);
        });
    }

    /// Whether `decompose` has been called, even on a single rank.
    bool isDistributed() const noexcept { return field_.made(); }
    const std::string &name() const noexcept { return name_; }
    const BlockGrid &grid() const { return *field().grid(); }

    /// The number of dimensions, 1 to 4, and of elements per cell. Local.
    int dims() const { return grid().dims(); }
    rowsize components() const { return field().components(); }
    /// The number of cells per dimension, over all ranks; or of points, the first and last node of a period counted
    /// once.
    std::vector<index> globalShape() const {
        const Box all = field().blockPattern()->filePoints();
        return {all.upper.begin(), all.upper.begin() + all.dims};
    }
    /// The cells of this rank (or all points of its cells), in global numbers; empty if it has none.
    Box localCore() const { return hasCells() ? field().block(0).cells : noCells(); }
    /// The same with ghosts, whose global numbers may lie outside the array.
    Box localExtent() const { return hasCells() ? field().block(0).extent : noCells(); }
    /// Local indices of a global cell (those of ghosts are below 0 or from the core's extents on), and back.
    IndexVector toLocal(const IndexVector &global) const { return moved(global, -1); }
    IndexVector toGlobal(const IndexVector &local) const { return moved(local, 1); }
    /// Whether this rank has a global cell; ghosts do not count, but copies of points that it shares with other ranks
    /// do.
    bool isLocal(const IndexVector &global) const { return localCore().contains(global); }
    /// The rank that owns a global cell, or -1 outside the array. Local, as all ranks know the grid. O(blocks nearby).
    int ownerOf(const IndexVector &global) const {
        const Centring &centring = field().blockPattern()->centring();
        Box one(dims(), global, global);
        for (int d = 0; d < dims(); ++d)
            ++one.upper[toSize(d)];
        if (!centring.pointsOf(grid().spaces().front().cells).contains(one))
            return -1;
        const auto owners = grid().sourcesOf(0, one, centring);
        return owners.empty() ? -1 : grid().block(owners.front().source).rank;
    }

    /// As BlockField; views are empty if this rank has no cells.
    BlockView<T> view() { return deviceView<DeviceBackend::Host>(); }
    BlockView<const T> view() const { return deviceView<DeviceBackend::Host>(); }
    template <DeviceBackend backend>
    BlockView<T> deviceView() {
        return hasCells() ? field().template deviceView<backend>()
                          : BlockView<T>(nullptr, noCells(), noCells(), 1, components(), 1);
    }
    template <DeviceBackend backend>
    BlockView<const T> deviceView() const {
        return hasCells() ? field().template deviceView<backend>()
                          : BlockView<const T>(nullptr, noCells(), noCells(), 1, components(), 1);
    }
    /// The first byte of the memory, ghosts included, for libraries that take pointers. The non-const functions count
    /// as writing. Null if there are no cells. Throws StaleError if that side is not current.
    T *hostPointer() { return field().array().view().data(); }
    const T *hostPointer() const { return field().array().view().data(); }
    T *devicePointer() { return field().array().template deviceView<DeviceBackend::CUDA>().data(); }
    const T *devicePointer() const { return field().array().template deviceView<DeviceBackend::CUDA>().data(); }

    /// As the functions of `BlockField` of the same names.
    void toDevice() { field().toDevice(); }
    void toHost() { field().toHost(); }
    void exchangeGhosts(Device::StreamHandle producer = nullptr) { field().exchangeGhosts(producer); }
    void startExchangeGhosts(Device::StreamHandle producer = nullptr) { field().startExchangeGhosts(producer); }
    void finishExchangeGhosts() { field().finishExchangeGhosts(); }
    void finishExchangeGhosts(Device::StreamHandle consumer) { field().finishExchangeGhosts(consumer); }
    void pushGhosts(PushOp op = PushOp::Sum, Device::StreamHandle producer = nullptr) {
        field().pushGhosts(op, producer);
    }
    void startPushGhosts(PushOp op = PushOp::Sum, Device::StreamHandle producer = nullptr) {
        field().startPushGhosts(op, producer);
    }
    void finishPushGhosts() { field().finishPushGhosts(); }
    void finishPushGhosts(Device::StreamHandle consumer) { field().finishPushGhosts(consumer); }

    /// Reads a variable of a NetCDF file, each rank its own part; ghosts are unchanged. The variable has the array's
    /// shape, apart from dimensions of length 1 and a leading one, read at index `step` (-1: the last). Missing values
    /// are NaN, packed ones unpacked; see NetcdfReader. Collective; needs DNDS::Files. Throws as `readNetcdf`.
    void readNetcdfAuto(const std::string &path, const std::string &variable, index step = 0) {
        const NetcdfReader file(field().array().comm(), path);
        NetcdfReadOptions options;
        field().array().comm().guarded(
            [&] { options.picks = picksFor(file.variable(variable), fileShape(field()), step); });
        readNetcdf(file, variable, field(), options);
    }
    /// Writes a NetCDF file of this array alone, without coordinates: `writeNetcdfOn`, or NetcdfWriter for more.
    /// `dimensions` are names; {}: "x0", "x1", ... Collective; needs DNDS::Files. Throws as NetcdfWriter.
    void writeNetcdf(const std::string &path, const std::string &variable, std::vector<std::string> dimensions = {},
                     const std::vector<NetcdfAttribute> &attributes = {}) const {
        NetcdfWriter file(field().array().comm(), path);
        field().array().comm().guarded([&] {
            const std::vector<index> shape = fileShape(field());
            for (std::size_t d = dimensions.size(); d < shape.size(); ++d)
                dimensions.push_back(std::to_string(d).insert(0, 1, 'x'));
            for (std::size_t d = 0; d < shape.size(); ++d)
                file.dimension(dimensions[d], shape[d]);
            file.variable(variable, elementKindOf<T>(), dimensions, attributes);
        });
        DNDS::writeNetcdf(file, variable, field());
        file.close();
    }
    /// The same with coordinates by CF, those of the array's points: see `declareAxes`. Collective.
    void writeNetcdfOn(std::span<const GridAxis> axes, const std::string &path, const std::string &variable,
                       const std::vector<NetcdfAttribute> &attributes = {}) const {
        NetcdfWriter file(field().array().comm(), path);
        field().array().comm().guarded(
            [&] { file.variable(variable, elementKindOf<T>(), declareAxes(file, field(), axes), attributes); });
        DNDS::writeNetcdf(file, variable, field());
        file.close();
    }

    /// The field itself, for everything that is missing here: streams, flights, options, groups.
    BlockField<T> &field() {
        requireDecomposed();
        return field_;
    }
    const BlockField<T> &field() const {
        requireDecomposed();
        return field_;
    }
    /// A readable description of the cut, the reason for it and each rank's part. Local.
    std::string describe() const { return grid().describe(); }

  private:
    void requireDecomposed() const {
        DNDS_CHECK(isDistributed(), StateError, "the array '{}' has no shape yet: call decompose first", name_);
    }
    bool hasCells() const { return field().blocks() > 0; }
    Box noCells() const { return {dims(), IndexVector{}, IndexVector{}}; }
    /// `cell` plus or minus the lower corner of this rank's cells; unchanged on a rank without cells.
    IndexVector moved(IndexVector cell, index sign) const {
        const Box core = localCore();
        for (int d = 0; d < core.dims; ++d)
            cell[toSize(d)] += sign * core.lower[toSize(d)];
        return cell;
    }

    std::string name_;
    BlockField<T> field_; ///< not made before `decompose`; then at most one block on each rank
};

} // namespace DNDS
