#include "DNDS/Transport/RowScatter.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace DNDS {

RowScatter::RowScatter(const RowList &rows, const RowPart &part) {
    // A range is one run, found in O(1); boxes of rows of one width keep their loops; other rows become runs, and
    // one run is kept without a list.
    if (rows.isRange()) {
        const std::size_t begin = part.begin(rows.first());
        only_ = {begin, part.begin(rows.first() + rows.count()) - begin};
        bytes_ = only_.bytes;
        return;
    }
    if (rows.boxes() != nullptr && part.offsets == nullptr) {
        boxes_ = BoxCopy(rows, part.stride);
        bytes_ = boxes_.bytes();
        return;
    }
    std::vector<ByteBlock> runs = joinRows(rows, part);
    for (const ByteBlock &run : runs)
        bytes_ += run.bytes;
    if (runs.size() > 1)
        runs_ = std::make_shared<const std::vector<ByteBlock>>(std::move(runs));
    else if (!runs.empty())
        only_ = runs.front();
}

void RowScatter::scatter(const std::byte *from, std::byte *base) const {
    if (boxes_.bytes() > 0)
        return boxes_.scatter(from, base);
    if (runs_ == nullptr) {
        if (bytes_ > 0)
            std::memcpy(base + only_.offset, from, bytes_);
        return;
    }
    for (const ByteBlock &run : *runs_) {
        std::memcpy(base + run.offset, from, run.bytes);
        from += run.bytes;
    }
}

std::vector<ByteBlock> RowScatter::runs() const {
    if (boxes_.bytes() > 0)
        return boxes_.blocks();
    if (runs_ != nullptr)
        return *runs_;
    return std::vector<ByteBlock>(bytes_ > 0 ? 1 : 0, only_);
}

// Both sides partition the same bytes: at most runs of `from` plus runs of `to` less one copies.
std::vector<Device::CopyBlock> blocksBetween(const RowGather &from, const RowScatter &to) {
    std::vector<Device::CopyBlock> blocks;
    // Both lists of runs are walked side by side; a copy ends where a run of either side does. O(runs of both).
    const std::vector<ByteBlock> sources = from.blocks();
    const std::vector<ByteBlock> destinations = to.runs();
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
