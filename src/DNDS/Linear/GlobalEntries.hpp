/// @file GlobalEntries.hpp
/// @brief The entries of a matrix by global numbers, as other libraries take them.
#pragma once

#include "DNDS/Index/GhostMapping.hpp"
#include "DNDS/Linear/MatrixPattern.hpp"

#include <vector>

namespace DNDS {

/// The entries of the owned rows of a pattern, in integers of type `Int`, which must be wide enough for them.
template <class Int>
struct GlobalEntries {
    /// Local, O(entries). Throws StateError, which names `what`, for a pattern without global numbers.
    GlobalEntries(const MatrixPattern &pattern, const char *what) {
        const auto &mapping = pattern.unknowns()->mapping();
        DNDS_CHECK(mapping != nullptr, StateError,
                   "the pattern '{}' was made from lists, without global numbers, which {} needs", pattern.name(),
                   what);
        columns.reserve(pattern.columns().size());
        for (index row = 0; row < pattern.rows(); ++row) {
            Int mine = 0;
            for (const LocalIndex column : pattern.columns(row)) {
                const index global = mapping->toGlobal(column);
                columns.push_back(static_cast<Int>(global));
                mine += mapping->global()->isLocal(global) ? 1 : 0; // also where a ghost copies an own row
            }
            own.push_back(mine);
            others.push_back(static_cast<Int>(pattern.columns(row).size()) - mine);
        }
    }

    std::vector<Int> columns; ///< global numbers of the columns of all entries, in the order of the pattern
    std::vector<Int> own;     ///< [owned rows] entries in columns of this rank
    std::vector<Int> others;  ///< [owned rows] entries in columns of other ranks
};

} // namespace DNDS
