/// @file ExactSum.hpp
/// @brief Sums over rows that do not depend on their order, nor on the number of ranks.
#pragma once

#include "DNDS/Base/FixedPointSums.hpp"
#include "DNDS/Mpi/MessageReduction.hpp"

#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace DNDS {

/// One rank's rows, in any memory, as `exactSums` reads them. Functions are Local and may throw.
class ExactRows {
  public:
    ExactRows() = default;
    ExactRows(const ExactRows &) = delete;
    ExactRows &operator=(const ExactRows &) = delete;
    virtual ~ExactRows() = default;

    /// Fills [columns] with the largest `FixedPoint::magnitude` of each column, 0 without rows.
    virtual void findLargest(std::span<real> largest) const = 0;
    /// Fills [columns] with the sum of `scale.toInteger(value)` of each column that has a scale.
    virtual void add(std::span<const std::optional<FixedPoint::Scale>> scales,
                     std::span<FixedPoint::Wide> sums) const = 0;
};

/// The sum of each column of all ranks' rows, the same to the bit for any distribution of rows over ranks:
/// `rows` is [own rows x columns], `sums` [columns]. Collective; two reductions for all columns together.
///
/// In each column values are rounded to multiples of 2^-80 of the largest and added as integers, which is exact and
/// associative. Method: a window of Kulisch's long accumulator (Kulisch and Miranker, The arithmetic of the digital
/// computer: a new approach, SIAM Review 28, 1986) at the largest value, which the first reduction finds (Demmel and
/// Nguyen, Fast reproducible floating-point summation, ARITH 2013). A non-finite value makes its column's sum NaN.
/// Throws ArgumentError on all ranks if `rows` is no whole number of rows. Rows in device memory: `Array/ExactSums`.
void exactSums(CommunicatorView comm, std::span<const real> rows, std::span<real> sums);

/// Lists the columns of this rank, one for each sum. Local; called twice, and may throw.
using ExactColumns = std::function<std::vector<FixedPoint::Column>()>;

/// The same for columns anywhere in host memory, or products of columns: several scalar products in two reductions.
/// An exception of `columns` on one rank is thrown on all.
void exactSums(CommunicatorView comm, const ExactColumns &columns, std::span<real> sums);

/// The same for other rows. Exceptions of one rank's `rows` are thrown on all ranks.
void exactSums(CommunicatorView comm, const ExactRows &rows, std::span<real> sums);

/// The same in a running call, by messages: `running` tells the other ranks of an exception of one rank. Not Collective
/// in the sense of set-up calls: see MessageReduction.
void exactSums(MessageReduction &messages, const ExactRows &rows, std::span<real> sums);
void exactSums(MessageReduction &messages, const ExactColumns &columns, std::span<real> sums);

/// The sum of all ranks' values, as above. Collective.
inline real exactSum(CommunicatorView comm, std::span<const real> values) {
    real sum = 0;
    exactSums(comm, values, {&sum, 1});
    return sum;
}

} // namespace DNDS
