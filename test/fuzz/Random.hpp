/// @file Random.hpp
/// @brief The same random choices on every machine.
#pragma once

#include "DNDS/Geom/Source/IndexPermutation.hpp"

#include <cstddef>
#include <cstdint>

namespace DNDS::Geom::fuzz {

class Random {
  public:
    explicit Random(std::uint64_t seed) : state_(mixBits(seed + 1)) {}
    std::uint64_t next() { return mixBits(state_ += 0x9e3779b97f4a7c15U); }
    /// In [0, count); 0 for none.
    std::size_t below(std::size_t count) { return count == 0 ? 0 : static_cast<std::size_t>(next() % count); }
    template <class List>
    const auto &oneOf(const List &list) {
        return list[below(std::size(list))];
    }

  private:
    std::uint64_t state_;
};

} // namespace DNDS::Geom::fuzz
