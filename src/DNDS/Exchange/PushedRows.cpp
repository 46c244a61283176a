#include "DNDS/Exchange/PushedRows.hpp"

#include "DNDS/Base/Error.hpp"
#include "DNDS/Device/DeviceMemory.hpp"
#include "DNDS/Device/RowKernelBodies.hpp"
#include "DNDS/Exchange/Combine.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>

namespace DNDS {

namespace {

[[noreturn]] void throwOtherSize(index row, const ExchangeMember &member) {
    throw DataError(
        fmt::format("a copy of row {} of '{}' that was pushed has another size than the row: pull sizes before "
                    "the push, or push with PushOp::Replace",
                    row, member.name));
}

std::size_t scalarBytes(ElementKind kind) {
    std::size_t bytes = 1; // opaque elements are single bytes here
    Device::forElementKind(kind, [&]<class T>() { bytes = sizeof(T); });
    return bytes;
}

/// Not for Replace, which copies.
Device::Combination combinationOf(PushOp op) {
    return op == PushOp::Min   ? Device::Combination::Min
           : op == PushOp::Max ? Device::Combination::Max
                               : Device::Combination::Sum;
}

/// Appends values at a multiple of 16 bytes, for lists of several types in one device buffer; returns their offset.
/// Device code loads whole words, so each list begins aligned for any of its types.
template <class T>
std::uint64_t append(std::vector<std::byte> &bytes, const std::vector<T> &values) {
    const std::uint64_t at = (bytes.size() + 15) / 16 * 16;
    bytes.resize(at + values.size() * sizeof(T));
    if (!values.empty())
        std::memcpy(bytes.data() + at, values.data(), values.size() * sizeof(T));
    return at;
}

/// Whether pushes of an array have the pattern's order, which does not depend on ranks: that of rows of one size.
bool hasOrder(const ExchangePattern &pattern, const RowLayout &father) {
    return father.parts[0].offsets == nullptr && !pattern.pushOrder().empty();
}

/// The numbers of received rows in the order in which they are applied: as received, or that of the pattern. O(rows).
std::vector<std::size_t> pushOrderOf(const ExchangePattern &pattern, const RowLayout &father, std::size_t rows) {
    std::vector<std::size_t> order(rows);
    std::iota(order.begin(), order.end(), std::size_t{0});
    if (!hasOrder(pattern, father))
        return order;
    auto next = order.begin();
    for (const auto &[box, place] : pattern.pushOrder()) {
        std::iota(next, next + box.size(), static_cast<std::size_t>(place));
        next += box.size();
    }
    return order;
}

} // namespace

// Two passes over each member: sizes of all its rows are compared before any of its elements changes. O(rows
// received), without allocation.
void combineOnHost(const ExchangePattern &pattern, PushOp op, std::span<const ExchangeMember> members,
                   std::span<const RowLayout> fathers, std::span<std::byte *const> staging) {
    if (staging.empty()) // no rank pushes rows to this one
        return;
    // A row's contributions are applied in the order of readers' ranks, or that of the pattern: sums have the same bits
    // however messages arrived.
    for (std::size_t m = 0, part = 0; m < members.size(); ++m) {
        const RowLayout &father = fathers[m];
        const auto count = static_cast<std::size_t>(father.partCount);
        // Staged rows lie in the order of the readers' lists: one walk over both. O(rows received).
        const auto forEachStaged = [&](std::size_t p, auto &&function) {
            const RowPart &to = father.parts[p];
            const std::byte *from = staging[part + p];
            const auto run = [&](index first, index last) {
                function(first, last, from);
                from += to.begin(last) - to.begin(first);
            };
            if (hasOrder(pattern, father))
                for (const auto &[box, place] : pattern.pushOrder()) {
                    from = staging[part + p] + to.begin(place);
                    box.forEachRun(run);
                }
            else
                for (const RowList &list : pattern.readers().lists)
                    list.forEachRun(run);
        };
        // With an operation, the parts that describe rows (sizes) must agree; otherwise nothing is changed.
        for (std::size_t p = 1; p < count && op != PushOp::Replace; ++p)
            forEachStaged(p, [&](index first, index last, const std::byte *from) {
                const RowPart &sizes = father.parts[p];
                for (index row = first; row < last; ++row)
                    if (std::memcmp(sizes.base + sizes.begin(row), from + sizes.begin(row) - sizes.begin(first),
                                    sizes.begin(row + 1) - sizes.begin(row)) != 0)
                        throwOtherSize(row, members[m]);
            });
        for (std::size_t p = 0; p < count; ++p) {
            const CombineFunction combine = p == 0 ? combineFunction(father.parts[p].kind, op)
                                                   : combineFunction(ElementKind::Opaque, PushOp::Replace);
            forEachStaged(p, [&](index first, index last, const std::byte *from) {
                const RowPart &to = father.parts[p];
                combine(to.base + to.begin(first), from, to.begin(last) - to.begin(first));
            });
        }
        part += count;
    }
}

/// Sorts runs and joins neighbours, so that one call zeroes them. O(runs log(runs)).
void GhostZeroing::joinRuns(std::vector<IndexRange> &runs) {
    std::ranges::sort(runs, {}, &IndexRange::begin);
    std::size_t kept = 0;
    for (const IndexRange &run : runs)
        if (kept > 0 && runs[kept - 1].end == run.begin)
            runs[kept - 1].end = run.end;
        else
            runs[kept++] = run;
    runs.resize(kept);
}

/// Pieces of at most 1 MiB: the device copies zeros from a buffer of that size, however many ghosts it zeroes.
template <class Visit>
void GhostZeroing::forEachPiece(const RowLayout &son, Visit &&visit) const {
    constexpr std::size_t atOnce = std::size_t{1} << 20U;
    // Elements alone (part 0); padding between rows of a run is zeroed with them.
    for (const IndexRange &run : runs_)
        for (std::size_t at = son.parts[0].begin(run.begin), end = son.parts[0].begin(run.end); at < end;) {
            const std::size_t bytes = std::min(end - at, atOnce);
            visit(at, bytes);
            at += bytes;
        }
}

GhostZeroing::GhostZeroing(const ExchangePattern &pattern, std::span<const RowLayout> sons, MemorySpace space,
                           Device::StreamHandle stream, bool captured) {
    for (const RowList &list : pattern.owners().lists)
        list.forEachRun([&](index first, index last) { runs_.push_back({first, last}); });
    joinRuns(runs_);
    if (space != MemorySpace::Device)
        return;
    // The device is zeroed by copies from a buffer of zeros.
    if (!captured)
        copies_.emplace();
    // The buffer has the length of the longest piece and is read for each; one segment of copies a member.
    std::size_t longest = 0;
    for (const RowLayout &son : sons) {
        std::vector<Device::CopyBlock> blocks;
        forEachPiece(son, [&](std::size_t at, std::size_t bytes) {
            blocks.push_back({0, at, bytes});
            longest = std::max(longest, bytes);
        });
        if (copies_)
            copies_->addBlocks(blocks);
    }
    const std::vector<std::byte> zeros(longest);
    zeros_ = Device::DeviceBuffer<std::byte>(zeros.size());
    Device::copy(zeros_.data(), MemorySpace::Device, zeros.data(), MemorySpace::Host, zeros.size(), stream);
    Device::synchronize(stream);
    if (copies_)
        copies_->prepare(stream);
}

void GhostZeroing::run(std::span<const RowLayout> sons, Device::StreamHandle stream) {
    // On the device all members point at the same zeros and are written by one kernel. A graph that captures the call
    // would keep the addresses of pinned tables, so there the copies are queued one by one.
    const bool kernel = copies_ && zeros_.size() > 0;
    for (std::size_t m = 0; m < sons.size(); ++m) {
        std::byte *elements = sons[m].parts[0].base;
        if (kernel)
            copies_->point(m, zeros_.data(), elements);
        else
            forEachPiece(sons[m], [&](std::size_t at, std::size_t bytes) {
                if (sons[m].space == MemorySpace::Host)
                    std::memset(elements + at, 0, bytes);
                else
                    Device::copy(elements + at, MemorySpace::Device, zeros_.data(), MemorySpace::Device, bytes, stream);
            });
    }
    if (kernel)
        copies_->launch(stream);
}

/// One part of one member.
struct DeviceCombine::Part {
    std::size_t member;
    std::size_t part;                   ///< part of the member
    std::optional<std::size_t> segment; ///< segment of `replace_`
    std::uint64_t targetsAt = 0;        ///< in `lists_`
    std::uint64_t contributionsAt = 0;
    std::uint64_t rows = 0;
    /// Threads that share a row.
    std::uint32_t lanes = 1;
    /// A part of sizes or shapes, whose rows must be equal, not combined.
    bool compare = false;
    /// The scalars of the part, if they are combined.
    ElementKind kind = ElementKind::Opaque;
};

// Tables are made once a plan: launches fill in addresses only. All parts' lists share one device buffer.
DeviceCombine::DeviceCombine(const ExchangePattern &pattern, PushOp op, std::span<const RowLayout> fathers,
                             Device::StreamHandle stream)
    : op_(op) {
    const std::vector<index> arrived = pattern.readers().allRows();
    // A stable sort by row keeps the host's order of the contributions to each row: O(rows log(rows)).
    const auto sortedFor = [&](const RowLayout &father) {
        std::vector<std::size_t> order = pushOrderOf(pattern, father, arrived.size());
        std::ranges::stable_sort(order, {}, [&](std::size_t k) { return arrived[k]; });
        return order;
    };
    std::vector<std::size_t> order = sortedFor(fathers.front());
    // CSR: contributions of row r are order[firsts[r]] .. order[firsts[r + 1]], of whichever order.
    std::vector<std::uint64_t> firsts; // first contribution of each row in `order`
    for (std::size_t k = 0; k < order.size(); ++k)
        if (k == 0 || arrived[order[k]] != arrived[order[k - 1]]) {
            firsts.push_back(k);
            rows_.push_back(arrived[order[k]]);
        }
    firsts.push_back(order.size());

    refused_ = HostDeviceBuffer(fathers.size() * sizeof(std::uint32_t), Device::pinnedHostMemory());
    std::vector<std::byte> lists;
    for (std::size_t m = 0; m < fathers.size(); ++m) {
        if (m > 0 && hasOrder(pattern, fathers[m]) != hasOrder(pattern, fathers[m - 1]))
            order = sortedFor(fathers[m]);
        for (std::size_t p = 0; p < static_cast<std::size_t>(fathers[m].partCount); ++p) {
            const RowPart &to = fathers[m].parts[p];
            // Rows may differ in size, so that the places of staged rows are running sums, of each part.
            std::vector<std::uint64_t> offsets(arrived.size()); // in the staging buffer
            std::uint64_t total = 0;
            for (std::size_t k = 0; k < arrived.size(); ++k) {
                offsets[k] = total;
                total += to.begin(arrived[k] + 1) - to.begin(arrived[k]);
            }
            Part part{.member = m, .part = p, .segment = std::nullopt};
            if (op == PushOp::Replace) { // the last one stays
                std::vector<Device::CopyBlock> blocks(rows_.size());
                for (std::size_t r = 0; r < rows_.size(); ++r)
                    blocks[r] = {offsets[order[firsts[r + 1] - 1]], to.begin(rows_[r]),
                                 to.begin(rows_[r] + 1) - to.begin(rows_[r])};
                part.segment = replace_.addBlocks(blocks);
            } else {
                planOperation(part, to, offsets, total, order, firsts, lists);
            }
            parts_.push_back(part);
        }
    }
    lists_ = Device::DeviceBuffer<std::byte>(lists.size());
    Device::copy(lists_.data(), MemorySpace::Device, lists.data(), MemorySpace::Host, lists.size(), stream);
    Device::synchronize(stream);
    replace_.prepare(stream);
}

DeviceCombine::~DeviceCombine() = default;

/// For an operation, lists the contributions to each row of one part.
void DeviceCombine::planOperation(Part &part, const RowPart &to, std::span<const std::uint64_t> offsets,
                                  std::uint64_t total, std::span<const std::size_t> order,
                                  std::span<const std::uint64_t> firsts, std::vector<std::byte> &lists) {
    // Part 0 holds elements, which are combined; further parts describe rows (sizes, shapes), and must be equal.
    part.compare = part.part > 0;
    checks_ = checks_ || part.compare;
    part.kind = to.kind;
    const std::size_t scalar = part.compare ? 1 : scalarBytes(to.kind);
    // CSR from owned rows to contributions: each row is combined by its own threads, without atomics, in the host's
    // order.
    std::vector<Device::CombineTarget> targets(rows_.size() + 1);
    std::vector<std::uint64_t> contributions(order.size());
    for (std::size_t k = 0; k < order.size(); ++k)
        contributions[k] = offsets[order[k]];
    for (std::size_t r = 0; r < rows_.size(); ++r)
        targets[r] = {to.begin(rows_[r]), (to.begin(rows_[r] + 1) - to.begin(rows_[r])) / scalar, firsts[r]};
    targets[rows_.size()].first = order.size();
    part.rows = rows_.size();
    // Threads that share a row: the average number of scalars of a row, rounded down to a power of two, at most 32.
    const std::uint64_t average = total / scalar / std::max<std::uint64_t>(1, offsets.size());
    part.lanes = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(std::bit_floor(average), 1, 32));
    part.targetsAt = append(lists, targets);
    part.contributionsAt = append(lists, contributions);
}

