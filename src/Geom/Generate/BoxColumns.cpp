#include "DNDS/Geom/Generate/BoxPattern.hpp"

namespace DNDS::Geom::Detail {

namespace {

/// Columns are laid out in rows (in y) like bricks in a wall: odd rows are shifted by half a column and have half
/// columns at both ends. A row's lower and upper lines have nodes at every half column; zigzags make columns hexagonal.
/// Layers of columns in z, from bottom to top. A column has 6 corners in the plane, half columns 4.
class ColumnPattern final : public BoxPattern {
  public:
    explicit ColumnPattern(const BoxMeshOptions &options) : options_(options) {}

    int dimension() const override { return 3; }
    index nodeCount() const override { return layerNodes() * (nz() + 1); }
    index cellCount() const override { return layerCells() * nz(); }
    index faceCount() const override { return 2 * ny() * nz() + 4 * nx() * nz() + 2 * layerCells(); }

    // Nodes are numbered along a line (half columns), then by line and layer. Only inner nodes have jitter; the zigzag
    // is equal at both ends in x and z, so that periodic sides match.
    std::array<real, 3> position(index node) const override {
        const index m = node % lineNodes();
        const index line = node / lineNodes() % (ny() + 1);
        const index k = node / layerNodes();
        const bool onX = m == 0 || m == 2 * nx();
        const bool onY = line == 0 || line == ny();
        const bool onZ = k == 0 || k == nz();
        std::array<real, 3> move{};
        if (!onX && !onY && !onZ)
            for (std::size_t d = 0; d < 3; d++)
                move[d] = options_.jitter * randomSigned(options_.seed + d, static_cast<std::uint64_t>(node));
        move[0] *= 0.5; // nodes are half a column apart
        if (!onY)
            move[1] += m % 2 == line % 2 ? zigzag : -zigzag;
        // Nodes at the far sides are exactly at the length, whatever rounding does.
        const auto place = [&](std::size_t d, bool atEnd, real at, index n) {
            return atEnd ? options_.lengths[d] : (at + move[d]) / static_cast<real>(n) * options_.lengths[d];
        };
        return {place(0, m == 2 * nx(), 0.5 * static_cast<real>(m), nx()),
                place(1, line == ny(), static_cast<real>(line), ny()), place(2, k == nz(), static_cast<real>(k), nz())};
    }

    // Bottom, top, then the sides: each face counter-clockwise seen from outside, after its number of corners.
    void cell(index number, BoxElement &result) const override {
        const Column column = columnOf(number % layerCells());
        const index k = number / layerCells();
        result.type = ElementType::Polyhedron;
        result.side = -1;
        std::vector<index> &nodes = result.nodes;
        nodes.clear();
        const index corners = outline(column);
        nodes.push_back(corners);
        for (index c = corners; c-- > 0;)
            nodes.push_back(outlineNode(column, c, k));
        nodes.push_back(corners);
        for (index c = 0; c < corners; c++)
            nodes.push_back(outlineNode(column, c, k + 1));
        for (index c = 0; c < corners; c++) {
            const index next = (c + 1) % corners;
            nodes.insert(nodes.end(), {4, outlineNode(column, c, k), outlineNode(column, next, k),
                                       outlineNode(column, next, k + 1), outlineNode(column, c, k + 1)});
        }
    }

    // Sides in x, in y, then bottom and top, which have polygons except at the ends of odd rows.
    void face(index number, BoxElement &result) const override {
        const index onX = ny() * nz();
        const index onY = 2 * nx() * nz();
        result.type = ElementType::Quad4;
        result.nodes.clear();
        if (number < 2 * onX) {
            result.side = number < onX ? 0 : 1;
            const index at = number % onX;
            const index m = result.side == 0 ? 0 : 2 * nx();
            addQuadrilateral({m, at % ny()}, {m, at % ny() + 1}, at / ny(), result.side == 0, result.nodes);
            return;
        }
        number -= 2 * onX;
        if (number < 2 * onY) {
            result.side = number < onY ? 2 : 3;
            const index at = number % onY;
            const index line = result.side == 2 ? 0 : ny();
            const index m = at % (2 * nx());
            addQuadrilateral({m, line}, {m + 1, line}, at / (2 * nx()), result.side == 3, result.nodes);
            return;
        }
        number -= 2 * onY;
        result.side = number < layerCells() ? 4 : 5;
        result.type = ElementType::Polygon;
        const Column column = columnOf(number % layerCells());
        const index corners = outline(column);
        for (index c = 0; c < corners; c++)
            result.nodes.push_back(
                outlineNode(column, result.side == 4 ? corners - 1 - c : c, result.side == 4 ? 0 : nz()));
        if (corners == 4)
            result.type = ElementType::Quad4;
    }

  private:
    static constexpr real zigzag = 1.0 / 6.0; ///< fraction of a row: regular hexagons for columns of the right width

    /// From half column `begin` to `end` in a row.
    struct Column {
        index row;
        index begin;
        index end;
    };

    index nx() const { return options_.cells[0]; }
    index ny() const { return options_.cells[1]; }
    index nz() const { return options_.cells[2]; }
    index lineNodes() const { return 2 * nx() + 1; }
    index layerNodes() const { return lineNodes() * (ny() + 1); }
    index layerCells() const { return nx() * ny() + ny() / 2; }

    index node(index m, index line, index k) const { return k * layerNodes() + line * lineNodes() + m; }

    /// Rows alternate between nx and nx + 1 columns: two rows have 2 nx + 1.
    Column columnOf(index number) const {
        const index pair = number / lineNodes();
        const index rest = number % lineNodes();
        if (rest < nx())
            return {2 * pair, 2 * rest, 2 * rest + 2};
        const index at = rest - nx();
        return {2 * pair + 1, at == 0 ? 0 : 2 * at - 1, at == nx() ? 2 * nx() : 2 * at + 1};
    }

    /// The number of corners of a column, and corner `c` counter-clockwise seen from z+.
    static index outline(const Column &column) { return 2 * (column.end - column.begin + 1); }
    index outlineNode(const Column &column, index c, index k) const {
        const index width = column.end - column.begin;
        return c <= width ? node(column.begin + c, column.row, k)
                          : node(column.end - (c - width - 1), column.row + 1, k);
    }

    // Between points (half column, line) `a` and `b`, from layer k to the next; `turned` reverses the normal.
    void addQuadrilateral(std::array<index, 2> a, std::array<index, 2> b, index k, bool turned,
                          std::vector<index> &nodes) const {
        if (turned)
            std::swap(a, b);
        nodes.insert(nodes.end(),
                     {node(a[0], a[1], k), node(b[0], b[1], k), node(b[0], b[1], k + 1), node(a[0], a[1], k + 1)});
    }

    BoxMeshOptions options_;
};

} // namespace

std::unique_ptr<BoxPattern> makeColumnPattern(const BoxMeshOptions &options) {
    return std::make_unique<ColumnPattern>(options);
}

} // namespace DNDS::Geom::Detail
