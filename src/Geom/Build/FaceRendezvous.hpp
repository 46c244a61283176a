/// @file FaceRendezvous.hpp
/// @brief The rendezvous of faces of cells on different ranks: equal faces, by a key of their corners, meet on one
/// rank. Shared by the links and the marks of faces; not for users.
#pragma once

#include "DNDS/Geom/Source/CellRecords.hpp"
#include "DNDS/Geom/Source/ElementFaces.hpp"
#include "DNDS/Index/Mappings.hpp"
#include "DNDS/Mpi/Rendezvous.hpp"

#include <algorithm>
#include <bit>
#include <exception>
#include <limits>
#include <utility>

namespace DNDS::Geom {

/// A key that is equal for lists of the same distinct corners in any order.
/// The hash is a sum over corners, so it does not depend on their order; the least corner makes collisions rarer and
/// names the rendezvous.
struct FaceKey {
    std::uint64_t hash = 0;
    index least = std::numeric_limits<index>::max();

    void add(index node) {
        hash += mixBits(static_cast<std::uint64_t>(node));
        least = std::min(least, node);
    }
    friend bool operator==(const FaceKey &, const FaceKey &) = default;
};

inline FaceKey faceKey(std::span<const index> corners) {
    FaceKey key;
    for (const index node : corners)
        key.add(node);
    key.hash = mixBits(key.hash);
    return key;
}

/// The rank that has the face's least node in its block of the file. Neighbours in the file share few such ranks,
/// whereas a hash would spread faces over all ranks.
inline int rendezvousRank(const FaceKey &key, const GlobalMapping &nodeBlocks) {
    return nodeBlocks.owner(key.least).rank;
}

/// Finds earlier faces of the same key: open addressing, positions only.
/// At most half full, linear probing. It refers to `keys`, which outlive it.
/// 16 to 32 bytes a face. The keys stay in the caller's array, so a probe costs one read of `buckets_` and one of
/// the key.
class FaceTable {
  public:
    explicit FaceTable(std::span<const FaceKey> keys)
        : keys_(keys), buckets_(std::bit_ceil(2 * keys.size() + 2), empty), mask_(buckets_.size() - 1) {}

    /// The face that has the same key and was added before, or -1 after adding this one.
    index findOrAdd(index face) {
        index &bucket = buckets_[bucketOf(keys_[toSize(face)])];
        return std::exchange(bucket, bucket == empty ? face : bucket);
    }
    index find(const FaceKey &key) const { return buckets_[bucketOf(key)]; }

  private:
    /// The bucket that has the key, or the free one where it belongs.
    std::size_t bucketOf(const FaceKey &key) const {
        std::size_t at = static_cast<std::size_t>(key.hash) & mask_;
        while (buckets_[at] != empty && keys_[toSize(buckets_[at])] != key)
            at = (at + 1) & mask_;
        return at;
    }

    static constexpr index empty = -1;
    std::span<const FaceKey> keys_;
    std::vector<index> buckets_;
    std::size_t mask_;
};

/// The faces of this rank's cells, in order.
/// [faces of own cells] by cell, then slot: face f of the list is slot f - linkStarts[cell] of its cell.
struct OwnFaces {
    std::vector<FaceKey> keys;
    std::vector<LocalIndex> cells;
};

/// Lists the faces of own cells, and sets `linkStarts`, as slots are counted here. Local; O(faces).
inline OwnFaces listFaces(CellRecords &cells) {
    OwnFaces faces;
    faces.keys.reserve(toSize(6 * cells.size()));
    faces.cells.reserve(faces.keys.capacity());
    cells.linkStarts.assign(1, 0);
    cells.linkStarts.reserve(toSize(cells.size()) + 1);
    for (index c = 0; c < cells.size(); c++) {
        forEachFace(cells.types[toSize(c)], cells.nodesOf(c), [&](std::span<const index> corners) {
            faces.keys.push_back(faceKey(corners));
            faces.cells.push_back(static_cast<LocalIndex>(c));
        });
        cells.linkStarts.push_back(static_cast<index>(faces.keys.size()));
    }
    return faces;
}

/// A face as seen from one of its cells; this is what other ranks get.
struct Side {
    index cell; ///< global
    int slot;
    index number; ///< number of the cell, in file order
    index fileId;
};

inline constexpr index sideWords = 6;

/// Six words: hash, least corner, cell, slot, number, number in the file.
inline void writeSide(const FaceKey &key, const Side &side, index *words) {
    words[0] = static_cast<index>(key.hash);
    words[1] = key.least;
    words[2] = side.cell;
    words[3] = side.slot;
    words[4] = side.number;
    words[5] = side.fileId;
}

/// Sides that arrived at their rendezvous.
/// Struct of arrays; `ranks` are the senders, which get the answers.
/// In the order of senders, then of their faces. `matchSides` depends on this order only through which side is
/// found first; links are symmetric, so the result does not.
struct GatheredSides {
    std::vector<FaceKey> keys;
    std::vector<Side> sides;
    std::vector<int> ranks;

    explicit GatheredSides(const RankLists &lists) {
        for (std::size_t k = 0; k < lists.size(); k++)
            for (RecordReader reader(lists.list(k)); !reader.atEnd();) {
                FaceKey key;
                key.hash = static_cast<std::uint64_t>(reader.next());
                key.least = reader.next();
                keys.push_back(key);
                const index cell = reader.next();
                const auto slot = static_cast<int>(reader.next());
                const index number = reader.next();
                sides.push_back({cell, slot, number, reader.next()});
                ranks.push_back(lists.ranks[k]);
            }
    }
};

/// Sends the faces for which `wanted(face)` holds to their rendezvous. Collective.
template <class Wanted>
RankLists sendSides(const GlobalMapping &nodeBlocks, const CellRecords &cells, index firstCell, const OwnFaces &faces,
                    Wanted &&wanted, const std::exception_ptr &failure) {
    return sparseExchange(*nodeBlocks.context(),
                          packByRank(
                              nodeBlocks.ranks(), faces.keys.size(),
                              [&](std::size_t f) { return wanted(f) ? rendezvousRank(faces.keys[f], nodeBlocks) : -1; },
                              [](std::size_t) { return sideWords; },
                              [&](std::size_t f, index *words) {
                                  const auto c = static_cast<std::size_t>(faces.cells[f]);
                                  writeSide(faces.keys[f],
                                            {firstCell + faces.cells[f],
                                             static_cast<int>(static_cast<index>(f) - cells.linkStarts[c]),
                                             cells.numbers[c], cells.fileIds[c]},
                                            words);
                              }),
                          PeerDiscovery::Auto, failure);
}

} // namespace DNDS::Geom
