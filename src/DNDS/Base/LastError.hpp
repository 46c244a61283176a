/// @file LastError.hpp
/// @brief The text of a thread's latest error, for messages written when the exception is out of reach.
#pragma once

#include <string_view>
#include <utility>

namespace DNDS::Detail {

/// The whole text of the Error that this thread constructed last, and that without kind, rank and location; truncated
/// to about 1000 characters, empty if there was none. Valid until the next one. Local.
std::pair<std::string_view, std::string_view> lastError() noexcept;

} // namespace DNDS::Detail