Device::CombineTable DeviceCombine::tableOf(const Part &part, const RowLayout &father, const std::byte *staging) const {
    // Lists were made once; addresses of rows and staging buffers are the present ones.
    Device::CombineTable table{};
    table.destination = father.parts[part.part].base;
    table.source = staging;
    table.targets = reinterpret_cast<const Device::CombineTarget *>(lists_.data() + part.targetsAt);
    table.contributions = reinterpret_cast<const std::uint64_t *>(lists_.data() + part.contributionsAt);
    table.rows = part.rows;
    table.lanes = part.lanes;
    table.kind = part.kind;
    table.combination = combinationOf(op_);
    return table;
}

// Queues one kernel for Replace, else one a part.
void DeviceCombine::launch(std::span<const RowLayout> fathers, std::span<std::byte *const> staging,
                           Device::StreamHandle stream) {
    if (rows_.empty())
        return;
    if (op_ == PushOp::Replace) {
        for (std::size_t k = 0; k < parts_.size(); ++k)
            replace_.point(*parts_[k].segment, staging[k], fathers[parts_[k].member].parts[parts_[k].part].base);
        replace_.launch(stream);
        return;
    }
    // Comparisons come first on the stream; combinations of a member whose sizes differ find its entry set, and
    // change nothing.
    auto *refused = reinterpret_cast<std::uint32_t *>(refused_.write(MemorySpace::Host, "sizes that differ"));
    std::fill_n(refused, fathers.size(), 0U); // kernels of the push before have run: `check` was called
    for (std::size_t k = 0; k < parts_.size(); ++k)
        if (parts_[k].compare)
            Device::compareRows(tableOf(parts_[k], fathers[parts_[k].member], staging[k]), refused + parts_[k].member,
                                stream);
    for (std::size_t k = 0; k < parts_.size(); ++k)
        if (!parts_[k].compare) {
            Device::CombineTable table = tableOf(parts_[k], fathers[parts_[k].member], staging[k]);
            table.refused = checks_ ? refused + parts_[k].member : nullptr;
            Device::combineRows(table, stream);
        }
}

void DeviceCombine::check(std::span<const ExchangeMember> members) const {
    if (!checks_)
        return;
    // Pinned memory, which kernels have written: the stream has been waited for.
    const auto *refused =
        reinterpret_cast<const std::uint32_t *>(refused_.read(MemorySpace::Host, "sizes that differ"));
    for (std::size_t m = 0; m < members.size(); ++m)
        if (refused[m] != 0)
            throwOtherSize(rows_[refused[m] - 1], members[m]);
}

} // namespace DNDS
