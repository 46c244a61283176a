#include "DNDS/Transport/RowList.hpp"

#include <algorithm>
#include <limits>

namespace DNDS {

const RowList::Extent &RowList::extent() const {
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
    if (numbers_ || extent().most - extent().least > index{std::numeric_limits<std::uint32_t>::max()})
        return numbers_;
    auto numbers = std::make_shared<std::vector<std::uint32_t>>(rows_.size());
    std::transform(rows_.begin(), rows_.end(), numbers->begin(),
                   [least = extent().least](index row) { return static_cast<std::uint32_t>(row - least); });
    return numbers_ = std::move(numbers);
}

} // namespace DNDS
