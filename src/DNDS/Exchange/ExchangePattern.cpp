#include "DNDS/Exchange/ExchangePattern.hpp"

#include "DNDS/Index/SortUnique.hpp"

namespace DNDS {

ExchangePattern::ExchangePattern(std::shared_ptr<const GhostMapping> mapping) : mapping_(std::move(mapping)) {
    DNDS_CHECK(mapping_ != nullptr, StateError, "an exchange pattern needs a ghost mapping: create it first");
}

void ExchangePattern::classifyRows() const {
    if (classified_)
        return;
    boundary_ = sortedUnique(readers().values);
    inner_.reserve(static_cast<std::size_t>(fatherSize()) - boundary_.size());
    auto next = boundary_.begin();
    for (index row = 0; row < fatherSize(); ++row) {
        if (next != boundary_.end() && *next == row)
            ++next;
        else
            inner_.push_back(row);
    }
    classified_ = true;
}

std::span<const index> ExchangePattern::boundaryRows() const {
    classifyRows();
    return boundary_;
}

std::span<const index> ExchangePattern::innerRows() const {
    classifyRows();
    return inner_;
}

} // namespace DNDS
