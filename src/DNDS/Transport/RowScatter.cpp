#include "DNDS/Transport/RowScatter.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace DNDS {

RowScatter::RowScatter(std::span<const index> rows, const RowPart &part) {
    std::vector<ByteBlock> runs = joinRows(rows, part);
    for (const ByteBlock &run : runs)
        bytes_ += run.bytes;
    if (runs.size() > 1)
        runs_ = std::make_shared<const std::vector<ByteBlock>>(std::move(runs));
    else if (!runs.empty())
        only_ = runs.front();
}

void RowScatter::scatter(const std::byte *from, std::byte *base) const {
    for (const ByteBlock &run : runs()) {
        std::memcpy(base + run.offset, from, run.bytes);
        from += run.bytes;
    }
}

std::vector<Device::CopyBlock> blocksBetween(const RowGather &from, const RowScatter &to) {
    std::vector<Device::CopyBlock> blocks;
    const std::vector<ByteBlock> sources = from.blocks();
    const std::span<const ByteBlock> destinations = to.runs();
    std::size_t read = 0;    // bytes of source number s
    std::size_t written = 0; // bytes of destination number d
    for (std::size_t s = 0, d = 0; s < sources.size() && d < destinations.size();) {
        const std::size_t bytes = std::min(sources[s].bytes - read, destinations[d].bytes - written);
        blocks.push_back({sources[s].offset + read, destinations[d].offset + written, bytes});
        read += bytes;
        written += bytes;
        if (read == sources[s].bytes) {
            ++s;
            read = 0;
        }
        if (written == destinations[d].bytes) {
            ++d;
            written = 0;
        }
    }
    return blocks;
}

} // namespace DNDS
