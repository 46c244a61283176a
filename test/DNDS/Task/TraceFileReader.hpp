/// @file TraceFileReader.hpp
/// @brief For tests only: traces as another JSON library reads them.
#pragma once

#include <nlohmann/json.hpp>

#include <fstream>
#include <string>
#include <vector>

namespace DNDS::test {

/// The events of a trace. Throws where it is not valid JSON. Local.
inline std::vector<nlohmann::json> eventsOf(const std::string &path) {
    std::ifstream file(path);
    return nlohmann::json::parse(file).get<std::vector<nlohmann::json>>();
}

/// Those of `all` for which `key` is `value`.
template <class Value>
std::vector<nlohmann::json> eventsWith(const std::vector<nlohmann::json> &all, const std::string &key, Value value) {
    std::vector<nlohmann::json> found;
    for (const nlohmann::json &event : all)
        if (event.contains(key) && event[key] == value)
            found.push_back(event);
    return found;
}

} // namespace DNDS::test
