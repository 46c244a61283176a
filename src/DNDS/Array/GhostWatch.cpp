#include "DNDS/Array/ArrayTransformer.hpp"

#include <utility>

namespace DNDS {

// The father's version is unknown until the first pull.
void GhostWatch::created() {
    sonVersion_ = son_->version();
    state_.store(State::NeverPulled, std::memory_order_relaxed);
}

// The hash lets later checks tell a write that changed nothing. Without the values on the host it is left out.
void GhostWatch::arrived() {
    fatherVersion_.store(father_->version(), std::memory_order_relaxed);
    hashed_ = father_->valid(MemorySpace::Host);
    fatherHash_ = hashed_ ? father_->hash() : 0;
    sonVersion_ = son_->version();
    state_.store(State::Pulled, std::memory_order_relaxed);
}

bool GhostWatch::unwritten() const noexcept { return son_->version() == sonVersion_; }

void GhostWatch::keep() noexcept { sonVersion_ = son_->version(); }

// Follows arrays that swap their contents.
void GhostWatch::swap(GhostWatch &other) noexcept {
    if (state_ == State::InFlight || other.state_ == State::InFlight) { // the pull belongs to its pair, not to contents
        forget();
        other.forget();
        return;
    }
    state_.store(other.state_.exchange(state_.load()));
    std::swap(sonVersion_, other.sonVersion_);
    fatherVersion_.store(other.fatherVersion_.exchange(fatherVersion_.load()));
    std::swap(fatherHash_, other.fatherHash_);
    std::swap(hashed_, other.hashed_);
}

// Remembers the version of equal contents: the hash is computed once for each version.
// O(1) while versions are equal; O(bytes of the father) for the first check after a write.
bool GhostWatch::sameContents() {
    const std::uint64_t now = father_->version();
    if (now == fatherVersion_.load(std::memory_order_relaxed))
        return true;
    if (!hashed_ || !father_->valid(MemorySpace::Host)) // the device has written: versions alone cannot tell
        return true;
    if (father_->hash() != fatherHash_)
        return false;
    fatherVersion_.store(now, std::memory_order_relaxed);
    return true;
}

// A view for writing escapes the checks from here on, except during a pull.
void GhostWatch::handOut(bool writes) noexcept {
    if (writes && state_.load(std::memory_order_relaxed) != State::InFlight)
        forget();
}

// In the order of certainty: in flight, written by the program, current, never pulled, contents.
// O(1) except for `sameContents`. Ghosts count as current only if no pull is in flight and the father has the
// version, or the contents, of the last pull.
void GhostWatch::check(bool writes) {
    const State state = state_.load(std::memory_order_relaxed);
    if (state == State::Unknown)
        return;
    DNDS_CHECK(state != State::InFlight, StateError,
               "the ghosts of '{}' are {} between start and wait of a pull: call waitPersistentPull first",
               father_->label(), writes ? "accessed" : "read");
    if (writes || !unwritten()) { // from now on the program is responsible for them
        forget();
        return;
    }
    if (ghostStateOf(*father_, *son_) == GhostState::Current) // even by unreported pulls
        return;
    DNDS_CHECK(state != State::NeverPulled, StaleError,
               "the ghosts of '{}' were never pulled: pull before reading them", father_->label());
    DNDS_CHECK(sameContents(), StaleError,
               "the ghosts of '{0}' are older than the owned rows, which were written after the last pull: pull before "
               "reading them, or take `view(GhostUse::Unchecked)` of '{0}' where old values are meant",
               father_->label());
}

} // namespace DNDS
