/// @file Attempt.hpp
/// @brief Exceptions as values until ranks agree on them, and clean-up where one passes.
#pragma once

#include "DNDS/Base/Error.hpp"

#include <exception>
#include <string>
#include <utility>

namespace DNDS {

/// Runs `body`; returns what it throws, null where that is nothing. For set-up calls, in which a rank that has failed
/// still comes to the next agreement, for destructors and for what C functions call. Local.
template <class Body>
[[nodiscard]] std::exception_ptr attempt(Body &&body) noexcept {
    try {
        std::forward<Body>(body)();
        return nullptr;
    } catch (...) {
        return std::current_exception();
    }
}

/// The same; keeps the exception in `failure` unless something is kept there. Local.
template <class Body>
void attempt(std::exception_ptr &failure, Body &&body) noexcept {
    std::exception_ptr thrown = attempt(std::forward<Body>(body));
    if (!failure)
        failure = std::move(thrown);
}

/// Whether `failure` is an exception of this type. Local.
template <class Kind>
bool holds(const std::exception_ptr &failure) noexcept {
    try {
        if (failure)
            std::rethrow_exception(failure);
        return false;
    } catch (const Kind &) {
        return true;
    } catch (...) {
        return false;
    }
}

/// The text of an exception.
struct Failure {
    ErrorKind kind = ErrorKind::State; ///< for exceptions of other libraries: Memory for std::bad_alloc, else State
    std::string message;               ///< the text alone
    std::string function;              ///< the place of the throw; empty for exceptions of other libraries
};

/// Describes an exception; an empty text for null. Local.
Failure describeFailure(const std::exception_ptr &failure);

/// Calls `undo`, which does not throw, where its scope is left by an exception. Local.
template <class Undo>
class OnFailure {
  public:
    explicit OnFailure(Undo undo) : undo_(std::move(undo)) {} ///< Its scope begins.
    OnFailure(const OnFailure &) = delete;
    OnFailure &operator=(const OnFailure &) = delete;
    ~OnFailure() {
        // Counted, not asked with std::uncaught_exception: the scope may lie in a destructor that itself runs while
        // another exception unwinds the stack, and only an exception of this scope concerns it.
        if (std::uncaught_exceptions() > before_)
            undo_();
    }

  private:
    Undo undo_;
    /// Exceptions in flight in this thread when the scope began.
    int before_ = std::uncaught_exceptions();
};

} // namespace DNDS
