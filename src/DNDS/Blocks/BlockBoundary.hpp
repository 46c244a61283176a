/// @file BlockBoundary.hpp
/// @brief Rules that fill ghosts beyond the ends of index spaces: walls, inflow, outflow.
#pragma once

#include "DNDS/Blocks/BlockField.hpp"
#include "DNDS/Device/Hooks.hpp"
#include "DNDS/Device/ParallelFor.hpp"

#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

namespace DNDS {

/// One end of a dimension of index spaces.
struct BlockFace {
    int dim = 0;
    bool high = false;
    int space = -1; ///< -1: of all spaces in which the dimension is not periodic
};
/// The face below the first, and above the last cells of dimension `dim`.
constexpr BlockFace lowFace(int dim, int space = -1) { return {dim, false, space}; }
constexpr BlockFace highFace(int dim, int space = -1) { return {dim, true, space}; }

/// The source of ghosts beyond a face.
enum class BoundaryRule : unsigned char {
    None,     ///< left to the program
    Constant, ///< a number
    Nearest,  ///< a copy of the nearest cell in this dimension
    Mirror,   ///< a factor times the cell that is the ghost's mirror image in the face, plus a number
    Function  ///< computed from position and time
};

/// A ghost beyond a face, for functions that compute its value. It lies at `cell[d]` + 1/2, in cells, or at `cell[d]`
/// where the field's centring has nodes.
struct BoundaryGhost {
    index cell[maxBlockDims] = {}; // NOLINT: plain, for kernels; in the numbers of the index space
    rowsize component = 0;
    BlockFace face; ///< never of all spaces: its space is set
    real time = 0;  ///< set by `BlockBoundary::setTime`
};

/// Ghosts of one block beyond one face, where no neighbour follows.
struct BoundarySlab {
    int local = 0; ///< counts this rank's blocks
    BlockFace face;
    Box ghosts; ///< in the numbers of the index space
};

/// Ghosts of one component of a slab, and their rule. The ElementBox places them in the rank's memory. Plain data:
/// kernels get boxes by value.
template <class T>
struct BoundaryBox : ElementBox {
    index lower[maxBlockDims] = {}; // NOLINT: of the ghosts, in the numbers of the index space
    index edge = 0;                 ///< the cell at the face, or the node on it, in the face's dimension
    index mirror = 0;               ///< the number of a ghost plus that of its mirror image
    T value{};                      ///< the constant, or the number that is added to mirrored cells
    T factor{};                     ///< factor of mirrored cells
    int dims = 0;
    BlockFace face;
    rowsize component = 0;
    BoundaryRule rule = BoundaryRule::None;
};

/// Geometry of boundaries, without types. All functions are Local.
namespace BoundaryGeometry {

/// The slabs of this rank's blocks, in ascending dimensions; slabs of one dimension do not overlap. O(regions x blocks
/// nearby).
std::vector<BoundarySlab> slabsOf(const BlockPattern &pattern);
/// The index spaces of a face, with the same result on all ranks, as all know the grid. Throws ArgumentError for
/// missing dimensions and spaces, and periodic dimensions.
std::vector<int> spacesOf(const BlockGrid &grid, const BlockFace &face);
/// Throws ArgumentError unless all blocks reach the cells that are mirrored at the face; checks blocks of all ranks, so
/// that all ranks throw. O(blocks of the grid).
void requireMirrored(const BlockPattern &pattern, const BlockFace &face);
/// The place of one component of the cells in `box` among the elements of the rank, if `width` components are inside
/// cells. Dimensions of the box are the last ones of the result.
ElementBox elementsOf(const BlockMemory &block, const Box &box, index width, rowsize component);

} // namespace BoundaryGeometry

/// Rules for the ghosts beyond the faces of a grid, where these are neither periodic nor connected:
///
///     BlockBoundary boundary(u, Inflow{speed});         // or without a function: BlockBoundary boundary(u)
///     boundary.function(lowFace(0));                    // Inflow's operator()(BoundaryGhost), for host and device
///     boundary.nearest(highFace(0));
///     boundary.mirror(lowFace(1), 1);                   // all components ...
///     boundary.mirror(lowFace(1), -1, 1);               // ... but component 1 changes its sign
///     boundary.dirichlet(highFace(1), 300);
///     exchangeAndFill(u, boundary);                     // each step
///
/// Dimensions are filled in ascending order, each beyond both faces over the whole width of the block, its other ghosts
/// included. A ghost beyond several faces, at an edge or corner, thus gets the rule of the highest of these dimensions
/// that has one, applied to a ghost that an exchange or a lower dimension has filled. Exchanges of a star (GhostShape)
/// fill no ghosts at edges and corners: there, rules read old values. A face has no rules where a connection leads
/// beyond it, and neither have the ghosts beside the neighbour's cells there: they belong to the neighbour's walls.
/// Ghosts that are copies of cells, ghosts in holes of an index space, and ghosts beyond a neighbour with fewer layers
/// of cells than this one has ghosts are left alone.
///
/// If the field's centring has nodes in the face's dimension, ghosts begin beyond the node on the face, and rules
/// mirror at it. Values on the face itself belong to the program.
///
/// One object serves all fields with the pattern and number of components of the first. `T` is a number. Move-only.
template <class T, class TFunction = std::nullptr_t>
class BlockBoundary {
    static_assert(std::is_arithmetic_v<T>, "rules fill numbers");

