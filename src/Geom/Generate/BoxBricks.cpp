#include "DNDS/Geom/Generate/BoxPattern.hpp"

#include "DNDS/Geom/Source/IndexPermutation.hpp"

#include <algorithm>
#include <span>

namespace DNDS::Geom::Detail {

namespace {

/// Bricks number their corners as HEXA_8; 8 is the centre. Rectangles use 0 to 3.
constexpr std::uint8_t centre = 8;
constexpr std::array<std::array<int, 3>, 8> cornerOffset{
    {{0, 0, 0}, {1, 0, 0}, {1, 1, 0}, {0, 1, 0}, {0, 0, 1}, {1, 0, 1}, {1, 1, 1}, {0, 1, 1}}};

/// A cell of a brick; nodes are corners of the brick, or its centre.
struct BrickCell {
    ElementType type;
    std::vector<std::uint8_t> nodes;
};

/// A face of a cell on a side of the brick.
struct BrickFace {
    ElementType type;
    std::vector<std::uint8_t> nodes;
};

/// A subdivision of a brick, and the faces it makes on each side.
struct Cut {
    std::vector<BrickCell> cells;
    std::array<std::vector<BrickFace>, 6> sides;
};

/// Sides are numbered x-, x+, y-, y+, z-, z+.
bool onSide(std::uint8_t node, int side) {
    return node != centre && cornerOffset[node][static_cast<std::size_t>(side / 2)] == side % 2;
}

ElementType faceType(int corners) {
    return corners == 2 ? ElementType::Bar2 : corners == 3 ? ElementType::Tri3 : ElementType::Quad4;
}

/// Faces of the brick's sides follow from its cells: a face of a cell is on a side if all its corners are.
Cut makeCut(std::vector<BrickCell> cells) {
    Cut cut{std::move(cells), {}};
    for (const BrickCell &cell : cut.cells) {
        const ElementInfo &info = elementInfo(cell.type);
        for (const ElementFace &face : info.faces)
            for (int side = 0; side < 2 * info.dimension; side++) {
                std::vector<std::uint8_t> nodes;
                for (int k = 0; k < face.corners; k++)
                    nodes.push_back(cell.nodes[face.corner[static_cast<std::size_t>(k)]]);
                if (std::all_of(nodes.begin(), nodes.end(), [&](std::uint8_t node) { return onSide(node, side); }))
                    cut.sides[static_cast<std::size_t>(side)].push_back({faceType(face.corners), std::move(nodes)});
            }
    }
    return cut;
}

/// The subdivisions, with cells of positive volume. Those of one mesh fit together across bricks, as opposite sides
/// are cut alike.
Cut triangles() { return makeCut({{ElementType::Tri3, {0, 1, 2}}, {ElementType::Tri3, {0, 2, 3}}}); }
Cut quadrilateral() { return makeCut({{ElementType::Quad4, {0, 1, 2, 3}}}); }
Cut hexahedron() { return makeCut({{ElementType::Hexa8, {0, 1, 2, 3, 4, 5, 6, 7}}}); }
Cut prisms() { return makeCut({{ElementType::Penta6, {0, 1, 2, 4, 5, 6}}, {ElementType::Penta6, {0, 2, 3, 4, 6, 7}}}); }
/// The paths from corner 0 to corner 6 along the edges: faces between bricks are cut from their lowest to their highest
/// corner, so that neighbours agree (Kuhn, 1960).
Cut tetrahedra() {
    const auto type = ElementType::Tetra4;
    return makeCut({{type, {0, 1, 2, 6}},
                    {type, {0, 2, 3, 6}},
                    {type, {0, 3, 7, 6}},
                    {type, {0, 7, 4, 6}},
                    {type, {0, 4, 5, 6}},
                    {type, {0, 5, 1, 6}}});
}
/// From bricks with whole sides at x- to tetrahedra at x+.
Cut pyramidsAndTetrahedra() {
    const auto pyramid = ElementType::Pyra5;
    const auto tetrahedron = ElementType::Tetra4;
    return makeCut({{pyramid, {0, 1, 2, 3, centre}},
                    {pyramid, {4, 7, 6, 5, centre}},
                    {pyramid, {0, 4, 5, 1, centre}},
                    {pyramid, {2, 6, 7, 3, centre}},
                    {pyramid, {3, 7, 4, 0, centre}},
                    {tetrahedron, {1, 6, 2, centre}},
                    {tetrahedron, {1, 5, 6, centre}}});
}

/// Bricks from `begin` to `end` in x with the same subdivision.
struct BrickRegion {
    index begin;
    index end;
    Cut cut;
};

/// Regions follow each other in x; a mixed volume needs a layer that joins whole sides to sides of two triangles.
/// Opposite sides in y and z of a region are cut alike, as are the sides of neighbouring regions in x: the mesh
/// conforms. The joining layer turns whole sides (x-) into pairs of triangles (x+).
std::vector<BrickRegion> makeRegions(const BoxMeshOptions &options) {
    const index nx = options.cells[0];
    std::vector<BrickRegion> regions;
    const auto add = [&](index begin, index end, Cut cut) {
        if (begin < end)
            regions.push_back({begin, end, std::move(cut)});
    };
    switch (options.fill) {
    case BoxCells::Triangles:
        add(0, nx, triangles());
        break;
    case BoxCells::Quadrilaterals:
        add(0, nx, quadrilateral());
        break;
    case BoxCells::MixedSurface:
        add(0, (nx + 1) / 2, quadrilateral());
        add((nx + 1) / 2, nx, triangles());
        break;
    case BoxCells::Tetrahedra:
        add(0, nx, tetrahedra());
        break;
    case BoxCells::Hexahedra:
        add(0, nx, hexahedron());
        break;
    case BoxCells::Prisms:
        add(0, nx, prisms());
        break;
    case BoxCells::MixedVolume:
        add(0, nx / 4, hexahedron());
        add(nx / 4, nx / 2, prisms());
        add(nx / 2, nx / 2 + 1, pyramidsAndTetrahedra());
        add(nx / 2 + 1, nx, tetrahedra());
        break;
    case BoxCells::Polyhedra:
        break;
    }
    return regions;
}

/// Faces of one side, from the bricks of one region.
struct SidePart {
    index first; ///< number of its first face
    index count;
    int side;
    std::size_t region;
};

// Only pyramids and tetrahedra of the joining layer use the centre.
bool hasCentres(const BrickRegion &region) {
    return std::any_of(region.cut.cells.begin(), region.cut.cells.end(),
                       [](const BrickCell &cell) { return cell.nodes.back() == centre; });
}

/// Natural numbers: nodes of the grid with x fastest, then centres; cells by region, brick and cell of the brick;
/// faces by side, region, brick.
/// Every query is O(log regions): numbers are decoded by division, so blocks of any rank are made without the
/// others and without messages.
class BrickPattern final : public BoxPattern {
  public:
    // O(regions x sides): prefix sums of cells and faces, by which numbers are decoded later.
    explicit BrickPattern(const BoxMeshOptions &options) : options_(options), regions_(makeRegions(options)) {
        dimension_ = elementInfo(regions_[0].cut.cells[0].type).dimension;
        // The third number of bricks is ignored.
        if (dimension_ == 2)
            options_.cells[2] = 1;
        for (const BrickRegion &region : regions_) {
            firstCell_.push_back(cells_);
            cells_ += (region.end - region.begin) * rows() * static_cast<index>(region.cut.cells.size());
            if (hasCentres(region)) {
                centreBegin_ = region.begin;
                centreNodes_ = (region.end - region.begin) * rows();
            }
        }
        for (int side = 0; side < 2 * dimension_; side++)
            for (std::size_t region = 0; region < regions_.size(); region++)
                addSidePart(side, region);
    }

