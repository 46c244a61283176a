#include "DNDS/Base/Environment.hpp"

#include "DNDS/Base/Error.hpp"

#include <charconv>
#include <cstdlib>
#include <string_view>

namespace DNDS {

namespace {

std::string textOf(const char *name) {
    const char *value = std::getenv(name);
    return value != nullptr ? value : "";
}

template <class Number>
Number numberOf(const char *name, Number otherwise) {
    const std::string text = textOf(name);
    if (text.empty())
        return otherwise;
    Number number{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    DNDS_CHECK(error == std::errc() && end == text.data() + text.size() && number >= Number{0}, ArgumentError,
               "the environment variable {} is '{}': give a number that is not negative", name, text);
    return number;
}

} // namespace

Environment readEnvironment() {
    return {.transport = textOf("DNDS_TRANSPORT"),
            .ranksPerNode = numberOf("DNDS_RANKS_PER_NODE", 0),
            .waitTimeout = numberOf("DNDS_WAIT_TIMEOUT", 0.0)};
}

} // namespace DNDS
