#include "DNDS/Mpi/ExactSum.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <exception>
#include <limits>
#include <vector>

namespace DNDS {

namespace {

using FixedPoint::Wide;

/// A sum in parts that integer reductions add.
using Limbs = std::array<std::int64_t, 3>;
constexpr int limbBits = FixedPoint::halfResolution;

Limbs toLimbs(Wide sum) {
    constexpr Wide limb = Wide{1} << limbBits;
    Limbs limbs{};
    for (std::int64_t &part : limbs) {
        part = static_cast<std::int64_t>(sum & (limb - 1));
        sum >>= limbBits;
    }
    limbs[2] += static_cast<std::int64_t>(sum) << limbBits; // the sign, and what is above
    return limbs;
}

Wide toWide(const Limbs &limbs) {
    return (static_cast<Wide>(limbs[2]) << (2 * limbBits)) + (static_cast<Wide>(limbs[1]) << limbBits) +
           static_cast<Wide>(limbs[0]);
}

class RowsOnHost final : public ExactRows {
  public:
    explicit RowsOnHost(std::span<const real> rows) : rows_(rows) {}

    void findLargest(std::span<real> largest) const override {
        DNDS_CHECK(!largest.empty() && rows_.size() % largest.size() == 0, ArgumentError, "{} values are no rows of {}",
                   rows_.size(), largest.size());
        std::fill(largest.begin(), largest.end(), 0.0);
        for (std::size_t i = 0; i < rows_.size(); i += largest.size())
            for (std::size_t k = 0; k < largest.size(); k++)
                largest[k] = std::max(largest[k], FixedPoint::magnitude(rows_[i + k]));
    }

    void add(std::span<const std::optional<int>> shifts, std::span<Wide> sums) const override {
        for (std::size_t k = 0; k < sums.size(); k++) {
            sums[k] = 0;
            if (shifts[k])
                for (std::size_t i = k; i < rows_.size(); i += sums.size())
                    sums[k] += FixedPoint::toInteger(rows_[i], *shifts[k]);
        }
    }

  private:
    std::span<const real> rows_;
};

/// What `body` throws.
template <class Body>
std::exception_ptr failureOf(const Body &body) {
    try {
        body();
    } catch (...) {
        return std::current_exception();
    }
    return nullptr;
}

} // namespace

void exactSums(CommunicatorView comm, const ExactRows &rows, std::span<real> sums) {
    const std::size_t columns = sums.size();
    // The largest magnitudes; infinite where some value is not finite. The last number tells of failures.
    std::vector<real> largest(columns + 1, 0.0);
    std::exception_ptr failure = failureOf([&] { rows.findLargest({largest.data(), columns}); });
    largest.back() = failure ? 1 : 0;
    comm.allReduce(largest.data(), static_cast<int>(largest.size()), MPI_MAX);
    if (largest.back() > 0)
        comm.agree(failure);

    std::vector<std::optional<int>> shifts(columns);
    for (std::size_t k = 0; k < columns; k++)
        if (std::isfinite(largest[k]) && largest[k] != 0.0)
            shifts[k] = FixedPoint::shiftFor(largest[k]);
    std::vector<Wide> own(columns);
    failure = failureOf([&] { rows.add(shifts, own); });
    std::vector<Limbs> limbs;
    for (const Wide sum : own)
        limbs.push_back(toLimbs(sum));
    limbs.push_back({failure ? 1 : 0, 0, 0});
    comm.allReduce(limbs.data()->data(), static_cast<int>(3 * limbs.size()), MPI_SUM);
    if (limbs.back()[0] > 0)
        comm.agree(failure);
    for (std::size_t k = 0; k < columns; k++)
        if (shifts[k])
            sums[k] = static_cast<real>(std::ldexp(static_cast<long double>(toWide(limbs[k])), -*shifts[k]));
        else
            sums[k] = largest[k] == 0.0 ? 0.0 : std::numeric_limits<real>::quiet_NaN();
}

void exactSums(CommunicatorView comm, std::span<const real> rows, std::span<real> sums) {
    exactSums(comm, RowsOnHost(rows), sums);
}

} // namespace DNDS
