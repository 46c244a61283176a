/// @file Settings.hpp
/// @brief Reads objects of a JSON file strictly: unknown keys and wrong types are errors that list what exists.
#pragma once

#include "DNDS/Base/Error.hpp"
#include "DNDS/Base/Types.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace Euler {

/// One object. Get all known keys, then call `finish`. Local; all functions throw ArgumentError with the path of the
/// key.
class Settings {
  public:
    /// The values of keys, by path and as JSON; defaults included.
    using Choices = std::map<std::string, std::string>;

    /// Records all values read in `choices`, if given.
    Settings(const nlohmann::json &object, std::string path, Choices *choices = nullptr)
        : object_(object), path_(std::move(path)), choices_(choices) {
        DNDS_CHECK(object.is_object(), DNDS::ArgumentError, "{} must be an object", name());
    }

    bool has(const std::string &key) {
        if (std::find(known_.begin(), known_.end(), key) == known_.end())
            known_.push_back(key);
        return object_.contains(key);
    }
    template <class T>
    T need(const std::string &key) {
        DNDS_CHECK(has(key), DNDS::ArgumentError, "{} is missing", pathOf(key));
        return noted(key, convert<T>(object_.at(key), pathOf(key)));
    }
    template <class T>
    T get(const std::string &key, T otherwise) {
        return noted(key, has(key) ? convert<T>(object_.at(key), pathOf(key)) : otherwise);
    }
    DNDS::real positive(const std::string &key) {
        const auto value = need<DNDS::real>(key);
        DNDS_CHECK(value > 0, DNDS::ArgumentError, "{} is {}: it must be positive", pathOf(key), value);
        return value;
    }
    DNDS::real positive(const std::string &key, DNDS::real otherwise) {
        return has(key) ? positive(key) : noted(key, otherwise);
    }
    DNDS::Index count(const std::string &key, DNDS::Index otherwise) {
        const auto value = get<DNDS::Index>(key, otherwise);
        DNDS_CHECK(value >= 0, DNDS::ArgumentError, "{} is {}: it must not be negative", pathOf(key), value);
        return value;
    }
    /// The value that the word at `key` stands for.
    template <class T>
    T choice(const std::string &key, const std::vector<std::pair<std::string, T>> &words) {
        const auto word = need<std::string>(key);
        std::string all;
        for (const auto &[name, value] : words) {
            if (name == word)
                return value;
            all += (all.empty() ? "" : ", ") + name;
        }
        throw DNDS::ArgumentError(fmt::format("{} is '{}'; there are: {}", pathOf(key), word, all));
    }
    template <class T>
    T choice(const std::string &key, const std::vector<std::pair<std::string, T>> &words, T otherwise) {
        if (has(key))
            return choice(key, words);
        for (const auto &[name, value] : words)
            if (value == otherwise)
                (void)noted(key, name);
        return otherwise;
    }
    /// An object in this one; empty if missing.
    Settings object(const std::string &key) {
        static const nlohmann::json empty = nlohmann::json::object();
        return {has(key) ? object_.at(key) : empty, pathOf(key), choices_};
    }
    const nlohmann::json &value(const std::string &key) {
        DNDS_CHECK(has(key), DNDS::ArgumentError, "{} is missing", pathOf(key));
        return object_.at(key);
    }
    std::string pathOf(const std::string &key) const { return path_.empty() ? key : path_ + "." + key; }

    /// Throws for the first key that was not read.
    void finish() const {
        for (const auto &item : object_.items())
            DNDS_CHECK(std::find(known_.begin(), known_.end(), item.key()) != known_.end(), DNDS::ArgumentError,
                       "{} is unknown; {} has: {}", pathOf(item.key()), name(), joined());
    }

  private:
    std::string name() const { return path_.empty() ? "the file" : path_; }
    std::string joined() const {
        std::string all;
        for (const std::string &key : known_)
            all += (all.empty() ? "" : ", ") + key;
        return all;
    }

    template <class T>
    static T convert(const nlohmann::json &value, const std::string &path) {
        if constexpr (std::is_same_v<T, bool>) {
            DNDS_CHECK(value.is_boolean(), DNDS::ArgumentError, "{} must be true or false", path);
            return value.get<bool>();
        } else if constexpr (std::is_same_v<T, DNDS::real>) {
            DNDS_CHECK(value.is_number() && std::isfinite(value.get<DNDS::real>()), DNDS::ArgumentError,
                       "{} must be a number", path);
            return value.get<DNDS::real>();
        } else if constexpr (std::is_integral_v<T>) {
            DNDS_CHECK(value.is_number_integer(), DNDS::ArgumentError, "{} must be an integer", path);
            return value.get<T>();
        } else if constexpr (std::is_same_v<T, std::string>) {
            DNDS_CHECK(value.is_string(), DNDS::ArgumentError, "{} must be a text", path);
            return value.get<std::string>();
        } else {
            DNDS_CHECK(value.is_array(), DNDS::ArgumentError, "{} must be a list", path);
            T list;
            for (std::size_t i = 0; i < value.size(); i++)
                list.push_back(convert<typename T::value_type>(value[i], fmt::format("{}[{}]", path, i)));
            return list;
        }
    }

    template <class T>
    T noted(const std::string &key, T value) {
        if (choices_ != nullptr)
            (*choices_)[pathOf(key)] = nlohmann::json(value).dump();
        return value;
    }

    const nlohmann::json &object_;
    std::string path_;
    Choices *choices_;
    std::vector<std::string> known_;
};

} // namespace Euler
