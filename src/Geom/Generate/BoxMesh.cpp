#include "DNDS/Geom/Generate/BoxMesh.hpp"

#include "DNDS/Geom/Generate/BoxPattern.hpp"
#include "DNDS/Geom/Source/IndexPermutation.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numbers>
#include <utility>

namespace DNDS::Geom {

namespace {

using Detail::BoxElement;

// In the order of BoxCells, so that a value is its own position.
constexpr std::pair<std::string_view, BoxCells> words[] = {
    {"triangles", BoxCells::Triangles},        {"quadrilaterals", BoxCells::Quadrilaterals},
    {"mixed-surface", BoxCells::MixedSurface}, {"tetrahedra", BoxCells::Tetrahedra},
    {"hexahedra", BoxCells::Hexahedra},        {"prisms", BoxCells::Prisms},
    {"mixed-volume", BoxCells::MixedVolume},   {"polyhedra", BoxCells::Polyhedra}};

bool isSurface(BoxCells fill) { return fill <= BoxCells::MixedSurface; }

bool isFlat(const BoxRamp &ramp) { return ramp.angle == 0.0; }

/// Throws unless edges of bricks meet the sides at `place` of `length`.
void checkEdge(const char *what, char axis, real place, real length, index cells) {
    const real bricks = place / length * static_cast<real>(cells);
    DNDS_CHECK(std::fabs(bricks - std::round(bricks)) < 1e-6, ArgumentError,
               "the corner of a {0} at {1} = {2} is {3:.3f} of {4} bricks from {1}-: choose a number of bricks in {1} "
               "or a length with an edge there",
               what, axis, place, bricks, cells);
}

// Nodes of the step's corners must be nodes of the grid.
void checkStep(const BoxMeshOptions &options) {
    const auto [start, height] = options.step;
    if (height == 0.0)
        return;
    DNDS_CHECK(options.fill == BoxCells::Triangles || options.fill == BoxCells::Quadrilaterals, ArgumentError,
               "a box with a step is filled with triangles or quadrilaterals");
    DNDS_CHECK(start > 0.0 && start < options.lengths[0] && height > 0.0 && height < options.lengths[1], ArgumentError,
               "a step from x = {}, up to y = {}, is outside the box [0, {}] x [0, {}]", start, height,
               options.lengths[0], options.lengths[1]);
    checkEdge("step", 'x', start, options.lengths[0], options.cells[0]);
    checkEdge("step", 'y', height, options.lengths[1], options.cells[1]);
    const auto isInside = [&](std::size_t d, real place) {
        const auto bricks = std::llround(place / options.lengths[d] * static_cast<real>(options.cells[d]));
        return bricks > 0 && bricks < options.cells[d];
    };
    DNDS_CHECK(isInside(0, start) && isInside(1, height), ArgumentError,
               "a step from x = {}, up to y = {}, is at a side of the box", start, height);
    DNDS_CHECK(options.jitter == 0.0 && !options.periodic[0] && !options.periodic[1], ArgumentError,
               "a box with a step can have neither jitter nor periodic sides");
}

/// Both sides are piecewise linear, so the gap is smallest at a corner or at the end.
void checkRamps(const BoxMeshOptions &options) {
    const real length = options.lengths[0];
    for (const BoxRamp &ramp : {options.floor, options.ceiling}) {
        if (isFlat(ramp))
            continue;
        DNDS_CHECK(std::fabs(ramp.angle) < 89.0, ArgumentError, "a ramp of {} degrees: it must be less than 89",
                   ramp.angle);
        DNDS_CHECK(ramp.start >= 0.0 && ramp.start < length, ArgumentError,
                   "a ramp from x = {} is outside the box [0, {}]", ramp.start, length);
        checkEdge("ramp", 'x', ramp.start, length, options.cells[0]);
        DNDS_CHECK(options.jitter == 0.0, ArgumentError, "a box with ramps cannot have jitter");
        DNDS_CHECK(!options.periodic[0], ArgumentError,
                   "sides x- and x+ of a box with ramps differ: they cannot be periodic");
        DNDS_CHECK(!options.periodic[1] ||
                       (options.floor.angle == options.ceiling.angle && options.floor.start == options.ceiling.start),
                   ArgumentError, "sides y- and y+ with different ramps differ: they cannot be periodic");
    }
    // The gap is linear between these.
    const auto corner = [](const BoxRamp &ramp) { return isFlat(ramp) ? 0.0 : ramp.start; };
    for (const real x : {corner(options.floor), corner(options.ceiling), length}) {
        const real gap = options.lengths[1] + options.ceiling.heightAt(x) - options.floor.heightAt(x);
        DNDS_CHECK(gap > 1e-6 * options.lengths[1], ArgumentError, "floor and ceiling of the box meet before x = {}",
                   x);
    }
}

/// The position of a point of the plain box between floor and ceiling. y is scaled to the gap at its x: vertical grid
/// lines stay straight, and the far side lies on the ceiling exactly.
std::array<real, 3> bend(const BoxMeshOptions &options, std::array<real, 3> p) {
    if (isFlat(options.floor) && isFlat(options.ceiling))
        return p;
    const real low = options.floor.heightAt(p[0]);
    const real high = options.lengths[1] + options.ceiling.heightAt(p[0]);
    p[1] = p[1] == options.lengths[1] ? high : low + p[1] / options.lengths[1] * (high - low);
    return p;
}

/// The guarantees of makeBoxMesh: numbers without overflow, positive cells, and periodic sides that match.
void checkOptions(const BoxMeshOptions &options) {
    DNDS_CHECK(options.fill <= BoxCells::Polyhedra, ArgumentError, "{} is not a value of BoxCells",
               static_cast<int>(options.fill));
    const int dimension = isSurface(options.fill) ? 2 : 3;
    index bricks = 1;
    for (std::size_t d = 0; d < static_cast<std::size_t>(dimension); d++) {
        // Six tetrahedra and eight second-order nodes a brick must not overflow: 2^56 bricks leave a factor of 128.
        DNDS_CHECK(options.cells[d] >= 1 && options.cells[d] <= (index{1} << 56) / bricks, ArgumentError,
                   "a box of {} x {} x {} bricks", options.cells[0], options.cells[1], options.cells[2]);
        bricks *= options.cells[d];
        DNDS_CHECK(options.lengths[d] > 0 && options.lengths[d] < 1e300, ArgumentError, "a box of length {}",
                   options.lengths[d]);
    }
    DNDS_CHECK(options.jitter >= 0.0 && options.jitter <= 0.15, ArgumentError, "jitter {} is outside [0, 0.15]",
               options.jitter);
    DNDS_CHECK(options.fill != BoxCells::MixedVolume || options.cells[0] >= 4, ArgumentError,
               "a mixed-volume box needs at least 4 bricks in x, not {}", options.cells[0]);
    DNDS_CHECK(options.fill != BoxCells::MixedVolume || !options.periodic[0], ArgumentError,
               "sides x- and x+ of a mixed-volume box differ: they cannot be periodic");
    DNDS_CHECK(dimension == 3 || !options.periodic[2], ArgumentError, "a box of two dimensions is not periodic in z");
    DNDS_CHECK(!options.secondOrder || (options.fill != BoxCells::MixedVolume && options.fill != BoxCells::Polyhedra &&
                                        options.jitter == 0.0 && options.step.height == 0.0),
               ArgumentError, "a box of second-order cells has neither pyramids, polyhedra, jitter nor a step");
    checkRamps(options);
    checkStep(options);
}

/// The first of `count` numbers in block `part` of `parts`, without overflow.
/// Rounded down; blocks differ by one at most.
index blockBegin(index count, int part, int parts) { return count / parts * part + count % parts * part / parts; }

/// The final numbers of entities: natural or shuffled.
/// A shuffled mesh needs no table: the permutation is evaluated for each number.
class Numbering {
  public:
    Numbering(index count, const BoxMeshOptions &options, std::uint64_t salt)
        : permutation_(count, mixBits(options.seed + salt)), shuffled_(options.shuffled) {}

