/// @file Adjacency.hpp
/// @brief Lists of mesh entities, by global number or by local one: two types, and the functions between them.
#pragma once

#include "DNDS/Array/ArrayAdjacency.hpp"
#include "DNDS/Index/GhostMapping.hpp"

#include <span>
#include <string>
#include <vector>

namespace DNDS::Geom {

/// Rows of global numbers.
using GlobalAdjacency = ArrayAdjacency<NonUniformSize, NonUniformSize, index>;
/// Rows of local numbers: owned entities first, then ghosts.
using LocalAdjacency = ArrayAdjacency<NonUniformSize, NonUniformSize, LocalIndex>;
/// Two local numbers a row.
using LocalPairs = ArrayAdjacency<2, 2, LocalIndex>;

/// In place of a local number: nothing is there, the mesh ends.
inline constexpr LocalIndex noEntity = -1;
/// In place of a local number: something is there, but this rank has no copy of it.
inline constexpr LocalIndex notLocal = -2;

/// The same rows with local numbers of the entities that `mapping` is about. Local. O(entries log ghosts). Negative
/// entries mean "none" and become `noEntity`. Throws IndexError for an entity that this rank neither owns nor has as a
/// ghost, ArgumentError where local numbers do not fit 32 bits.
LocalAdjacency toLocal(const GlobalAdjacency &rows, const GhostMapping &mapping);

/// The same rows with global numbers; the inverse of `toLocal`. `noEntity` and `notLocal` become InvalidIndex. Local.
/// Throws IndexError for an entry that is no local number.
GlobalAdjacency toGlobal(const LocalAdjacency &rows, const GhostMapping &mapping);

/// Rows from starts [rows + 1] and entries. Local.
LocalAdjacency makeAdjacency(std::string name, CommunicatorView comm, std::span<const index> starts,
                             std::span<const LocalIndex> entries);

/// Which rows of `rows` have each of `columns` entities, in the order in which `order` [rows] lists them. Negative
/// entries are skipped. Local. O(entries).
LocalAdjacency transpose(std::string name, const LocalAdjacency &rows, index columns,
                         std::span<const LocalIndex> order);

} // namespace DNDS::Geom
