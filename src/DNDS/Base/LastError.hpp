/// @file LastError.hpp
/// @brief What the latest error of a thread said, for messages that are written when the exception is out of reach.
#pragma once

#include <string_view>

namespace DNDS::Detail {

/// The texts of the Error that this thread constructed last, cut off after some 1000 characters; empty before the
/// first. Valid until the next one. Local.
struct LastError {
    std::string_view what;    ///< the whole text
    std::string_view message; ///< without kind, rank and location
};
LastError lastError() noexcept;

} // namespace DNDS::Detail