    int dimension() const override { return dimension_; }
    index nodeCount() const override { return gridNodes() + centreNodes_; }
    index cellCount() const override { return cells_; }
    index faceCount() const override { return faces_; }

    // A centre is the mean of the moved corners, so that all cells keep positive volumes.
    std::array<real, 3> position(index node) const override {
        if (node < gridNodes()) {
            const index line = node / (n(0) + 1);
            return gridPosition({node % (n(0) + 1), line % (n(1) + 1), line / (n(1) + 1)});
        }
        const index row = node - gridNodes();
        std::array<real, 3> mean{};
        for (const auto &offset : cornerOffset) {
            const auto corner =
                gridPosition({centreBegin_ + offset[0], row % n(1) + offset[1], row / n(1) + offset[2]});
            for (std::size_t d = 0; d < 3; d++)
                mean[d] += corner[d] / 8;
        }
        return mean;
    }

    // Region by binary search, then brick and cell of the brick by division.
    void cell(index number, BoxElement &result) const override {
        const auto after = std::upper_bound(firstCell_.begin(), firstCell_.end(), number);
        const auto r = static_cast<std::size_t>(after - firstCell_.begin()) - 1;
        const BrickRegion &region = regions_[r];
        const auto perBrick = static_cast<index>(region.cut.cells.size());
        const index brick = (number - firstCell_[r]) / perBrick;
        const index width = region.end - region.begin;
        const BrickCell &cell = region.cut.cells[static_cast<std::size_t>((number - firstCell_[r]) % perBrick)];
        result.type = cell.type;
        result.side = -1;
        place({region.begin + brick % width, brick / width % n(1), brick / width / n(1)}, cell.nodes, result.nodes);
    }

