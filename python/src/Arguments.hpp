/// @file Arguments.hpp
/// @brief Paths, words and lists of integers as arguments of Python functions.
#pragma once

#include "DNDS/Base/Error.hpp"

#include <nanobind/nanobind.h>

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

namespace DNDS::Python {

/// A str or os.PathLike. Local. Throws ArgumentError for anything else.
std::string pathOf(nanobind::handle path);

/// Whether a value has elements. Local.
bool isList(nanobind::handle value);

/// Whether all elements of a list are integers, Python's or NumPy's. Numbers of floating point, which conversions to
/// integers would cut off, are none. Local.
bool isIntegers(nanobind::handle list);

/// Words and their values.
template <class Value, std::size_t count>
using Words = std::array<std::pair<std::string_view, Value>, count>;

/// The value of a word; `what` names its kind in messages. Local. Throws ArgumentError that lists the words.
template <class Value, std::size_t count>
Value chosen(std::string_view word, std::string_view what, const Words<Value, count> &words) {
    std::string list;
    for (std::size_t k = 0; k < count; ++k) {
        if (words[k].first == word)
            return words[k].second;
        list += std::string(k == 0 ? "" : k + 1 == count ? " or " : ", ") + std::string(words[k].first);
    }
    throw ArgumentError(fmt::format("there is no {} '{}': it is {}", what, word, list));
}

} // namespace DNDS::Python
