/// @file LastError.hpp
/// @brief The text of a thread's latest error, for messages written when the exception is out of reach.
#pragma once

#include <string_view>

namespace DNDS::Detail {

/// The texts of the Error that this thread constructed last, truncated to about 1000 characters; empty if there was
/// none. Valid until the next one. Local.
struct LastError {
    std::string_view what;    ///< the whole text
    std::string_view message; ///< without kind, rank and location
};
LastError lastError() noexcept;

} // namespace DNDS::Detail
