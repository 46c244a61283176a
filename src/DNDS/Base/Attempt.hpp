/// @file Attempt.hpp
/// @brief Work whose failure is kept as a value until ranks agree on it.
#pragma once

#include <exception>
#include <utility>

namespace DNDS {

/// Runs `body`, and keeps what it throws in `failure` unless something is kept there. For set-up calls, in which a rank
/// that has failed goes on as far as the next agreement. Local.
template <class Body>
void attempt(std::exception_ptr &failure, Body &&body) noexcept {
    try {
        std::forward<Body>(body)();
    } catch (...) {
        if (!failure)
            failure = std::current_exception();
    }
}

} // namespace DNDS
