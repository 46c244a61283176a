/// @file ZoneCase.hpp
/// @brief Index spaces that are parts of one box, each turned in its own way: what ghosts mean is known from the box.
#pragma once

#include "DNDS/Blocks/BlockCase.hpp"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

namespace DNDS::test {

/// All signed permutations of the dimensions, as CGNS writes them: 2, 8, 48, 384.
inline std::vector<std::vector<int>> orientations(int dims) {
    std::vector<int> axes;
    for (int d = 1; d <= dims; ++d)
        axes.push_back(d);
    std::vector<std::vector<int>> all;
    do {
        for (int signs = 0; signs < 1 << dims; ++signs) {
            all.push_back(axes);
            for (int d = 0; d < dims; ++d)
                if ((signs >> d & 1) != 0)
                    all.back()[toSize(d)] *= -1;
        }
    } while (std::ranges::next_permutation(axes).found);
    return all;
}

/// A part of a box of cells as an index space: its dimension d runs along dimension |turn[d]| - 1 of the box, backwards
/// where that is negative. Its cells begin at `origin`.
struct Zone {
    Box part;
    std::vector<int> turn;
    index origin = 0;

    std::size_t axis(std::size_t d) const { return toSize(std::abs(turn[d]) - 1); }
    std::size_t dims() const { return turn.size(); }

    Box cells() const {
        Box own = part;
        for (std::size_t d = 0; d < dims(); ++d) {
            own.lower[d] = origin;
            own.upper[d] = origin + part.extent(static_cast<int>(axis(d)));
        }
        return own;
    }
    /// The cell of the box that a cell of this zone is, or would be beyond its ends.
    IndexVector inBox(const IndexVector &cell) const {
        IndexVector global{};
        for (std::size_t d = 0; d < dims(); ++d) {
            const std::size_t a = axis(d);
            global[a] = turn[d] > 0 ? part.lower[a] + cell[d] - origin : part.upper[a] - 1 - (cell[d] - origin);
        }
        return global;
    }
    IndexVector fromBox(const IndexVector &global) const {
        IndexVector cell{};
        for (std::size_t d = 0; d < dims(); ++d) {
            const std::size_t a = axis(d);
            cell[d] = origin + (turn[d] > 0 ? global[a] - part.lower[a] : part.upper[a] - 1 - global[a]);
        }
        return cell;
    }
    IndexVector vertexFromBox(const IndexVector &global) const {
        IndexVector vertex{};
        for (std::size_t d = 0; d < dims(); ++d) {
            const std::size_t a = axis(d);
            vertex[d] = origin + (turn[d] > 0 ? global[a] - part.lower[a] : part.upper[a] - global[a]);
        }
        return vertex;
    }
};

/// The connection of two zones, if their parts share a face. `zeroed`: the entry of the normal is 0, as in some files.
inline std::optional<Connection> connectionOf(const std::vector<Zone> &zones, int one, int two, bool zeroed) {
    const Zone &a = zones[toSize(one)];
    const Zone &b = zones[toSize(two)];
    Connection connection{one, {}, {}, two, {}, {}};
    IndexVector low{};
    IndexVector high{};
    int normals = 0;
    std::size_t normal = 0;
    for (std::size_t k = 0; k < a.dims(); ++k) {
        low[k] = std::max(a.part.lower[k], b.part.lower[k]);
        high[k] = std::min(a.part.upper[k], b.part.upper[k]);
        if (low[k] > high[k])
            return std::nullopt;
        if (low[k] == high[k]) {
            ++normals;
            normal = k;
        }
    }
    if (normals != 1)
        return std::nullopt;
    connection.begin = a.vertexFromBox(low);
    connection.end = a.vertexFromBox(high);
    connection.otherBegin = b.vertexFromBox(low);
    for (std::size_t d = 0; d < a.dims(); ++d)
        for (std::size_t e = 0; e < b.dims(); ++e)
            if (a.axis(d) == b.axis(e))
                connection.transform[d] = zeroed && a.axis(d) == normal ? 0
                                          : a.turn[d] * b.turn[e] > 0   ? static_cast<int>(e) + 1
                                                                        : -static_cast<int>(e) - 1;
    return connection;
}

inline std::vector<IndexSpace> spacesOf(const std::vector<Zone> &zones) {
    std::vector<IndexSpace> spaces;
    for (std::size_t z = 0; z < zones.size(); ++z)
        spaces.push_back({"zone " + std::to_string(z), zones[z].cells(), {}});
    return spaces;
}

/// Maps ghosts of zones to the owned cell of the zone that covers the same cell of the box.
inline Meaning inZones(std::vector<Zone> zones) {
    return [zones = std::move(zones)](const CellOf &cell) -> std::optional<CellOf> {
        const IndexVector global = zones[toSize(cell.space)].inBox(cell.cell);
        for (std::size_t z = 0; z < zones.size(); ++z)
            if (zones[z].part.contains(global))
                return CellOf{static_cast<int>(z), zones[z].fromBox(global)};
        return std::nullopt;
    };
}

} // namespace DNDS::test
