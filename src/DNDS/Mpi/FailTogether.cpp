#include "DNDS/Mpi/FailTogether.hpp"

#include <utility>

namespace DNDS::Detail {

namespace {

/// The innermost open scope of this thread. Scopes live on the stack and end in reverse order.
thread_local FailureScope *innermost = nullptr;

/// Whether ranks of `a` are those of `b`, in any order: duplicates count as the same meeting.
bool haveSameRanks(const CommunicatorView &a, const CommunicatorView &b) noexcept {
    if (a.handle() == b.handle())
        return true;
    if (a.size() != b.size())
        return false;
    int result = MPI_UNEQUAL;
    return MPI_Comm_compare(a.handle(), b.handle(), &result) == MPI_SUCCESS && result != MPI_UNEQUAL;
}

} // namespace

// A list through the scopes themselves: O(1), without allocation, and `noexcept`.
FailureScope::FailureScope(CommunicatorView comm) noexcept : comm_(comm), outer_(std::exchange(innermost, this)) {}

FailureScope::~FailureScope() { innermost = outer_; }

// Collective unless MPI itself failed. Returns only if no rank has failed.
// The agreement at the end of a scope, in which ranks that threw and ranks that did not both take part.
void FailureScope::finish(const std::exception_ptr &failure) const {
    // An agreement needs MPI, and other ranks may never return from the call that failed here.
    if (holds<MpiError>(failure))
        std::rethrow_exception(failure);
    comm_.agree(failure);
}

// O(open scopes) comparisons. Equal handles and unequal sizes decide in O(1); MPI_Comm_compare may take O(ranks). The
// outermost match wins, so all nested scopes of the same ranks meet on one communicator.
FailureScope *FailureScope::of(const CommunicatorView &comm) noexcept {
    FailureScope *found = nullptr;
    for (FailureScope *scope = innermost; scope != nullptr; scope = scope->outer_)
        if (haveSameRanks(scope->comm_, comm))
            found = scope;
    return found;
}

} // namespace DNDS::Detail
