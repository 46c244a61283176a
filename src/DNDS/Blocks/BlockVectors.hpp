/// @file BlockVectors.hpp
/// @brief Fields on blocks as vectors: set, copy, scale, add, products, norms, sums and extrema.
///
///     setConstant(u, 300);
///     axpy(u, timeStep, rate);                               // u += timeStep * rate
///     const real residual = norm2(rate);
///     const real mass = sum(u, {.component = 0, .exact = true});
///
/// Nodes, faces and edges that blocks share are ghosts in all blocks but the one that owns them: reductions count them
/// once.
///
/// These are the loops of ArrayDof. Changes are Local and O(field); on the device they are queued. They act on cells
/// and all ghosts unless told otherwise: ghosts that were copies of cells stay so without an exchange. Reductions are
/// over the cells of all ranks, Collective, and wait for the device. Errors of one rank are thrown on all ranks.
/// On the device results have the bits of the host. A NaN makes them NaN.
///
/// Throw ArgumentError for a missing component, or if the second field is not on the pattern of the first or
/// has another number of components; StaleError if a field is not current in the memory of `on`.
#pragma once

#include "DNDS/Blocks/BlockField.hpp"
#include "DNDS/Device/ParallelFor.hpp"

#include <optional>

namespace DNDS {

/// The elements of an operation, and where it runs.
struct BlockElements {
    rowsize component = -1;          ///< this one only; -1: all
    std::optional<bool> ghosts = {}; ///< whether ghosts count, too; changes: yes, reductions: no
    /// Sums do not depend on blocks, ranks and order: the bits of `Task::Graph::reduce`. Some 4 ns an element.
    bool exact = false;
    Executor on = Executor::host();
};

/// u = value
void setConstant(BlockField<real> &u, real value, const BlockElements &elements = {});
/// to = from
void copy(BlockField<real> &to, const BlockField<real> &from, const BlockElements &elements = {});
/// u *= factor
void scale(BlockField<real> &u, real factor, const BlockElements &elements = {});
/// y += a x
void axpy(BlockField<real> &y, real a, const BlockField<real> &x, const BlockElements &elements = {});

/// The sum of the products of all elements with their partners.
real dot(const BlockField<real> &u, const BlockField<real> &v, const BlockElements &elements = {});
/// The sum of all elements; of their magnitudes; the Euclidean norm; the largest magnitude, 0 without elements.
real sum(const BlockField<real> &u, const BlockElements &elements = {});
real norm1(const BlockField<real> &u, const BlockElements &elements = {});
real norm2(const BlockField<real> &u, const BlockElements &elements = {});
real normInf(const BlockField<real> &u, const BlockElements &elements = {});
/// The smallest and the largest element; +infinity and -infinity without elements.
real min(const BlockField<real> &u, const BlockElements &elements = {});
real max(const BlockField<real> &u, const BlockElements &elements = {});

} // namespace DNDS
