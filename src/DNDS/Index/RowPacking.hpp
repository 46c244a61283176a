/// @file RowPacking.hpp
/// @brief Packing of array rows into messages of words, and numbers of rows. Shared by `Redistribute`, checkpoints and
/// meshes; not for users.
#pragma once

#include "DNDS/Index/Mappings.hpp"
#include "DNDS/Storage/ArrayBase.hpp"

#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

namespace DNDS::Detail {

/// The owners' entries of `numbers` for these rows; InvalidIndex for rows that are InvalidIndex. Collective.
std::vector<index> lookUp(const GlobalMapping &mapping, std::span<const index> numbers, std::span<const index> rows);

inline void copyBytes(std::byte *to, const std::byte *from, index bytes) {
    if (bytes > 0)
        std::memcpy(to, from, static_cast<std::size_t>(bytes));
}

/// The position of each row of an array on the host, without padding.
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
    /// Must not change while this is used: the layout is that of the constructor.
    const ArrayBase &array_;
    RowLayout layout_;
    /// Row sizes of the array count elements; messages count bytes.
    index elementBytes_;
};

/// The number of words that hold `bytes` bytes.
inline index wordsOf(index bytes) {
    constexpr index wordBytes = sizeof(index);
    return (bytes + wordBytes - 1) / wordBytes;
}

/// Appends room for bytes to a list of words, which `fill` writes.
template <class Fill>
void appendBytes(std::vector<index> &words, index bytes, Fill &&fill) {
    const std::size_t begin = words.size();
    words.resize(begin + static_cast<std::size_t>(wordsOf(bytes)), 0);
    fill(reinterpret_cast<std::byte *>(words.data() + begin));
}

/// Appends the bytes of these rows.
inline void appendRows(std::vector<index> &words, const HostRows &rows, std::span<const index> members) {
    index bytes = 0;
    for (const index row : members)
        bytes += rows.bytes(row);
    appendBytes(words, bytes, [&](std::byte *to) {
        for (const index row : members) {
            copyBytes(to, rows.begin(row), rows.bytes(row));
            to += rows.bytes(row);
        }
    });
}

} // namespace DNDS::Detail
