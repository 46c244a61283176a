/// @file Parked.hpp
/// @brief What destructors do with memory that MPI or other ranks still use.
#pragma once

#include "DNDS/Mpi/Check.hpp"
#include "DNDS/Mpi/CommunicatorContext.hpp"

#include <memory>
#include <thread>

namespace DNDS {

/// State that outlives its owner until `finished`.
class Parkable {
  public:
    Parkable() = default;
    Parkable(const Parkable &) = delete;
    Parkable &operator=(const Parkable &) = delete;
    virtual ~Parkable() = default;

    /// Whether neither MPI nor another rank uses this memory any more. Local, does not wait.
    virtual bool finished() noexcept = 0;

  private:
    friend void park(CommunicatorContext &context, const std::shared_ptr<Parkable> &state) noexcept;

    std::thread::id maker_ = std::this_thread::get_id();
    std::shared_ptr<Parkable> self_; ///< where there was no memory to park it: it stays for ever
};

/// For destructors: `context` keeps `state` until it is finished. Local, does not wait, on any thread.
inline void park(CommunicatorContext &context, const std::shared_ptr<Parkable> &state) noexcept {
    if (!mpiActive() || inForkedChild())
        return;
    const bool mayAsk = mayCallMpi(state->maker_);
    if (mayAsk && state->finished())
        return;
    try {
        const auto finished = [raw = state.get()] { return raw->finished(); };
        mayAsk &&context.alive() ? context.park(state, finished) : context.leave(state, finished);
    } catch (...) { // of a destructor
        state->self_ = state;
    }
}

} // namespace DNDS