  public:
    /// No rules yet. Local. O(ghosts' regions).
    explicit BlockBoundary(const BlockField<T> &field, TFunction function = {})
        : pattern_(field.blockPattern()), function_(function), components_(field.components()),
          slabs_(BoundaryGeometry::slabsOf(*pattern_)) {
        const std::size_t faces = pattern_->grid()->spaces().size() * maxBlockDims * 2;
        rules_.resize(faces * toSize(components_));
        time_.setName("time of the boundary of " + field.name());
        time_.resize(1);
    }

    /// Sets the rule of a face for one component, or for all (-1). Local; all ranks give the same. Throw ArgumentError,
    /// on all ranks alike, for missing faces and components and faces of periodic dimensions; `mirror` and `dirichlet`
    /// also if a block at the face is thinner than its ghosts, so that it lacks mirrored cells.
    void constant(const BlockFace &face, T value, rowsize component = -1) {
        set(face, {BoundaryRule::Constant, value}, component);
    }
    /// No gradient, to first order at any width: walls without flow of heat, outflow.
    void nearest(const BlockFace &face, rowsize component = -1) { set(face, {BoundaryRule::Nearest}, component); }
    /// The first ghost is `factor` times the cell at the face (or the node next to the one on it), the second times the
    /// next, and so on.
    void mirror(const BlockFace &face, T factor, rowsize component = -1) {
        BoundaryGeometry::requireMirrored(*pattern_, face);
        set(face, {BoundaryRule::Mirror, {}, factor}, component);
    }
    /// A value on the face itself: halfway between a ghost, which may be negative, and the cell that it mirrors.
    void dirichlet(const BlockFace &face, T value, rowsize component = -1) {
        BoundaryGeometry::requireMirrored(*pattern_, face);
        set(face, {BoundaryRule::Mirror, static_cast<T>(2 * value), static_cast<T>(-1)}, component);
    }
    void function(const BlockFace &face, rowsize component = -1) {
        static_assert(!std::is_same_v<TFunction, std::nullptr_t>, "the boundary was made without a function");
        set(face, {BoundaryRule::Function}, component);
    }
    void none(const BlockFace &face, rowsize component = -1) { set(face, {BoundaryRule::None}, component); }