    index natural(index number) const { return shuffled_ ? permutation_.inverse(number) : number; }
    index final(index natural) const { return shuffled_ ? permutation_(natural) : natural; }

  private:
    IndexPermutation permutation_;
    bool shuffled_;
};

/// Appends an element whose nodes are natural numbers; polyhedra list corner counts between them.
void append(ElementBlock &block, const BoxElement &element, const Numbering &nodeNumbering) {
    block.types.push_back(element.type);
    index corners = 0;
    for (const index value : element.nodes) {
        const bool isCount = element.type == ElementType::Polyhedron && corners == 0;
        block.nodes.push_back(isCount ? value : nodeNumbering.final(value));
        corners = isCount ? value : corners - 1;
    }
    block.starts.push_back(static_cast<index>(block.nodes.size()));
}

/// The marks of the sides, and their patches and connections.
/// A mark is the number of a patch or of the side of a connection, as SourceMesh::faceMarks has it.
std::array<int, 6> nameSides(const BoxMeshOptions &options, int dimension, SourceMesh &mesh) {
    constexpr std::array<const char *, 3> names{"x", "y", "z"};
    std::array<int, 6> marks{};
    for (std::size_t d = 0; d < static_cast<std::size_t>(dimension); d++) {
        if (options.periodic[d]) {
            const auto connection = static_cast<int>(mesh.periodic.size());
            marks[2 * d] = -1 - 2 * connection;
            marks[2 * d + 1] = -1 - (2 * connection + 1);
            PeriodicTransform transform;
            transform.translation[d] = options.lengths[d];
            mesh.periodic.push_back({names[d], transform});
            continue;
        }
        for (std::size_t end = 0; end < 2; end++) {
            marks[2 * d + end] = static_cast<int>(mesh.patches.size());
            mesh.patches.push_back({std::string(names[d]) + (end == 0 ? "-" : "+"), "", ""});
        }
    }
    return marks;
}

} // namespace

real BoxRamp::heightAt(real x) const {
    return isFlat(*this) ? 0 : std::fmax(0.0, x - start) * std::tan(angle * std::numbers::pi / 180);
}

BoxCells boxCellsOf(std::string_view word) {
    std::string known;
    for (const auto &[name, fill] : words) {
        if (name == word)
            return fill;
        known += known.empty() ? "" : ", ";
        known += name;
    }
    throw ArgumentError(fmt::format("a box cannot be filled with '{}'; known cells: {}", word, known));
}

/// Every entity is computed from its number, so a block costs its own size only. The inverse of the numbering gives the
/// entity that has a number of this block; the numbering itself gives the final numbers of its nodes.
/// O(block) time and memory, no messages. Positions and numbers depend on the options alone, so the mesh is the
/// same to the last bit for any `parts`.
SourceMesh makeBoxMesh(const BoxMeshOptions &options, int part, int parts) {
    DNDS_CHECK(parts >= 1 && part >= 0 && part < parts, ArgumentError, "block {} of {}", part, parts);
    checkOptions(options);
    auto pattern = options.secondOrder                   ? Detail::makeSecondOrderPattern(options)
                   : options.fill == BoxCells::Polyhedra ? Detail::makeColumnPattern(options)
                                                         : Detail::makeBrickPattern(options);
    if (options.step.height != 0.0)
        pattern = Detail::cutStep(std::move(pattern), options);
    SourceMesh mesh;
    mesh.origin =
        fmt::format("box of {} x {} x {} {}{}", options.cells[0], options.cells[1],
                    pattern->dimension() == 2 ? 1 : options.cells[2],
                    words[static_cast<std::size_t>(options.fill)].first, options.secondOrder ? " of second order" : "");
    mesh.cellDimension = mesh.physicalDimension = pattern->dimension();
    const std::array<int, 6> marks = nameSides(options, mesh.cellDimension, mesh);

    const Numbering nodeNumbering(pattern->nodeCount(), options, 0);
    mesh.globalNodes = pattern->nodeCount();
    mesh.firstNode = blockBegin(mesh.globalNodes, part, parts);
    const index endNode = blockBegin(mesh.globalNodes, part + 1, parts);
    mesh.coordinates.reserve(static_cast<std::size_t>(endNode - mesh.firstNode));
    for (index number = mesh.firstNode; number < endNode; number++)
        mesh.coordinates.push_back(bend(options, pattern->position(nodeNumbering.natural(number))));

    BoxElement element;
    // Cells and faces alike; `salt` gives each kind a permutation of its own.
    const auto fill = [&](ElementBlock &block, index count, std::uint64_t salt, auto &&makeElement) {
        const Numbering numbering(count, options, salt);
        block.globalSize = count;
        block.first = blockBegin(count, part, parts);
        const index end = blockBegin(count, part + 1, parts);
        block.types.reserve(static_cast<std::size_t>(end - block.first));
        block.starts.reserve(static_cast<std::size_t>(end - block.first) + 1);
        for (index number = block.first; number < end; number++) {
            makeElement(numbering.natural(number));
            append(block, element, nodeNumbering);
        }
    };
    fill(mesh.cells, pattern->cellCount(), 1, [&](index natural) { pattern->cell(natural, element); });
    fill(mesh.faces, pattern->faceCount(), 2, [&](index natural) {
        pattern->face(natural, element);
        mesh.faceMarks.push_back(marks[static_cast<std::size_t>(element.side)]);
    });
    for (index number = 0; number < mesh.cells.size(); number++)
        mesh.cells.fileIds.push_back(mesh.cells.first + number + 1);
    for (index number = 0; number < mesh.faces.size(); number++)
        mesh.faces.fileIds.push_back(mesh.cells.globalSize + mesh.faces.first + number + 1);
    return mesh;
}

} // namespace DNDS::Geom
