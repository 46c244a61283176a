#include "DNDS/Geom/TriangleMesh.hpp"

#include "DNDS/Geom/Source/IndexPermutation.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace DNDS::Geom {

namespace {

using Point = std::array<real, 2>;

/// A uniform number in [-1, 1) that depends on its arguments only.
real randomSigned(std::uint64_t seed, std::uint64_t number) {
    return static_cast<real>(mixBits(seed ^ mixBits(number)) >> 11) * 0x1p-52 - 1.0;
}

/// Moves points towards a circle inside the unit square; a bijection that leaves the rest of the square as it is.
Point crowd(Point p, real strength) {
    constexpr real radius = 0.27;
    constexpr real reach = 0.22;
    const real dx = p[0] - 0.5;
    const real dy = p[1] - 0.5;
    const real r = std::hypot(dx, dy);
    const real z = (r - radius) / reach;
    if (std::abs(z) >= 1.0)
        return p;
    const real fade = (1.0 - z * z) * (1.0 - z * z);
    const real scale = 1.0 - strength * fade * (r - radius) / r;
    return {0.5 + scale * dx, 0.5 + scale * dy};
}

/// Twice the signed area over the sum of squared edges: largest for equilateral triangles, negative for inverted ones.
real triangleQuality(const Point &a, const Point &b, const Point &c) {
    const real area = (b[0] - a[0]) * (c[1] - a[1]) - (c[0] - a[0]) * (b[1] - a[1]);
    const auto square = [](const Point &p, const Point &q) {
        return (p[0] - q[0]) * (p[0] - q[0]) + (p[1] - q[1]) * (p[1] - q[1]);
    };
    return area / (square(a, b) + square(b, c) + square(c, a));
}

/// The grid of n x n quadrilaterals from which the mesh is cut, in natural numbering.
class Grid {
  public:
    Grid(index n, const TriangleMeshOptions &options) : n_(n), options_(options) {}

    index node(index i, index j) const { return j * (n_ + 1) + i; }

    Point position(index i, index j) const {
        const auto number = static_cast<std::uint64_t>(node(i, j));
        const real spacing = 1.0 / static_cast<real>(n_);
        const bool onSide = i == 0 || i == n_;
        const bool onEnd = j == 0 || j == n_;
        const real moveX = onSide ? 0.0 : options_.jitter * randomSigned(options_.seed, 2 * number);
        const real moveY = onEnd ? 0.0 : options_.jitter * randomSigned(options_.seed, 2 * number + 1);
        const Point p{i == n_ ? 1.0 : (static_cast<real>(i) + moveX) * spacing,
                      j == n_ ? 1.0 : (static_cast<real>(j) + moveY) * spacing};
        return onSide || onEnd ? p : crowd(p, options_.refinement);
    }

    /// The nodes of cell `number`: triangles 2 q and 2 q + 1 are the halves of quadrilateral q.
    std::array<index, 3> cell(index number) const {
        const index quad = number / 2;
        const index i = quad % n_;
        const index j = quad / n_;
        const std::array<index, 4> nodes{node(i, j), node(i + 1, j), node(i + 1, j + 1), node(i, j + 1)};
        const std::array<Point, 4> p{position(i, j), position(i + 1, j), position(i + 1, j + 1), position(i, j + 1)};
        const real rising = std::min(triangleQuality(p[0], p[1], p[2]), triangleQuality(p[0], p[2], p[3]));
        const real falling = std::min(triangleQuality(p[0], p[1], p[3]), triangleQuality(p[1], p[2], p[3]));
        const bool even = std::abs(rising - falling) < 1e-9;
        const bool cutRising =
            even ? randomSigned(~options_.seed, static_cast<std::uint64_t>(quad)) < 0 : rising > falling;
        if (cutRising)
            return number % 2 == 0 ? std::array{nodes[0], nodes[1], nodes[2]}
                                   : std::array{nodes[0], nodes[2], nodes[3]};
        return number % 2 == 0 ? std::array{nodes[0], nodes[1], nodes[3]} : std::array{nodes[1], nodes[2], nodes[3]};
    }

  private:
    index n_;
    TriangleMeshOptions options_;
};

/// Where block `part` of `parts` begins among `count` numbers, without overflow.
index blockBegin(index count, int part, int parts) {
    return count / parts * part + std::min<index>(count % parts * part / parts, count);
}

} // namespace

TriangleMesh makeTriangleMesh(const TriangleMeshOptions &options, int part, int parts) {
    DNDS_CHECK(parts >= 1 && part >= 0 && part < parts, ArgumentError, "block {} of {}", part, parts);
    DNDS_CHECK(options.cells >= 1 && options.cells <= index{1} << 60, ArgumentError, "a mesh of {} cells",
               options.cells);
    DNDS_CHECK(options.jitter >= 0.0 && options.jitter <= 0.4, ArgumentError, "jitter {} is outside of [0, 0.4]",
               options.jitter);
    DNDS_CHECK(options.refinement >= 0.0 && options.refinement <= 0.9, ArgumentError,
               "refinement {} is outside of [0, 0.9]", options.refinement);

    const index n = std::max<index>(1, std::llround(std::sqrt(static_cast<real>(options.cells) / 2.0)));
    const Grid grid(n, options);
    TriangleMesh mesh;
    mesh.globalNodes = (n + 1) * (n + 1);
    mesh.globalCells = 2 * n * n;
    mesh.firstNode = blockBegin(mesh.globalNodes, part, parts);
    mesh.firstCell = blockBegin(mesh.globalCells, part, parts);
    const index endNode = blockBegin(mesh.globalNodes, part + 1, parts);
    const index endCell = blockBegin(mesh.globalCells, part + 1, parts);

    const IndexPermutation nodeNumber(mesh.globalNodes, mixBits(options.seed));
    const IndexPermutation cellNumber(mesh.globalCells, mixBits(options.seed + 1));
    mesh.coordinates.reserve(static_cast<std::size_t>(2 * (endNode - mesh.firstNode)));
    for (index number = mesh.firstNode; number < endNode; number++) {
        const index natural = options.shuffled ? nodeNumber.inverse(number) : number;
        const Point p = grid.position(natural % (n + 1), natural / (n + 1));
        mesh.coordinates.insert(mesh.coordinates.end(), p.begin(), p.end());
    }
    mesh.cellNodes.reserve(static_cast<std::size_t>(3 * (endCell - mesh.firstCell)));
    for (index number = mesh.firstCell; number < endCell; number++)
        for (const index natural : grid.cell(options.shuffled ? cellNumber.inverse(number) : number))
            mesh.cellNodes.push_back(options.shuffled ? nodeNumber(natural) : natural);
    return mesh;
}

} // namespace DNDS::Geom