    /// Sets the time that functions get, 0 at first. Not while a plan runs. Local; waits for the device, where kernels
    /// may still read the time before.
    void setTime(real time) {
        const bool there = time_.valid(MemorySpace::Device);
        time_(0, 0) = time;
        if (!there)
            return;
        Device::synchronizeAll();
        time_.toDevice();
    }
    /// The time in the memory of `space`, where later calls of `setTime` bring it, too. Local.
    const real *timeIn(MemorySpace space) const {
        if (space == MemorySpace::Host)
            return std::as_const(time_).data();
        if (!time_.valid(MemorySpace::Device))
            time_.toDevice();
        return std::as_const(time_).template deviceView<DeviceBackend::CUDA>().data();
    }

    /// The pattern and the function with which it was made. Local.
    const std::shared_ptr<const BlockPattern> &blockPattern() const noexcept { return pattern_; }
    const TFunction &boundaryFunction() const noexcept { return function_; }
    /// The ghosts of dimension `dim` that have rules.
    std::span<const BoundaryBox<T>> boxes(int dim) const { return boxes_[toSize(dim)]; }
    /// Throws ArgumentError unless the field has this pattern and number of components. Local.
    void requireFits(const BlockField<T> &field) const {
        DNDS_CHECK(field.blockPattern() == pattern_ && field.components() == components_, ArgumentError,
                   "'{}' is not on the pattern of this boundary, or not of its {} components: make a boundary of it",
                   field.name(), components_);
    }

  private:
    /// Mirrored ghosts get `factor` x cell + `value`, constant ones `value`.
    struct Rule {
        BoundaryRule kind = BoundaryRule::None;
        T value{};
        T factor{};
    };

    /// The rule of a face of one space. The table has an entry for every face.
    Rule &ruleOf(const BlockFace &face, rowsize component) {
        const int number = (face.space * maxBlockDims + face.dim) * 2 + (face.high ? 1 : 0);
        return rules_[toSize(number) * toSize(components_) + toSize(component)];
    }
    /// Checks the face before it looks at slabs, so that ranks without slabs there throw as well.
    void set(BlockFace face, const Rule &rule, rowsize component) {
        DNDS_CHECK(component >= -1 && component < components_, ArgumentError,
                   "component {} of {} gets a rule: give -1 for all", component, components_);
        for (const int space : BoundaryGeometry::spacesOf(*pattern_->grid(), face)) {
            face.space = space;
            for (rowsize c = 0; c < components_; ++c)
                if (component < 0 || c == component)
                    ruleOf(face, c) = rule;
        }
        list();
    }
    /// Lists the boxes of all slabs and components with rules, by dimension, since dimensions are filled one after the
    /// other. O(slabs x components), at each change of a rule, so that filling only reads.
    void list() {
        for (auto &boxes : boxes_)
            boxes.clear();
        const rowsize inside = pattern_->componentsOutside() > 0 ? 1 : components_;
        for (const BoundarySlab &slab : slabs_)
            for (rowsize c = 0; c < components_; ++c) {
                const Rule rule = ruleOf(slab.face, c);
                if (rule.kind == BoundaryRule::None)
                    continue;
                const BlockMemory &block = pattern_->blocks()[toSize(slab.local)];
                BoundaryBox<T> box;
                static_cast<ElementBox &>(box) = BoundaryGeometry::elementsOf(block, slab.ghosts, inside, c);
                box.dims = slab.ghosts.dims;
                std::copy_n(slab.ghosts.lower.begin(), box.dims, box.lower);
                const Centring &centring = pattern_->centring();
                const Box cells = centring.pointsOf(pattern_->grid()->spaces()[toSize(slab.face.space)].cells);
                const std::size_t d = toSize(slab.face.dim);
                box.edge = slab.face.high ? cells.upper[d] - 1 : cells.lower[d];
                // Cells mirror at the plane between the edge cell and the first ghost, nodes at the edge node.
                box.mirror = 2 * box.edge + (centring.nodal[d] ? 0 : slab.face.high ? 1 : -1);
                box.value = rule.value;
                box.factor = rule.factor;
                box.face = slab.face;
                box.component = c;
                box.rule = rule.kind;
                boxes_[d].push_back(box);
            }
    }

