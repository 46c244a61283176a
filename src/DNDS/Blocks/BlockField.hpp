/// @file BlockField.hpp
/// @brief A field on the blocks of a grid, with ghost layers inside each block's memory; copies of cells between fields
/// on different blocks (transposes, gathers, subarrays); fields as vectors: set, copy, scale, add, products, norms,
/// sums and extrema.
///
/// Fields as vectors, `setConstant` to `max`:
///
///     setConstant(u, 300);
///     axpy(u, timeStep, rate);                               // u += timeStep * rate
///     const real residual = norm2(rate);
///     const real mass = sum(u, {.component = 0, .exact = true});
///
/// Nodes, faces and edges that blocks share are ghosts in all blocks but the one that owns them: reductions count them
/// once.
///
/// These are the loops of ArrayDof. Changes are Local and O(field); on the device they are queued. They act on cells
/// and all ghosts unless told otherwise: ghosts that were copies of cells stay so without an exchange. Reductions are
/// over the cells of all ranks, Collective, and wait for the device. Errors of one rank are thrown on all ranks.
/// On the device results have the bits of the host. A NaN makes them NaN.
///
/// Throw ArgumentError for a missing component, or if the second field is not on the pattern of the first or
/// has another number of components; StaleError if a field is not current in the memory of `on`.
#pragma once

