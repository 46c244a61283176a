/// @file GraphWorld.hpp
/// @brief A random mesh of cells and faces spread over ranks, and the same mesh as one rank sees it: what tests of task
/// graphs compare.
#pragma once

#include "DNDS/Array/ArrayPair.hpp"
#include "DNDS/Geom/Mesh/UnstructuredMesh.hpp"
#include "DNDS/Index/Mappings.hpp"
#include "DNDS/Task/KernelRows.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace DNDS::test {

/// Rows of one kind on this rank.
struct WorldRows {
    index owned = 0;
    index ghosts = 0;
    std::shared_ptr<const ExchangePattern> pattern;
    std::vector<index> global; ///< [owned + ghosts]

    index size() const { return owned + ghosts; }
};

/// Cells in a ring with some more connections; a face between each two neighbours, and some at the boundary.
struct GraphWorld {
    using Lists = std::vector<std::vector<index>>;
    using Adjacency = Geom::LocalAdjacency;

    Lists allCellCells, allCellFaces, allFaceCells; ///< lists of all ranks
    WorldRows cells, faces;
    Adjacency cellCells, cellFaces, faceCells;
    CommunicatorView comm;

    GraphWorld(CommunicatorView ranks, unsigned seed, index count, int layers)
        : cellCells("cell cells", ranks), cellFaces("cell faces", ranks), faceCells("face cells", ranks), comm(ranks) {
        std::mt19937 random(seed); // the same on all ranks
        connect(random, count);
        const std::vector<index> firstCells = share(random, count);
        const auto ownsCell = [&](index cell) {
            return cell >= firstCells[toSize(comm.rank())] && cell < firstCells[toSize(comm.rank()) + 1];
        };
        std::set<index> local;
        for (index cell = 0; cell < count; ++cell)
            if (ownsCell(cell))
                local.insert(cell);
        std::set<index> ghosts, border = local;
        for (int layer = 0; layer < layers; ++layer) {
            std::set<index> next;
            for (const index cell : border)
                for (const index other : allCellCells[toSize(cell)])
                    if (other >= 0 && local.insert(other).second)
                        next.insert(other);
            ghosts.insert(next.begin(), next.end());
            border = std::move(next);
        }
        index firstFace = -1, ownedFaces = 0;
        std::set<index> ghostFaces;
        for (index face = 0; face < static_cast<index>(allFaceCells.size()); ++face) {
            const std::vector<index> &sides = allFaceCells[toSize(face)];
            if (ownsCell(sides[0])) {
                firstFace = firstFace < 0 ? face : firstFace;
                ++ownedFaces;
            } else if (local.contains(sides[0]) || (sides[1] >= 0 && local.contains(sides[1]))) {
                ghostFaces.insert(face);
            }
        }
        number(cells, firstCells[toSize(comm.rank())],
               firstCells[toSize(comm.rank()) + 1] - firstCells[toSize(comm.rank())], ghosts);
        number(faces, firstFace, ownedFaces, ghostFaces);
        localize(cellCells, cells, cells, allCellCells);
        localize(cellFaces, cells, faces, allCellFaces);
        localize(faceCells, faces, cells, allFaceCells);
    }

  private:
    void connect(std::mt19937 &random, index count) {
        std::set<std::pair<index, index>> pairs;
        for (index cell = 0; cell + 1 < count; ++cell)
            pairs.emplace(cell, cell + 1);
        if (count > 2)
            pairs.emplace(0, count - 1);
        for (index k = 0; k < count / 2; ++k) {
            const auto a = static_cast<index>(random() % static_cast<unsigned>(count));
            const index b = std::min(count - 1, a + static_cast<index>(random() % 7));
            if (a != b)
                pairs.emplace(a, b);
        }
        for (index k = 0; k < count / 5; ++k)
            pairs.emplace(static_cast<index>(random() % static_cast<unsigned>(count)), -1);
        allCellCells.resize(toSize(count));
        allCellFaces.resize(toSize(count));
        for (const auto &[a, b] : pairs) {
            const auto face = static_cast<index>(allFaceCells.size());
            allFaceCells.push_back({a, b});
            allCellFaces[toSize(a)].push_back(face);
            allCellCells[toSize(a)].push_back(b);
            if (b >= 0) {
                allCellFaces[toSize(b)].push_back(face);
                allCellCells[toSize(b)].push_back(a);
            }
        }
    }
    /// Uneven blocks; a rank may have none.
    std::vector<index> share(std::mt19937 &random, index count) const {
        std::vector<index> first{0};
        for (int rank = 1; rank < comm.size(); ++rank)
            first.push_back(static_cast<index>(random() % static_cast<unsigned>(count + 1)));
        first.push_back(count);
        std::sort(first.begin(), first.end());
        return first;
    }
    void number(WorldRows &rows, index first, index owned, const std::set<index> &ghosts) const {
        rows.owned = owned;
        rows.ghosts = static_cast<index>(ghosts.size());
        for (index row = 0; row < owned; ++row)
            rows.global.push_back(first + row);
        rows.global.insert(rows.global.end(), ghosts.begin(), ghosts.end());
        const std::vector<index> pulled(ghosts.begin(), ghosts.end());
        rows.pattern = std::make_shared<const ExchangePattern>(
            GhostMapping::fromPullList(GlobalMapping::create(comm, owned), pulled));
    }
    static void localize(Adjacency &adjacency, const WorldRows &from, const WorldRows &to, const Lists &all) {
        std::map<index, LocalIndex> numbers;
        for (index row = 0; row < to.size(); ++row)
            numbers[to.global[toSize(row)]] = static_cast<LocalIndex>(row);
        adjacency.resize(from.size(), [&](index row) { return all[toSize(from.global[toSize(row)])].size(); });
        for (index row = 0; row < from.size(); ++row) {
            LocalIndex *entry = adjacency[row].begin();
            for (const index other : all[toSize(from.global[toSize(row)])]) {
                const auto found = numbers.find(other);
                *entry++ = other < 0 ? -1 : found == numbers.end() ? -2 : found->second;
            }
        }
    }
};

} // namespace DNDS::test
