/// @file ThreadUse.hpp
/// @brief Detects concurrent use, by two threads, of a resource for one thread at a time.
#pragma once

#include "DNDS/Base/Error.hpp"

#include <atomic>
#include <string>
#include <thread>

namespace DNDS {

/// The thread that uses a resource. Not a lock: of two threads that enter in the same nanoseconds none may notice, so
/// that entering costs two stores; a thread that waits inside is noticed by all others that enter.
///
///     const ThreadUse::Scope use(use_, [&] { return fmt::format("the pull of '{}'", name); });
class ThreadUse {
  public:
    /// As long as it lives, this thread is the user. Scopes of one thread nest.
    class [[nodiscard]] Scope {
      public:
        /// `what()` is the resource's name in the message or, for the whole process, the next action. Throws
        /// StateError while another thread is the user. Local.
        template <class What>
        Scope(ThreadUse &use, What &&what, SourceLocation where = SourceLocation::current())
            : use_(use), before_(use.user_.load(std::memory_order_relaxed)) {
            const std::thread::id self = std::this_thread::get_id();
            if (before_ != std::thread::id() && before_ != self) [[unlikely]]
                throwUsed(&use == &ofProcess(), what(), where);
            use.user_.store(self, std::memory_order_relaxed);
        }
        Scope(const Scope &) = delete;
        Scope &operator=(const Scope &) = delete;
        ~Scope() { use_.user_.store(before_, std::memory_order_relaxed); }

      private:
        /// The resource, and its user when this scope began, who is restored at its end: the same thread or no
        /// thread.
        ThreadUse &use_;
        std::thread::id before_;
    };

    /// The use of MPI if it does not serve several threads at a time.
    static ThreadUse &ofProcess() noexcept {
        static ThreadUse process;
        return process;
    }

  private:
    [[noreturn]] static void throwUsed(bool process, const std::string &what, SourceLocation where);

    /// The thread inside, or none. Relaxed: a hint, not a lock.
    std::atomic<std::thread::id> user_{};
};

} // namespace DNDS