#include "DNDS/Array/ParArray.hpp"
#include "DNDS/Blocks/BlockGrid.hpp"
#include "DNDS/Blocks/BlockView.hpp"
#include "DNDS/Device/ParallelFor.hpp"
#include "DNDS/Exchange/ExchangeGroup.hpp"
#include "DNDS/Storage/ArrayBase.hpp"

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace DNDS {

/// The ghost exchange of one field on blocks. The base of `BlockField`; move-only.
///
/// Exchanges move the copies of the side to which `toDevice` or `toHost` last brought the field, initially the host.
/// Ranks thus agree without communication, as long as all of them call these functions.
class BlockFieldCore {
  public:
    /// False for a field that was only declared, or moved from.
    bool made() const noexcept { return data_ != nullptr; }
    const std::shared_ptr<const BlockPattern> &blockPattern() const noexcept { return pattern_; }
    const std::shared_ptr<const BlockGrid> &grid() const noexcept { return pattern_->grid(); }
    /// The rows that ranks send to each other. Fields with one pattern can share messages: `ExchangeGroup::add(field)`.
    const std::shared_ptr<const ExchangePattern> &pattern() const noexcept { return pattern_->exchange(); }
    /// This field as part of an exchange of several (`ExchangeGroup`). Local.
    ExchangeMember member() const;

    /// Refreshes all ghosts that are copies of cells, in a star only those beyond the block in one dimension; the
    /// others keep their values. Collective. On the device the exchange runs after the work in `producer` and is
    /// complete on return. Throws as Exchange, and StaleError if the side that is moved is not current.
    void exchangeGhosts(Device::StreamHandle producer = nullptr) {
        startExchangeGhosts(producer);
        finishExchangeGhosts();
    }
    /// Starts refreshing ghosts. Collective at the first call on each side, which sets the exchange up; else Local.
    /// Until it is finished, cells without ghosts are read-only and ghosts unusable. Throws as Exchange::start.
    void startExchangeGhosts(Device::StreamHandle producer = nullptr) { ready()->start(producer); }
    /// Whether an exchange was started and not finished yet, nor ended by `recover`. Local.
    bool exchangeInFlight() const noexcept { return pulls_[0].inFlight() || pulls_[1].inFlight(); }
    /// Completes the exchange. Throws as Exchange::wait.
    void finishExchangeGhosts() { inFlight(pulls_, "exchange").wait(); }
    /// The same for the device: work queued on `consumer` from now on runs after the exchange.
    void finishExchangeGhosts(Device::StreamHandle consumer) { inFlight(pulls_, "exchange").wait(consumer); }

    /// Adds deposits in ghosts to the cells that they are copies of; PushOp::Min and Max take the least or the largest,
    /// Replace the last. After a sum these ghosts are zero, ready for the next deposits; after another operation they
    /// keep their values. Ghosts that are copies of no cell, and corners of a star, take no part and keep theirs.
    /// Copies of a point that blocks share are added to the owner's value and then zero as well: `exchangeGhosts` makes
    /// them equal again. A cell's contributions are applied in the order of their blocks' numbers, and for one block in
    /// the order of its regions (`BlockGrid::ghostRegions`): for given blocks, results have the same bits on any ranks.
    /// Collective. Streams and errors as exchangeGhosts; LayoutError for elements that cannot be added.
    void pushGhosts(PushOp op = PushOp::Sum, Device::StreamHandle producer = nullptr) {
        startPushGhosts(op, producer);
        finishPushGhosts();
    }
    /// Starts a push. Collective at the first call on each side, and whenever `op` differs from that of the previous
    /// call there, since the exchange is then set up again; else Local. Until it is finished, neither cells nor ghosts
    /// are written. Throws as Exchange::start.
    void startPushGhosts(PushOp op = PushOp::Sum, Device::StreamHandle producer = nullptr);
    /// Completes the push. Throws as Exchange::wait.
    void finishPushGhosts() { inFlight(pushes_, "push").wait(); }
    /// The same for the device: work queued on `consumer` from now on runs after the push.
    void finishPushGhosts(Device::StreamHandle consumer) { inFlight(pushes_, "push").wait(consumer); }
    /// Whether `finishPushGhosts` would return without waiting for peers; see Exchange::ready. Local.
    bool pushReady() { return inFlight(pushes_, "push").ready(); }
    /// Whether a push was started and not finished yet. Local.
    bool pushInFlight() const noexcept { return pushes_[0].inFlight() || pushes_[1].inFlight(); }

    /// Sets up the exchange of the field's current side with these options, replacing the previous one. Collective.
    /// `options.space` is ignored. Counts as writing on that side, since ghosts will be written there: the other side
    /// is stale until `toHost` or `toDevice`. Throws as PersistentExchange::init.
    void initExchangeGhosts(const ExchangeOptions &options = {});
    /// The same for pushes of `op`, which do not count as writing. `options.ghosts` is ignored, too. Collective.
    void initPushGhosts(PushOp op = PushOp::Sum, const ExchangeOptions &options = {});
    /// The paths of ghosts to this rank, as a readable table or by peer. Local. Throws StateError before the first
    /// exchange on this side.
    std::string describeExchange() const;
    std::vector<PeerPath> ghostPaths() const;

    /// Makes the device copies current and moves exchanges there. The host copies stay current until the next exchange
    /// or its set-up. Local. Throws as HostDeviceBuffer.
    void toDevice();
    void toDevice(Device::StreamHandle stream);
    /// Makes the host copies current and moves exchanges there. Local.
    void toHost();
    void toHost(Device::StreamHandle stream);
    /// The side on which exchanges run.
    MemorySpace side() const noexcept { return side_; }

    /// The name of the field in messages.
    const std::string &name() const { return data().name(); }
    /// Components of each cell.
    rowsize components() const noexcept { return components_; }

  protected:
    BlockFieldCore() = default;
    BlockFieldCore(BlockFieldCore &&) noexcept = default;
    BlockFieldCore &operator=(BlockFieldCore &&) noexcept = default;
    ~BlockFieldCore() = default;

    /// Takes the array, which has no rows yet. Local.
    void bind(std::shared_ptr<const BlockPattern> pattern, std::shared_ptr<ArrayBase> data, rowsize components);
    /// The resource for the array's memory: shared with the other ranks of the node, so that they can write ghosts and
    /// copies there. Exchanges do not move the array. Local.
    static HostMemoryResource memoryFor(const BlockPattern &pattern);
    /// Throws IndexError if the block does not exist.
    const BlockMemory &memoryOf(int local) const;
    /// Copies all blocks with their ghosts to `into`, which is on the same blocks on other ranks, and brings it to the
    /// same side. Collective.
    void copyTo(BlockFieldCore &into) const;
    /// Throws StateError for a field that was only declared, or moved from.
    void requireMade(SourceLocation where = SourceLocation::current()) const;

  private:
    const ArrayBase &data() const {
        requireMade();
        return *data_;
    }
    /// Exchanges of one direction, on the host and on the device.
    /// Set up at first use on each side, and kept when the field changes sides.
    using OfSides = std::array<PersistentExchange, 2>;

    std::size_t sideNumber() const noexcept { return side_ == MemorySpace::Device ? 1 : 0; }
    void init(OfSides &exchanges, ExchangeOptions options, PushOp op);
    /// The pull of the current side, set up if necessary.
    const std::shared_ptr<Exchange> &ready();
    /// The started exchange, on whichever side; on the device if there is one on both. Throws StateError without one.
    Exchange &inFlight(const OfSides &exchanges, const char *what) const;
    /// The pull of the current side. Throws StateError before it is set up.
    const Exchange &bound() const;

    std::shared_ptr<const BlockPattern> pattern_;
    std::shared_ptr<ArrayBase> data_; ///< exchanges share it, and thus survive moves of the field
    rowsize components_ = 0;
    MemorySpace side_ = MemorySpace::Host; ///< the same on all ranks
    OfSides pulls_{PersistentExchange(Direction::Pull), PersistentExchange(Direction::Pull)};
    OfSides pushes_{PersistentExchange(Direction::Push), PersistentExchange(Direction::Push)};
    std::array<PushOp, 2> pushOps_{}; ///< operations with which `pushes_` were set up
};

/// Placement of a cell's components.
enum class ComponentOrder : unsigned char {
    Inside, ///< adjacent, cell by cell (AoS)
    Outside ///< one box of cells for each component (SoA)
};

/// Options of a BlockField.
struct BlockFieldOptions {
    GhostWidths ghosts{}; ///< layers, and whether exchanges fill corners: GhostWidths{1, 1}.star() fills none
    rowsize components = 1;
    ComponentOrder order = ComponentOrder::Inside;
    Centring centring{}; ///< the points of cells that have values
};

/// Values of type `T` on all cells of a grid: one allocation per rank, one view per block. AMReX calls this a MultiFab,
/// and `exchangeGhosts` FillBoundary; PETSc's DMDA has one block per rank. Move-only. Memory is initially zero.
///
///     const auto grid = BlockGrid::blocksOf(comm, {"box", Box::ofShape(shape), {true, true, true}}, {32, 32, 32});
///     BlockField<real> u("u", comm, grid, {.ghosts = {1, 1, 1}, .components = 5});
///     u.exchangeGhosts();
///     for (int b = 0; b < u.blocks(); ++b)
///         advance(u.view(b));                               // v(i, j, k, component)
///
/// With `BlockFieldOptions::centring` values are at nodes, faces or edges instead: `v(i, j)` is then the lower end of
/// cell (i, j) in the nodal dimensions, where a view of n cells has the extent n + 1. See BlockPattern for shared
/// points.
///
/// `T` is trivially copyable and not bool. Fields made from one BlockPattern share it, and can be exchanged together
/// with one message per peer (ExchangeGroup).
template <class T>
class BlockField : public BlockFieldCore {
  public:
    using Element = T;

    /// An empty field; every call except assignment throws StateError.
    BlockField() = default;
    /// Collective. Throws as BlockPattern::make, ArgumentError for fewer than 1 component, MemoryError.
    BlockField(std::string name, const CommunicatorView &comm, std::shared_ptr<const BlockGrid> grid,
               const BlockFieldOptions &options)
        : BlockField(std::move(name), comm,
                     BlockPattern::make(comm, std::move(grid), options.ghosts,
                                        options.order == ComponentOrder::Outside ? options.components : 0,
                                        options.centring),
                     options.components) {}
    /// Uses a pattern that other fields may share; `comm` is its communicator. `components` are inside the cells; if
    /// the pattern has components outside, it is their number. Collective. Throws as above.
    BlockField(std::string name, const CommunicatorView &comm, const std::shared_ptr<const BlockPattern> &pattern,
               rowsize components = 1)
        : BlockField(std::move(name), comm, pattern, components, NewBytes::Zero) {}

    /// The number of blocks on this rank.
    int blocks() const {
        requireMade();
        return static_cast<int>(blockPattern()->blocks().size());
    }
    /// The block's number in the grid, its cells and its place in memory; `local` counts this rank's blocks from 0.
    const BlockMemory &block(int local) const { return memoryOf(local); }

    /// A view of the rank's block `local` on the host; the device side becomes stale. O(1). Throws StaleError if the
    /// host is not current, IndexError if the block does not exist.
    BlockView<T> view(int local = 0) { return deviceView<DeviceBackend::Host>(local); }
    BlockView<const T> view(int local = 0) const { return deviceView<DeviceBackend::Host>(local); }
    /// The same in the memory of `backend`.
    template <DeviceBackend backend>
    BlockView<T> deviceView(int local = 0) {
        const BlockMemory &memory = memoryOf(local);
        return viewOf(array_->template deviceView<backend>().data(), memory);
    }
    template <DeviceBackend backend>
    BlockView<const T> deviceView(int local = 0) const {
        const BlockMemory &memory = memoryOf(local);
        return viewOf(std::as_const(*array_).template deviceView<backend>().data(), memory);
    }

    /// All rows of this rank's blocks, cells and ghosts (see BlockPattern). For writers and similar code.
    ParArray<T, DynamicSize> &array() {
        requireMade();
        return *array_;
    }
    const ParArray<T, DynamicSize> &array() const {
        requireMade();
        return *array_;
    }

    /// Exchanges the values of two fields on one pattern, ghosts included: old and new state. Names, set-up exchanges
    /// and the fields' places in task graphs stay. All ranks swap the same fields. Local, O(1). Throws ArgumentError
    /// for other patterns or numbers of components, StateError if one is on the device.
    void swapData(BlockField &other) {
        DNDS_CHECK(blockPattern() == other.blockPattern() && components() == other.components(), ArgumentError,
                   "'{}' and '{}' cannot be swapped: they differ in their {}", name(), other.name(),
                   blockPattern() == other.blockPattern() ? "numbers of components"
                                                          : blockPattern()->differenceFrom(*other.blockPattern()));
        DNDS_CHECK(side() == other.side(), StateError,
                   "'{}' and '{}' cannot be swapped: one is on the device, one on the host", name(), other.name());
        array().swapData(other.array());
    }

    /// The same field on the blocks of `to`, which have other ranks: see `BlockGrid::rebalanced`. Cells and ghosts of
    /// all components, those at walls included, name, ghost widths, order and side are the same; this field is
    /// unchanged:
    ///
    ///     u = u.moved(grid);
    ///
    /// Exchanges are set up again at first use; the program remakes its task graphs, groups and views. Collective.
    /// Needs the memory of both fields at once. Throws on all ranks ArgumentError for a grid of other blocks,
    /// StateError for a field in an exchange, and as the constructor; StaleError as exchangeGhosts.
    BlockField moved(const std::shared_ptr<const BlockGrid> &to) const {
        requireMade();
        const CommunicatorView &comm = pattern()->context().comm();
        const BlockPattern &here = *blockPattern();
        BlockField result(array_->name(), comm,
                          BlockPattern::make(comm, to, here.ghosts(), here.componentsOutside(), here.centring()),
                          components(), NewBytes::Unset); // all of them are copied
        copyTo(result);
        return result;
    }

    /// A view of the block `memory` in `all`, the field's memory or a copy with the same layout; null for null. Local,
    /// O(1).
    template <class U>
    BlockView<U> viewOf(U *all, const BlockMemory &memory) const {
        const index width = array_->width();
        const bool outside = blockPattern()->componentsOutside() > 0;
        return {all == nullptr ? nullptr : all + memory.firstRow * width,
                memory.cells,
                memory.extent,
                width,
                components(),
                outside ? memory.extent.size() : 1};
    }

  private:
    BlockField(std::string name, const CommunicatorView &comm, const std::shared_ptr<const BlockPattern> &pattern,
               rowsize components, NewBytes contents) {
        comm.guarded([&] {
            DNDS_CHECK(pattern != nullptr, ArgumentError, "'{}' is given no pattern", name);
            const rowsize outside = pattern->componentsOutside();
            DNDS_CHECK(components >= 1 && (outside == 0 || outside == components), ArgumentError,
                       "'{}' is to have {} components, its pattern has {} outside (0: any number inside)", name,
                       components, outside);
            array_ = std::make_shared<ParArray<T, DynamicSize>>(std::move(name), comm);
            array_->rehost(memoryFor(*pattern));
            const rowsize width = outside > 0 ? 1 : components;
            if (contents == NewBytes::Zero)
                array_->resize(pattern->rows(), width);
            else
                array_->resizeUninitialized(pattern->rows(), width);
            bind(pattern, array_, components);
        });
    }

    std::shared_ptr<ParArray<T, DynamicSize>> array_; ///< the array of the base class, with its type
};

/// Options of copies between fields on blocks.
struct BlockCopyOptions {
    /// Dimension d of `from` runs along dimension `axes[d]` of `to`; {}: the same dimensions. Of two dimensions, {1, 0}
    /// transposes.
    std::vector<int> axes = {};
    /// Also fills ghosts of `to`, each with the cell that a ghost of `from` at this place would copy, through the
    /// periods and connections of the grid of `from`. Exchanges of `to` decide about corners. For PushOp::Replace only.
    bool ghosts = false;
    PushOp op = PushOp::Replace;                   ///< combination of a copied value with the value in `to`
    TransportKind transport = TransportKind::Auto; ///< the same on all ranks
};

/// A copy of the cells of `from` to the cells of `to` with the same index, to be run often. AMReX calls it
/// ParallelCopy. The fields are on one communicator and have equal index spaces (numbers of cells; after `axes`, if
/// given), components and type of values. Blocks, ranks, ghost widths, orders of components and periods may differ.
/// Cells of `to` that no block of `from` has keep their values. Fields at nodes, faces or edges have equal centrings.
/// If blocks of `to` share points, Replace writes all copies; another `op` changes the owner's copy alone, which
/// `exchangeGhosts` brings to the others.
///
///     const auto transpose = makeBlockCopy(u, v, {.axes = {1, 0}});    // v(j, i) = u(i, j)
///     transpose->start();  transpose->wait();
///
/// Collective; cost O(values received + pairs of blocks that meet), one sparse exchange. The copy is an Exchange: a
/// pull, or with another `op` a push. It moves the copies of the side (`side()`) on which both fields are now, and
/// makes the other side of `to` stale; it keeps the fields' memory alive. Throws on all ranks ArgumentError (different
/// communicators, index spaces or components, wrong `axes`, a field to itself, ghosts with another `op` than Replace),
/// LayoutError (different types), StateError (one field on the device and one on the host; ranks pass different fields
/// or options), and as Exchange.
std::shared_ptr<Exchange> makeBlockCopy(const BlockFieldCore &from, BlockFieldCore &to,
                                        const BlockCopyOptions &options = {});

/// Makes such a copy, runs it once, and drops it. Collective.
void copyBlocks(const BlockFieldCore &from, BlockFieldCore &to, const BlockCopyOptions &options = {});

/// The elements of an operation, and where it runs.
struct BlockElements {
    rowsize component = -1;          ///< this one only; -1: all
    std::optional<bool> ghosts = {}; ///< whether ghosts count, too; changes: yes, reductions: no
    /// Sums do not depend on blocks, ranks and order: the bits of `Task::Graph::reduce`. 2 to 4 ns an element.
    bool exact = false;
    Executor on = Executor::host();
};

/// u = value
void setConstant(BlockField<real> &u, real value, const BlockElements &elements = {});
/// to = from
void copy(BlockField<real> &to, const BlockField<real> &from, const BlockElements &elements = {});
/// u *= factor
void scale(BlockField<real> &u, real factor, const BlockElements &elements = {});
/// y += a x
void axpy(BlockField<real> &y, real a, const BlockField<real> &x, const BlockElements &elements = {});

/// The sum of the products of all elements with their partners.
real dot(const BlockField<real> &u, const BlockField<real> &v, const BlockElements &elements = {});
/// The sum of all elements; of their magnitudes; the Euclidean norm; the largest magnitude, 0 without elements.
real sum(const BlockField<real> &u, const BlockElements &elements = {});
real norm1(const BlockField<real> &u, const BlockElements &elements = {});
real norm2(const BlockField<real> &u, const BlockElements &elements = {});
real normInf(const BlockField<real> &u, const BlockElements &elements = {});
/// The smallest and the largest element; +infinity and -infinity without elements.
real min(const BlockField<real> &u, const BlockElements &elements = {});
real max(const BlockField<real> &u, const BlockElements &elements = {});

} // namespace DNDS
