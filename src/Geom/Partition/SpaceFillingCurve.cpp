#include "DNDS/Geom/Partition/SpaceFillingCurve.hpp"

#include "DNDS/Geom/Source/NumberTable.hpp"

#include <algorithm>
#include <numeric>

namespace DNDS::Geom {

namespace {

constexpr int bitsPerAxis = 21;
constexpr int bitsPerRound = 4;
constexpr index trialsPerRound = (index{1} << bitsPerRound) - 1;

/// The weight of this rank's keys below a given key, by bisection.
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
    index operator()(index key) const {
        return sums_[static_cast<std::size_t>(std::lower_bound(sorted_.begin(), sorted_.end(), key) - sorted_.begin())];
    }
    index total() const { return sums_.back(); }

  private:
    std::vector<index> sorted_;
    std::vector<index> sums_;
};

} // namespace

std::uint64_t hilbertNumber(std::array<std::uint32_t, 3> x) noexcept {
    constexpr std::uint32_t top = 1U << (bitsPerAxis - 1);
    for (std::uint32_t q = top; q > 1; q >>= 1) {
        const std::uint32_t p = q - 1;
        for (std::uint32_t &axis : x) {
            if ((axis & q) != 0) {
                x[0] ^= p;
            } else {
                const std::uint32_t t = (x[0] ^ axis) & p;
                x[0] ^= t;
                axis ^= t;
            }
        }
    }
    x[1] ^= x[0];
    x[2] ^= x[1];
    std::uint32_t t = 0;
    for (std::uint32_t q = top; q > 1; q >>= 1)
        if ((x[2] & q) != 0)
            t ^= q - 1;
    for (std::uint32_t &axis : x)
        axis ^= t;
    std::uint64_t number = 0;
    for (int bit = bitsPerAxis - 1; bit >= 0; bit--)
        for (const std::uint32_t axis : x)
            number = (number << 1) | ((axis >> bit) & 1U);
    return number;
}

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
    const WeightBelow below(keys, weights);
    const index total = comm.allReduce(below.total(), MPI_SUM);

    // Cut k is the least key with k / parts of the weight below the next one; digits are found from the highest down.
    std::vector<index> cuts(static_cast<std::size_t>(parts) - 1, 0);
    std::vector<index> counts(cuts.size() * static_cast<std::size_t>(trialsPerRound));
    for (int shift = 64 - bitsPerRound; shift >= 0; shift -= bitsPerRound) {
        const auto trial = [&](std::size_t cut, index digit) { return cuts[cut] + (digit << shift); };
        const index digits = shift + bitsPerRound > 63 ? (index{1} << (63 - shift)) - 1 : trialsPerRound; // no overflow
        for (std::size_t cut = 0; cut < cuts.size(); cut++)
            for (index d = 1; d <= trialsPerRound; d++)
                counts[cut * toSize(trialsPerRound) + toSize(d - 1)] = d <= digits ? below(trial(cut, d)) : 0;
        comm.allReduce(counts.data(), static_cast<int>(counts.size()), MPI_SUM);
        for (std::size_t cut = 0; cut < cuts.size(); cut++) {
            const auto target = static_cast<index>(static_cast<double>(total) * static_cast<double>(cut + 1) / parts);
            index digit = 0;
            while (digit < digits && counts[cut * toSize(trialsPerRound) + toSize(digit)] <= target)
                digit++;
            cuts[cut] += digit << shift;
        }
    }
    // `cuts[k]` is now the largest key with at most its share below it.
    std::vector<int> part(keys.size());
    for (std::size_t i = 0; i < keys.size(); i++)
        part[i] = static_cast<int>(std::upper_bound(cuts.begin(), cuts.end(), keys[i]) - cuts.begin());
    return part;
}

} // namespace DNDS::Geom
