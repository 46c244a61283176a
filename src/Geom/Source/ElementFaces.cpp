#include "DNDS/Geom/Source/ElementFaces.hpp"

namespace DNDS::Geom {

// Keeps the order of first appearance; faces have few corners, so a search is enough.
std::vector<index> distinctCorners(std::span<const index> corners) {
    std::vector<index> kept;
    kept.reserve(corners.size());
    for (const index corner : corners)
        if (std::find(kept.begin(), kept.end(), corner) == kept.end())
            kept.push_back(corner);
    return kept;
}

bool hasRepeats(std::span<const index> corners) {
    // Comparing all pairs is faster than a sort for few corners.
    constexpr std::size_t few = 12;
    if (corners.size() > few) {
        std::vector<index> sorted(corners.begin(), corners.end());
        std::sort(sorted.begin(), sorted.end());
        return std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end();
    }
    for (std::size_t i = 1; i < corners.size(); i++)
        for (std::size_t j = 0; j < i; j++)
            if (corners[i] == corners[j])
                return true;
    return false;
}

} // namespace DNDS::Geom