    // The same for faces: part of a side, brick, face of the brick.
    void face(index number, BoxElement &result) const override {
        const SidePart &part =
            *(std::upper_bound(sideParts_.begin(), sideParts_.end(), number,
                               [](index value, const SidePart &other) { return value < other.first; }) -
              1);
        const auto &faces = regions_[part.region].cut.sides[static_cast<std::size_t>(part.side)];
        const auto perBrick = static_cast<index>(faces.size());
        const BrickFace &face = faces[static_cast<std::size_t>((number - part.first) % perBrick)];
        result.type = face.type;
        result.side = part.side;
        place(brickOnSide(part, (number - part.first) / perBrick), face.nodes, result.nodes);
    }

  private:
    index n(std::size_t direction) const { return options_.cells[direction]; }
    index rows() const { return n(1) * n(2); }
    index gridNodes() const { return (n(0) + 1) * (n(1) + 1) * (dimension_ == 2 ? 1 : n(2) + 1); }

    // Regions follow each other in x: only the first and the last have faces at x- and x+.
    void addSidePart(int side, std::size_t r) {
        const BrickRegion &region = regions_[r];
        if ((side == 0 && r > 0) || (side == 1 && r + 1 < regions_.size()))
            return;
        const index width = region.end - region.begin;
        const index bricks = side / 2 == 0 ? rows() : width * (side / 2 == 1 ? n(2) : n(1));
        const index count = bricks * static_cast<index>(region.cut.sides[static_cast<std::size_t>(side)].size());
        sideParts_.push_back({faces_, count, side, r});
        faces_ += count;
    }

    // Brick `number` of a part, with the lower direction fastest.
    std::array<index, 3> brickOnSide(const SidePart &part, index number) const {
        const BrickRegion &region = regions_[part.region];
        const index width = region.end - region.begin;
        const auto direction = static_cast<std::size_t>(part.side / 2);
        const index fixed = part.side % 2 == 0 ? 0 : n(direction) - 1;
        if (direction == 0)
            return {fixed, number % n(1), number / n(1)};
        if (direction == 1)
            return {region.begin + number % width, fixed, number / width};
        return {region.begin + number % width, number / width, fixed};
    }

    // Nodes of the brick as natural numbers.
    void place(const std::array<index, 3> &brick, std::span<const std::uint8_t> local,
               std::vector<index> &nodes) const {
        nodes.clear();
        for (const std::uint8_t k : local) {
            if (k == centre) {
                nodes.push_back(gridNodes() + brick[2] * n(1) + brick[1]);
                continue;
            }
            const auto &offset = cornerOffset[k];
            nodes.push_back(((brick[2] + offset[2]) * (n(1) + 1) + brick[1] + offset[1]) * (n(0) + 1) + brick[0] +
                            offset[0]);
        }
    }

    /// Nodes on the surface stay in place, and the last node of a direction is exactly at the length.
    std::array<real, 3> gridPosition(const std::array<index, 3> &at) const {
        bool inner = true;
        for (std::size_t d = 0; d < static_cast<std::size_t>(dimension_); d++)
            inner = inner && at[d] > 0 && at[d] < n(d);
        const index number = (at[2] * (n(1) + 1) + at[1]) * (n(0) + 1) + at[0];
        std::array<real, 3> p{};
        for (std::size_t d = 0; d < static_cast<std::size_t>(dimension_); d++) {
            const real move =
                inner ? options_.jitter * randomSigned(options_.seed + d, static_cast<std::uint64_t>(number)) : 0.0;
            p[d] = at[d] == n(d) ? options_.lengths[d]
                                 : (static_cast<real>(at[d]) + move) / static_cast<real>(n(d)) * options_.lengths[d];
        }
        return p;
    }

    BoxMeshOptions options_;
    std::vector<BrickRegion> regions_;
    int dimension_ = 3;
    std::vector<index> firstCell_; ///< [regions]
    /// Cells of all regions.
    index cells_ = 0;
    /// Ascending by first face.
    std::vector<SidePart> sideParts_;
    index faces_ = 0;
    index centreBegin_ = 0; ///< first brick with a centre; they are one layer in x
    index centreNodes_ = 0;
};

} // namespace

// The upper 53 bits of a hash: exact in a double.
real randomSigned(std::uint64_t seed, std::uint64_t number) {
    return static_cast<real>(mixBits(seed ^ mixBits(number)) >> 11) * 0x1p-52 - 1.0;
}

std::unique_ptr<BoxPattern> makeBrickPattern(const BoxMeshOptions &options) {
    return std::make_unique<BrickPattern>(options);
}

} // namespace DNDS::Geom::Detail
