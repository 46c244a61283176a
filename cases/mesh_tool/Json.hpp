/// @file Json.hpp
/// @brief For tests only: JSON with its keys in the order of the text.
#pragma once

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace DNDS::Geom::test {

using Json = nlohmann::ordered_json;

/// The keys of an object, in their order.
inline std::vector<std::string> keysOf(const Json &object) {
    std::vector<std::string> keys;
    for (const auto &member : object.items())
        keys.push_back(member.key());
    return keys;
}

} // namespace DNDS::Geom::test
