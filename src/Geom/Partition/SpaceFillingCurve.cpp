#include "DNDS/Geom/Partition/SpaceFillingCurve.hpp"

#include "DNDS/Geom/Source/NumberTable.hpp"
#include "DNDS/Mpi/FindCuts.hpp"

#include <algorithm>
#include <numeric>

namespace DNDS::Geom {

namespace {

// 3 x 21 bits fit a positive index.
constexpr int bitsPerAxis = 21;

/// Bit i of 21 becomes bit 3 i.
/// Doubles the gaps between groups of bits five times, as for Morton codes.
std::uint64_t everyThirdBit(std::uint32_t bits) noexcept {
    std::uint64_t spread = bits;
    spread = (spread | (spread << 32)) & 0x001f00000000ffff;
    spread = (spread | (spread << 16)) & 0x001f0000ff0000ff;
    spread = (spread | (spread << 8)) & 0x100f00f00f00f00f;
    spread = (spread | (spread << 4)) & 0x10c30c30c30c30c3;
    return (spread | (spread << 2)) & 0x1249249249249249;
}

/// The weight of this rank's keys below a given key, by bisection.
/// Prefix sums of weights in the order of keys: a query costs O(log own keys).
/// O(n log n) time to build for n keys, 16 bytes a key. Sums of integers: the cuts are the same on any number of
/// ranks.
class WeightBelow {
  public:
    WeightBelow(std::span<const index> keys, std::span<const index> weights) : sums_(keys.size() + 1, 0) {
        std::vector<index> order(keys.size());
        std::iota(order.begin(), order.end(), index{0});
        std::sort(order.begin(), order.end(), [&](index a, index b) { return keys[toSize(a)] < keys[toSize(b)]; });
        sorted_.reserve(keys.size());
        for (std::size_t i = 0; i < keys.size(); i++) {
            sorted_.push_back(keys[toSize(order[i])]);
            sums_[i + 1] = sums_[i] + (weights.empty() ? 1 : weights[toSize(order[i])]);
        }
    }
    index operator()(std::uint64_t key) const {
        const auto isBelow = [](index a, std::uint64_t b) { return static_cast<std::uint64_t>(a) < b; };
        return sums_[toSize(std::lower_bound(sorted_.begin(), sorted_.end(), key, isBelow) - sorted_.begin())];
    }
    index total() const { return sums_.back(); }
    /// One more than the largest key, or 0.
    std::uint64_t end() const { return sorted_.empty() ? 0 : static_cast<std::uint64_t>(sorted_.back()) + 1; }

  private:
    std::vector<index> sorted_;
    std::vector<index> sums_;
};

} // namespace

/// The transpose form of the method: undoes the reflections and exchanges of each level from the top bit down, then
/// Gray-decodes. O(bits), without tables.
std::uint64_t hilbertNumber(std::array<std::uint32_t, 3> x) noexcept {
    // Without branches: the bits of positions are as good as random.
    for (int bit = bitsPerAxis - 1; bit > 0; bit--) {
        const std::uint32_t below = (1U << bit) - 1;
        for (std::uint32_t &axis : x) {
            const std::uint32_t isSet = 0U - ((axis >> bit) & 1U); // all bits or none
            const std::uint32_t exchanged = (x[0] ^ axis) & below & ~isSet;
            x[0] ^= (below & isSet) | exchanged;
            axis ^= exchanged;
        }
    }
    x[1] ^= x[0];
    x[2] ^= x[1];
    // The last step of decoding: each set bit of the last axis inverts all lower bits of all axes.
    std::uint32_t parity = x[2]; // of the bits from each one up
    for (int shift = 1; shift < bitsPerAxis; shift *= 2)
        parity ^= parity >> shift;
    std::uint64_t number = 0;
    for (const std::uint32_t axis : x)
        number = (number << 1) | everyThirdBit(axis ^ (parity >> 1));
    return number;
}

/// One scale for all axes keeps the cells of the grid cubes: flat meshes use a part of the curve.
std::vector<index> curveKeys(std::span<const std::array<real, 3>> points, const std::array<real, 3> &lower,
                             const std::array<real, 3> &upper) {
    constexpr real cells = static_cast<real>(1 << bitsPerAxis);
    const real side = std::max({upper[0] - lower[0], upper[1] - lower[1], upper[2] - lower[2]});
    const real scale = side > 0.0 ? cells / side : 0.0;
    std::vector<index> keys;
    keys.reserve(points.size());
    for (const auto &point : points) {
        std::array<std::uint32_t, 3> cell;
        for (std::size_t d = 0; d < 3; d++)
            cell[d] = static_cast<std::uint32_t>(std::clamp(scale * (point[d] - lower[d]), 0.0, cells - 1.0));
        keys.push_back(static_cast<index>(hilbertNumber(cell)));
    }
    return keys;
}

// Finds all cuts at once by the weight below trial keys, like the splitters of histogram sort (Kale and Krishnan, A
// comparison based parallel sorting algorithm, ICPP 1993): no key moves. Invariant: equal keys are never separated, so
// parts do not depend on the distribution of the keys.
std::vector<int> partitionCurve(CommunicatorView comm, std::span<const index> keys, std::span<const index> weights,
                                int parts) {
    const bool weighted = comm.allReduce(weights.empty() ? 0 : 1, MPI_MAX) != 0;
    comm.guarded([&] {
        DNDS_CHECK(parts >= 1, ArgumentError, "cannot cut a curve into {} parts: give at least 1", parts);
        DNDS_CHECK(!weighted || weights.size() == keys.size(), ArgumentError,
                   "this rank gives {} weights for its {} cells: give one for each on all ranks, or none on any",
                   weights.size(), keys.size());
        for (const index weight : weights)
            DNDS_CHECK(weight >= 0, ArgumentError, "a cell has weight {}: weights must not be negative", weight);
    });
    WeightBelow below(keys, weights);
    index total = comm.allReduce(below.total(), MPI_SUM);
    if (total == 0) { // then by number
        below = WeightBelow(keys, {});
        total = comm.allReduce(below.total(), MPI_SUM);
    }

    // A part begins at the largest key with at most the share of all preceding parts below it: the next has more.
    std::vector<index> goals(static_cast<std::size_t>(parts) - 1);
    for (std::size_t cut = 0; cut < goals.size(); cut++)
        goals[cut] = 1 + static_cast<index>(static_cast<double>(total) * static_cast<double>(cut + 1) / parts);
    const std::uint64_t end = comm.allReduce(below.end(), MPI_MAX) + 1;
    const std::vector<std::uint64_t> cuts = findCuts(comm, goals, 0, end, below);
    std::vector<int> part(keys.size());
    for (std::size_t i = 0; i < keys.size(); i++) // `cuts` are these next keys
        part[i] = static_cast<int>(std::upper_bound(cuts.begin(), cuts.end(), static_cast<std::uint64_t>(keys[i]) + 1) -
                                   cuts.begin());
    return part;
}

} // namespace DNDS::Geom