    std::shared_ptr<const BlockPattern> pattern_;
    TFunction function_;
    rowsize components_;
    std::vector<BoundarySlab> slabs_;
    std::vector<Rule> rules_;                                     ///< [spaces x dimensions x 2 x components]
    std::array<std::vector<BoundaryBox<T>>, maxBlockDims> boxes_; ///< boxes of each dimension
    mutable Array<real, 1> time_; ///< one number, in device memory so that captured kernels read the latest one
};

inline namespace DNDS_DEVICE_COMPILATION {

/// Fills one ghost. Reads at most one other element, which no ghost of the same dimension is: ghosts may be filled
/// concurrently.
template <class T, class TFunction>
struct BoundaryKernel {
    T *elements; ///< all elements of the rank
    TFunction function;
    const real *time; ///< in the memory in which the kernel runs

    /// Fills the ghost with indices `at` in a box.
    DNDS_HOST_DEVICE void operator()(const BoundaryBox<T> &box, const index *at, index element) const {
        const int first = maxBlockDims - box.dims; // of the box's four dimensions
        if (box.rule == BoundaryRule::Constant) {
            elements[element] = box.value;
        } else if (box.rule == BoundaryRule::Function) {
            if constexpr (!std::is_same_v<TFunction, std::nullptr_t>) {
                BoundaryGhost ghost;
                for (int d = 0; d < box.dims; ++d)
                    ghost.cell[d] = box.lower[d] + at[first + d];
                ghost.component = box.component;
                ghost.face = box.face;
                ghost.time = *time;
                elements[element] = static_cast<T>(function(ghost));
            }
        } else {
            const int d = box.face.dim;
            const index ghost = box.lower[d] + at[first + d];
            const bool mirrored = box.rule == BoundaryRule::Mirror;
            const index source = mirrored ? box.mirror - ghost : box.edge;
            const T value = elements[element + (source - ghost) * box.strides[first + d]];
            elements[element] = mirrored ? static_cast<T>(box.factor * value + box.value) : value;
        }
    }
};

/// Fills the ghosts of `field` that have rules. Ghosts that are copies of cells must be current. Dimensions are filled
/// in order, as later ones read ghosts at edges that earlier ones have filled; on the device by a kernel for each (more
/// with many blocks), in sources as for `parallelFor`. Local. O(ghosts). Throws ArgumentError for other patterns,
/// StaleError if the field is not current in the memory of `on`.
template <class T, class TFunction>
void fillGhosts(BlockField<T> &field, const BlockBoundary<T, TFunction> &boundary,
                const Executor &on = Executor::host()) {
    boundary.requireFits(field);
    T *elements =
        on.onDevice() ? field.array().template deviceView<DeviceBackend::CUDA>().data() : field.array().view().data();
    const BoundaryKernel<T, TFunction> kernel{elements, boundary.boundaryFunction(), boundary.timeIn(on.space())};
    for (int d = 0; d < maxBlockDims; ++d)
        forBoxes(on, boundary.boxes(d), kernel);
}

/// `exchangeGhosts`, then `fillGhosts`: all ghosts of the field. To overlap the exchange with work, call
/// `startExchangeGhosts`, `finishExchangeGhosts` and `fillGhosts`. The field is on the side of `on`. Collective. Throws
/// as these, and StateError if the field is on the other side.
template <class T, class TFunction>
void exchangeAndFill(BlockField<T> &field, const BlockBoundary<T, TFunction> &boundary,
                     const Executor &on = Executor::host()) {
    DNDS_CHECK(field.side() == on.space(), StateError,
               "the ghosts of '{}' are exchanged on the {}, but are to be filled on the other side: call {}",
               field.name(), on.onDevice() ? "host" : "device", on.onDevice() ? "toDevice" : "toHost");
    field.startExchangeGhosts(on.stream());
    if (on.onDevice())
        field.finishExchangeGhosts(on.stream());
    else
        field.finishExchangeGhosts();
    fillGhosts(field, boundary, on);
}

} // namespace DNDS_DEVICE_COMPILATION

} // namespace DNDS
