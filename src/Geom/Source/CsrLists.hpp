/// @file CsrLists.hpp
/// @brief Lists of different lengths in two arrays.
#pragma once

#include "DNDS/Base/Types.hpp"

#include <cstddef>
#include <span>
#include <vector>

namespace DNDS::Geom {

/// Lists one after the other, as compressed sparse rows. Local.
template <class T>
struct CsrLists {
    std::vector<index> starts{0}; ///< [lists + 1]
    std::vector<T> values;

    std::size_t size() const noexcept { return starts.size() - 1; }
    std::span<const T> operator[](std::size_t list) const {
        return std::span<const T>(values).subspan(static_cast<std::size_t>(starts[list]),
                                                  static_cast<std::size_t>(starts[list + 1] - starts[list]));
    }
    void append(std::span<const T> list) {
        values.insert(values.end(), list.begin(), list.end());
        starts.push_back(static_cast<index>(values.size()));
    }
};

} // namespace DNDS::Geom
