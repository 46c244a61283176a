/// @file OnThreads.hpp
/// @brief For tests of several threads.
#pragma once

#include "RingField.hpp"

#include "DNDS/Exchange/Exchange.hpp"

#include <atomic>
#include <latch>
#include <thread>
#include <vector>

namespace DNDS::test {

/// Runs `body(k)` on threads k = 0, ..., count - 1 at the same time. What one throws fails the test.
template <class Body>
void onThreads(int count, Body &&body) {
    std::vector<std::thread> threads;
    for (int k = 0; k < count; ++k)
        threads.emplace_back([&body, k] {
            try {
                body(k);
            } catch (const std::exception &error) {
                ADD_FAILURE() << "thread " << k << " threw: " << error.what();
            }
        });
    for (std::thread &thread : threads)
        thread.join();
}

/// A pull of a field whose first start stays within until it is let go.
class BlockedStart {
  public:
    /// Collective.
    explicit BlockedStart(RealField &field) : exchange_(field.trans.pattern(), Direction::Pull, {memberOf(field)}) {
        armed_ = true;
    }

    Exchange &exchange() { return exchange_; }
    /// Until a thread is within start.
    void awaitEntry() { entered_.wait(); }
    void letGo() { go_.count_down(); }

  private:
    ExchangeMember memberOf(RealField &field) {
        ExchangeMember member = field.trans.member();
        member.father = [this, locate = member.father](MemorySpace space, Access access, RowLayout &into) {
            if (armed_.exchange(false)) {
                entered_.count_down();
                go_.wait();
            }
            locate(space, access, into);
        };
        return member;
    }

    std::latch entered_{1};
    std::latch go_{1};
    std::atomic<bool> armed_{false};
    Exchange exchange_;
};

} // namespace DNDS::test
