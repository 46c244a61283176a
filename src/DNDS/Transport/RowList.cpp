#include "DNDS/Transport/TransportTypes.hpp"

#include "DNDS/Base/Error.hpp"

#include <algorithm>
#include <limits>
#include <mutex>
#include <utility>

namespace DNDS {

namespace {

/// The same rows in the same order with the fewest loops, which are the innermost ones.
/// O(loops). Two loops become one if the outer stride continues the inner loop: inner count times inner stride.
RowBox withFewestLoops(const RowBox &box) {
    RowBox merged;
    merged.first = box.first;
    std::size_t loop = RowBox::loops; // the outermost one so far
    for (std::size_t d = RowBox::loops; d-- > 0;) {
        if (box.counts[d] == 1)
            continue;
        if (loop < RowBox::loops && box.strides[d] == merged.counts[loop] * merged.strides[loop]) {
            merged.counts[loop] *= box.counts[d];
            continue;
        }
        --loop;
        merged.counts[loop] = box.counts[d];
        merged.strides[loop] = box.strides[d];
    }
    if (loop == RowBox::loops)
        merged.strides.back() = 1; // one row
    return merged;
}

/// Whether the rows of a box with the fewest loops are consecutive.
bool isRun(const RowBox &box) { return box.counts.back() == box.size() && box.strides.back() == 1; }

/// Held while a list is analysed for the first time: several threads may bind exchanges of one pattern. One lock
/// for all lists, since set-up is rare.
std::mutex &findingOut() {
    static std::mutex only;
    return only;
}

RowList::Extent extentOf(std::span<const RowBox> boxes) {
    RowList::Extent extent{boxes.front().first, boxes.front().first, 0};
    for (const RowBox &box : boxes) {
        // Each loop extends the box to one side, by its sign: the extremes add up. O(boxes).
        index least = box.first;
        index most = box.first;
        for (std::size_t d = 0; d < RowBox::loops; ++d) {
            const index reach = (box.counts[d] - 1) * box.strides[d];
            least += std::min<index>(reach, 0);
            most += std::max<index>(reach, 0);
        }
        extent.least = std::min(extent.least, least);
        extent.most = std::max(extent.most, most);
        extent.runs += static_cast<std::size_t>(box.strides.back() == 1 ? box.size() / box.counts.back() : box.size());
    }
    return extent;
}

} // namespace

RowList RowList::boxes(std::span<const RowBox> boxes) {
    // Each box with the fewest loops, neighbours joined, empty ones dropped: copying then sees the longest runs.
    // O(boxes).
    std::vector<RowBox> kept;
    kept.reserve(boxes.size());
    index count = 0;
    for (const RowBox &box : boxes) {
        DNDS_CHECK(std::ranges::all_of(box.counts, [](index rows) { return rows >= 0; }), ArgumentError,
                   "a box of rows from row {} has a negative count", box.first);
        if (box.size() == 0)
            continue;
        count += box.size();
        const RowBox merged = withFewestLoops(box);
        // Runs that follow each other are joined, so that a box over a whole range is found to be one.
        if (!kept.empty() && isRun(kept.back()) && isRun(merged) &&
            kept.back().first + kept.back().counts.back() == merged.first)
            kept.back().counts.back() += merged.counts.back();
        else
            kept.push_back(merged);
    }
    if (kept.empty())
        return {0, 0};
    if (kept.size() == 1 && isRun(kept.front()))
        return {kept.front().first, kept.front().first + count};
    if (kept.size() < boxes.size())
        kept.shrink_to_fit();
    RowList rows(kept.front().first, kept.front().first);
    rows.range_ = false;
    rows.count_ = count;
    rows.boxes_ = std::make_shared<const std::vector<RowBox>>(std::move(kept));
    return rows;
}

const RowList::Extent &RowList::extent() const {
    const std::lock_guard lock(findingOut());
    return findExtent();
}

// O(rows) or O(boxes) once; later calls return the result. Runs count pairs of neighbours that are not consecutive.
const RowList::Extent &RowList::findExtent() const {
    if (extent_.runs == 0 && boxes_ != nullptr)
        extent_ = extentOf(*boxes_);
    if (extent_.runs > 0 || rows_.empty())
        return extent_;
    // One pass without branches, which compilers turn into vector instructions.
    Extent extent{rows_.front(), rows_.front(), 1};
    for (std::size_t k = 1; k < rows_.size(); ++k) {
        extent.least = std::min(extent.least, rows_[k]);
        extent.most = std::max(extent.most, rows_[k]);
        extent.runs += static_cast<std::size_t>(rows_[k] != rows_[k - 1] + 1);
    }
    return extent_ = extent;
}

const std::shared_ptr<const std::vector<std::uint32_t>> &RowList::numbers() const {
    // Half the memory of 64-bit numbers, and what kernels and gathers read; null where rows are too far apart.
    const std::lock_guard lock(findingOut());
    if (numbers_ || !isList() ||
        findExtent().most - findExtent().least > index{std::numeric_limits<std::uint32_t>::max()})
        return numbers_;
    auto numbers = std::make_shared<std::vector<std::uint32_t>>(rows_.size());
    std::transform(rows_.begin(), rows_.end(), numbers->begin(),
                   [least = findExtent().least](index row) { return static_cast<std::uint32_t>(row - least); });
    return numbers_ = std::move(numbers);
}

} // namespace DNDS
