#include "DNDS/Exchange/ExchangeGroup.hpp"

#include <utility>

namespace DNDS {

// O(1). Parts of all members are numbered through, so one message a peer carries the rows of all of them: the latency
// of one array for the whole group.
void ExchangeGroup::addMember(ExchangeMember member, std::shared_ptr<const ExchangePattern> pattern) {
    // One pattern object, not an equal one: a message has the rows of all arrays in the same order.
    DNDS_CHECK(pattern != nullptr, StateError, "'{}' has no ghost mapping yet", member.name);
    DNDS_CHECK(
        pattern_ == nullptr || pattern_ == pattern, ArgumentError,
        "'{}' has other ghosts than '{}': arrays of a group share one mapping (borrowGGIndexing), fields on blocks "
        "one grid, ghosts (in a star or not), centring and order of components",
        member.name, members_.empty() ? std::string() : members_.front().name);
    pattern_ = std::move(pattern);
    names_ += (names_.empty() ? "" : ", ") + member.name;
    members_.push_back(std::move(member));
}

std::shared_ptr<CommunicatorContext> ExchangeGroup::context() const {
    DNDS_CHECK(!members_.empty(), StateError, "this group has no arrays: add some first");
    return pattern_->sharedContext();
}

} // namespace DNDS
