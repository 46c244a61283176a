/// @file XmlTags.hpp
/// @brief Finds the tags of XML text. Part of VtuFile.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>

namespace DNDS::Geom {

constexpr std::string_view xmlBlanks = " \t\r\n";

/// A tag with its attributes, and the text before it.
struct XmlTag {
    std::string_view name; ///< "DataArray"
    bool opens = false;    ///< a begin, or both in one
    bool closes = false;   ///< an end, or both in one
    std::map<std::string, std::string, std::less<>> attributes;
    std::string_view before;        ///< text between the last tag and this one, of several the last that is not blank
    std::size_t begin = 0, end = 0; ///< bytes [begin, end) of the text

    /// An attribute; "" without it. Local.
    std::string operator[](std::string_view attribute) const {
        const auto found = attributes.find(attribute);
        return found == attributes.end() ? "" : found->second;
    }
};

/// Replaces a tag by the next one, from `tag.end` on; false at the end of the text. Comments and processing
/// instructions are passed over, and the predefined entities of attributes are replaced. Local. Throws DataError, with
/// the path and the byte, where the text is not well-formed, or has CDATA or other entities.
bool nextTag(const std::string &path, std::string_view xml, XmlTag &tag);

/// Whether text has nothing but blanks. Local.
inline bool isBlankText(std::string_view text) { return text.find_first_not_of(xmlBlanks) == std::string_view::npos; }

/// Throws DataError: path, byte, message.
[[noreturn]] void failAtByte(const std::string &path, std::size_t byte, const std::string &message);

} // namespace DNDS::Geom
