/// @file KernelTables.hpp
/// @brief Tables of views and the like that kernels read, kept until what they refer to has changed.
#pragma once

#include "DNDS/Storage/HostDeviceBuffer.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <list>
#include <type_traits>
#include <utility>
#include <vector>

namespace DNDS {

/// A few tables of values, each made for one key: numbers that change when the values would (generations, addresses).
///
///     const auto &table = tables.get(space, {u.array().generation()}, [&] { return viewsOf(u); });
///     parallelFor(executor, n, Kernel{table.data(space)});
///
/// The latest 16 are kept, so that stages that are swapped in turn find theirs. A captured graph reads that of its
/// capture, and is valid as long as it.
template <class Value>
class KernelTables {
    static_assert(std::is_trivially_copyable_v<Value>);

  public:
    using Key = std::vector<std::uint64_t>;

    /// Values for one key, on the host, and on the device if they were made for it.
    struct Table {
        MemorySpace space;
        Key key;
        std::size_t size;
        HostDeviceBuffer bytes;

        /// The first value; null in an empty table. O(1).
        const Value *data(MemorySpace in) const {
            return reinterpret_cast<const Value *>(bytes.read(in, "a table for kernels"));
        }
    };

    /// The table for `key` and `space`: found, or made of the values that `make()` returns as a vector. It stays valid
    /// for 15 more keys. Local; a new one for the device waits for its copy, and for all kernels if it replaces the
    /// oldest. Throws MemoryError.
    /// Least recently used first out, by moving hits to the front: at most 16 comparisons of short keys.
    template <class Make>
    const Table &get(MemorySpace space, Key key, const Make &make) {
        const auto found =
            std::ranges::find_if(tables_, [&](const Table &one) { return one.space == space && one.key == key; });
        if (found != tables_.end()) {
            tables_.splice(tables_.begin(), tables_, found);
            return tables_.front();
        }
        const std::vector<Value> values = make();
        const std::size_t bytes = values.size() * sizeof(Value);
        Table table{space, std::move(key), values.size(), HostDeviceBuffer(bytes)};
        if (bytes > 0)
            std::memcpy(table.bytes.write(MemorySpace::Host, "a table for kernels"), values.data(), bytes);
        if (space == MemorySpace::Device)
            table.bytes.toDevice();
        if (tables_.size() == most) {
            if (tables_.back().space == MemorySpace::Device)
                Device::synchronizeAll();
            tables_.pop_back();
        }
        tables_.push_front(std::move(table));
        return tables_.front();
    }

  private:
    static constexpr std::size_t most = 16;

    std::list<Table> tables_; ///< the last used in front
};

} // namespace DNDS
