/// @file Warning.hpp
/// @brief Messages of the library where it cannot throw.
#pragma once

#include "DNDS/Base/Error.hpp"

#include <array>
#include <cstddef>
#include <functional>
#include <string_view>
#include <utility>

namespace DNDS {

/// Takes the text of a warning, one or more lines without the last line's end; it says which rank where that matters.
/// It may be called on any thread, also on several at a time and on threads of DNDS itself, which it must not
/// end. What it throws is dropped.
using WarningSink = std::function<void(std::string_view text)>;

/// Gives this rank's warnings to `sink` from now on, say to a logger; with an empty one they go again where they go at
/// the start: to stderr, or where the user says by DNDS_WARNINGS (docs/reference/settings.md). Failures that end the
/// job go to stderr always. Local, thread-safe.
///
///     DNDS::setWarningSink([](std::string_view text) { spdlog::warn(text); });
///     DNDS::setWarningSink([](std::string_view) {}); // silence
void setWarningSink(WarningSink sink);

/// Says `text`. Local, thread-safe.
void warn(std::string_view text) noexcept;

/// Says a formatted text of up to 2,000 characters, of which no memory is allocated. Local, thread-safe.
template <class... Args>
void warn(fmt::format_string<Args...> format, Args &&...args) noexcept {
    try {
        std::array<char, 2000> text;
        const auto end = fmt::format_to_n(text.data(), text.size(), format, std::forward<Args>(args)...).out;
        warn(std::string_view(text.data(), static_cast<std::size_t>(end - text.data())));
    } catch (...) { // an argument that cannot be formatted
        const fmt::string_view plain = format;
        warn(std::string_view(plain.data(), plain.size()));
    }
}

} // namespace DNDS
