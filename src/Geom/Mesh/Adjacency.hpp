/// @file Adjacency.hpp
/// @brief Lists of mesh entities by global or by local number: two types, and conversions between them.
#pragma once

#include "DNDS/Array/ArrayAdjacency.hpp"
#include "DNDS/Index/GhostMapping.hpp"

#include <span>
#include <string>
#include <vector>

namespace DNDS::Geom {

/// Rows of global numbers.
/// State is a type: conversions make the other type, so a list is never read with the wrong kind of numbers.
using GlobalAdjacency = ArrayAdjacency<NonUniformSize, NonUniformSize, index>;
/// Rows of local numbers: owned entities first, then ghosts.
using LocalAdjacency = ArrayAdjacency<NonUniformSize, NonUniformSize, LocalIndex>;
/// Two local numbers per row.
using LocalPairs = ArrayAdjacency<2, 2, LocalIndex>;

/// The local number for "none", at the boundary of the mesh.
inline constexpr LocalIndex noEntity = -1;
/// A local number for an entity that exists, but of which this rank has no copy.
inline constexpr LocalIndex notLocal = -2;

/// The same rows with local numbers of the entities of `mapping`. Local. O(entries log ghosts). Negative entries mean
/// "none" and become `noEntity`. Throws IndexError for an entity that this rank neither owns nor has as a ghost,
/// ArgumentError if local numbers do not fit 32 bits.
LocalAdjacency toLocal(const GlobalAdjacency &rows, const GhostMapping &mapping);

/// The same rows with global numbers; the inverse of `toLocal`. `noEntity` and `notLocal` become InvalidIndex. Local.
/// Throws IndexError for an entry that is no local number.
GlobalAdjacency toGlobal(const LocalAdjacency &rows, const GhostMapping &mapping);

/// Rows from starts [rows + 1] and entries. Local.
LocalAdjacency makeAdjacency(std::string name, CommunicatorView comm, std::span<const index> starts,
                             std::span<const LocalIndex> entries);

/// The transpose: the rows of `rows` that contain each of `columns` entities, in the order of `order` [rows]. Negative
/// entries are skipped. Local. O(entries).
LocalAdjacency transpose(std::string name, const LocalAdjacency &rows, index columns,
                         std::span<const LocalIndex> order);

/// The same, in ascending order: the inverse of an adjacency. Local. O(entries).
LocalAdjacency transpose(std::string name, const LocalAdjacency &rows, index columns);

/// The composition: row i has the entries of the rows `second[k]` of all k in `first[i]`, each once, in the order of
/// their first appearance. Negative entries are skipped. Local. O(entries of the rows that are read). Throws IndexError
/// for an entry of `first` that is no row of `second`.
///
///     auto cellsAround = compose("cells around", mesh.cellNodes, mesh.nodeCells); // the cell itself included
LocalAdjacency compose(std::string name, const LocalAdjacency &first, const LocalAdjacency &second);

/// The restriction: the rows `kept`, in that order, with `newNumbers[c]` in place of each entry c. Entries are left out
/// where they or their new numbers are negative. Local. O(entries). Throws IndexError for rows that do not exist and
/// for entries without a new number.
LocalAdjacency restricted(std::string name, const LocalAdjacency &rows, std::span<const LocalIndex> kept,
                          std::span<const LocalIndex> newNumbers);

} // namespace DNDS::Geom
