/// @file RowPacking.hpp
/// @brief Rows of any array as bytes in messages of words. What `Redistribute` and checkpoints share; not for users.
#pragma once

#include "DNDS/Storage/ArrayBase.hpp"

#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

namespace DNDS::Detail {

inline void copyBytes(std::byte *to, const std::byte *from, index bytes) {
    if (bytes > 0)
        std::memcpy(to, from, static_cast<std::size_t>(bytes));
}

/// Where each row of an array is on the host. Padding is no part of it.
class HostRows {
  public:
    /// Throws StateError for a decompressed CSR array; StaleError.
    explicit HostRows(const ArrayBase &array)
        : array_(array), layout_(array.rowLayout(MemorySpace::Host)),
          elementBytes_(static_cast<index>(array.shape().elementBytes)) {}

    index size() const { return layout_.rows; }
    index bytes(index row) const { return array_.rowSize(row) * elementBytes_; }
    const std::byte *begin(index row) const { return layout_.parts[0].base + layout_.parts[0].begin(row); }
    const RowLayout &layout() const { return layout_; }

  private:
    const ArrayBase &array_;
    RowLayout layout_;
    index elementBytes_;
};

/// The number of words that so many bytes take.
inline index wordsOf(index bytes) {
    constexpr index wordBytes = sizeof(index);
    return (bytes + wordBytes - 1) / wordBytes;
}

/// Writes numbers and bytes one after the other into a list of words.
class Packer {
  public:
    explicit Packer(std::vector<index> &words) : words_(words) {}

    void put(index value) { words_.push_back(value); }
    /// Room for bytes, which `fill` writes.
    template <class Fill>
    void putBytes(index bytes, Fill &&fill) {
        const std::size_t begin = words_.size();
        words_.resize(begin + static_cast<std::size_t>(wordsOf(bytes)), 0);
        fill(reinterpret_cast<std::byte *>(words_.data() + begin));
    }
    /// The bytes of these rows, one after the other.
    void putRows(const HostRows &rows, std::span<const index> members) {
        index bytes = 0;
        for (const index row : members)
            bytes += rows.bytes(row);
        putBytes(bytes, [&](std::byte *to) {
            for (const index row : members) {
                copyBytes(to, rows.begin(row), rows.bytes(row));
                to += rows.bytes(row);
            }
        });
    }

  private:
    std::vector<index> &words_;
};

} // namespace DNDS::Detail
