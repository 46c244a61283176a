/// @file Json.hpp
/// @brief For tests only: reads JSON strictly, so that what is no JSON fails.
#pragma once

#include <cctype>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace DNDS::Geom::test {

/// A value of a JSON text; objects keep the order of their keys.
struct Json {
    enum class Kind { Null, Number, Text, List, Object };
    Kind kind = Kind::Null;
    double number = 0;
    std::string text;
    std::vector<Json> list;
    std::vector<std::pair<std::string, Json>> members;

    const Json &operator[](std::string_view key) const {
        for (const auto &[name, value] : members)
            if (name == key)
                return value;
        throw std::runtime_error("no key " + std::string(key));
    }
    const Json &operator[](std::size_t i) const { return list.at(i); }
    std::vector<std::string> keys() const {
        std::vector<std::string> names;
        for (const auto &member : members)
            names.push_back(member.first);
        return names;
    }

    /// Throws std::runtime_error unless the whole text is one value.
    static Json parse(std::string_view text) {
        Parser parser{text};
        Json value = parser.value();
        parser.skipSpace();
        if (!parser.rest.empty())
            parser.fail("something follows the value");
        return value;
    }

  private:
    struct Parser {
        std::string_view rest;

        [[noreturn]] void fail(const std::string &what) const {
            throw std::runtime_error("JSON: " + what + " at '" + std::string(rest.substr(0, 20)) + "'");
        }
        void skipSpace() {
            while (!rest.empty() && std::isspace(static_cast<unsigned char>(rest.front())) != 0)
                rest.remove_prefix(1);
        }
        bool take(char c) {
            skipSpace();
            if (rest.empty() || rest.front() != c)
                return false;
            rest.remove_prefix(1);
            return true;
        }
        void need(char c) {
            if (!take(c))
                fail(std::string("no ") + c);
        }
        std::string string() {
            need('"');
            std::string result;
            while (!rest.empty() && rest.front() != '"') {
                if (static_cast<unsigned char>(rest.front()) < 0x20)
                    fail("a control character in a string");
                if (rest.front() == '\\') {
                    rest.remove_prefix(1);
                    if (rest.empty() || (rest.front() != '"' && rest.front() != '\\'))
                        fail("an escape that is not expected");
                }
                result += rest.front();
                rest.remove_prefix(1);
            }
            need('"');
            return result;
        }
        template <class Item>
        void items(char end, Item &&item) {
            if (take(end))
                return;
            do
                item();
            while (take(','));
            need(end);
        }
        Json value() {
            Json json;
            skipSpace();
            if (take('{')) {
                json.kind = Kind::Object;
                items('}', [&] {
                    skipSpace();
                    std::string name = string();
                    need(':');
                    json.members.emplace_back(std::move(name), value());
                });
            } else if (take('[')) {
                json.kind = Kind::List;
                items(']', [&] { json.list.push_back(value()); });
            } else if (!rest.empty() && rest.front() == '"') {
                json.kind = Kind::Text;
                json.text = string();
            } else if (rest.substr(0, 4) == "null") {
                rest.remove_prefix(4);
            } else {
                json.kind = Kind::Number;
                const std::string digits(rest.substr(0, rest.find_first_not_of("+-.0123456789eE")));
                char *end = nullptr;
                json.number = std::strtod(digits.c_str(), &end);
                if (digits.empty() || *end != '\0')
                    fail("no value");
                rest.remove_prefix(digits.size());
            }
            return json;
        }
    };
};

} // namespace DNDS::Geom::test
