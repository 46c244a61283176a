/// @file SharedPlaces.hpp
/// @brief Places on edges and faces, where cells of several ranks need the same new node; not for users.
#pragma once

#include "DNDS/Geom/Source/IndexPermutation.hpp"
#include "DNDS/Index/Mappings.hpp"

#include <array>
#include <limits>
#include <unordered_map>
#include <utility>
#include <vector>

namespace DNDS::Geom {

/// A place by the corners around it: words (node << 5 | weight in sixteenths), ascending; unused ones are
/// `SharedPlaces::none`. Equal for all cells that have the edge or face.
using PlaceKey = std::array<index, 4>;

/// The places that this rank's elements need, each once, with a row of numbers (coordinates, fields) for each.
struct SharedPlaces {
    struct Hash {
        std::size_t operator()(const PlaceKey &key) const noexcept {
            std::uint64_t hash = 0;
            for (const index word : key)
                hash = mixBits(hash ^ static_cast<std::uint64_t>(word));
            return static_cast<std::size_t>(hash);
        }
    };
    static constexpr index none = std::numeric_limits<index>::max();

    std::unordered_map<PlaceKey, LocalIndex, Hash> slots;
    std::vector<PlaceKey> keys; ///< [places], as everything below
    std::vector<index> orders;  ///< the least of the elements that ask: the row of this element counts
    std::vector<index> known;   ///< the node that exists there, or `none`
    std::vector<real> rows;     ///< [places x width]

    /// The slot of a place, and whether `order` is the least so far: then its row is to be written. O(1) on average.
    std::pair<LocalIndex, bool> add(const PlaceKey &key, index order);
};

/// The numbers of places, and the nodes made there.
/// `numbers` answers this rank's places; `held`, `rows` and `first` describe the places that met here.
struct NumberedPlaces {
    std::vector<index> numbers; ///< [places of this rank] global node
    index first = 0;            ///< the first new node that this rank holds
    std::vector<real> rows;     ///< [new nodes x width]
    index newNodes = 0;         ///< new nodes of all ranks
    /// Places whose least node is in this rank's block, ascending by key: pairs of key and node.
    std::vector<std::pair<PlaceKey, index>> held;
};

/// Numbers places without a node after `blocks`, in the order of their keys: the same on any number of ranks. Each gets
/// the row of its first element. Collective; equal places meet at the rank of their least node, two sparse exchanges.
NumberedPlaces numberPlaces(const GlobalMapping &blocks, const SharedPlaces &places, std::size_t width);

} // namespace DNDS::Geom
