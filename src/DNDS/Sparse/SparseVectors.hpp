/// @file SparseVectors.hpp
/// @brief Sparse fields as vectors: set, copy, scale, add, products, norms, sums and extrema.
///
///     axpy({u, 1}, timeStep, {u, 2});                        // stage 1 += timeStep * stage 2
///     const real residual = norm2({u, 2});
///     const real mass = sum(u, {.component = 0, .exact = true, .on = Executor::device(stream)});
///
/// These are the calls of BlockVectors.hpp, for the dense field that has the default value where blocks are absent: on
/// the host, or on the device where blocks are there; exact sums and extrema have the bits of the dense field.
///
/// Changes are Local, O(blocks) and the elements of allocated ones, and on the device they are queued. They act on
/// allocated blocks, and allocate blocks of the first field where the second one has some; none is freed. Reductions
/// are Collective, wait for the device, and count absent blocks without visiting them. Errors of one rank are thrown on
/// all ranks.
///
/// Throw ArgumentError for a missing component, a second field on another pattern or with another number of components,
/// and changes after which absent blocks would have another value than the default; IndexError for a missing stage;
/// StaleError if blocks are not in the memory of `on`; what allocates, also MemoryError, and StateError in an exchange.
#pragma once

#include "DNDS/Blocks/BlockVectors.hpp"
#include "DNDS/Sparse/SparseField.hpp"

namespace DNDS {

/// A stage of a field, as an argument: `{u, 1}`; `u` itself is its stage 0. A reference: the field must outlive it.
template <class TField>
struct SparseStage {
    TField &field;
    int stage;

    /// Implicit, so that fields are arguments. Local.
    SparseStage(TField &u, int number = 0) : field(u), stage(number) {} // NOLINT
};
using SparseVector = SparseStage<SparseField<real>>;
using ConstSparseVector = SparseStage<const SparseField<real>>;

/// u = value, in allocated blocks; absent ones keep the default.
void setConstant(const SparseVector &u, real value, const BlockElements &elements = {});
/// to = from
void copy(const SparseVector &to, const ConstSparseVector &from, const BlockElements &elements = {});
/// u *= factor
void scale(const SparseVector &u, real factor, const BlockElements &elements = {});
/// y += a x
void axpy(const SparseVector &y, real a, const ConstSparseVector &x, const BlockElements &elements = {});

/// The sum of the products of all elements with their partners.
real dot(const ConstSparseVector &u, const ConstSparseVector &v, const BlockElements &elements = {});
/// The sum of all elements; of their magnitudes; the Euclidean norm; the largest magnitude, 0 without elements.
real sum(const ConstSparseVector &u, const BlockElements &elements = {});
real norm1(const ConstSparseVector &u, const BlockElements &elements = {});
real norm2(const ConstSparseVector &u, const BlockElements &elements = {});
real normInf(const ConstSparseVector &u, const BlockElements &elements = {});
/// The smallest and the largest element; +infinity and -infinity without elements.
real min(const ConstSparseVector &u, const BlockElements &elements = {});
real max(const ConstSparseVector &u, const BlockElements &elements = {});

} // namespace DNDS
