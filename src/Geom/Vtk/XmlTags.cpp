#include "DNDS/Geom/Vtk/XmlTags.hpp"

#include "DNDS/Base/Error.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace DNDS::Geom {

namespace {

/// Text with a position in it.
/// A scanner without a tree: tags are taken one by one, which is enough for VTK's XML.
struct XmlCursor {
    const std::string &path;
    std::string_view xml;
    std::size_t at;

    /// Moves to the end of the next `text`.
    void passNext(std::string_view text) {
        const std::size_t found = xml.find(text, at);
        if (found == std::string_view::npos)
            failAtByte(path, at, fmt::format("the file ends where '{}' should be", text));
        at = found + text.size();
    }
    /// Moves to the end of `text` if that comes next.
    bool takes(std::string_view text) {
        const bool is = xml.substr(at).starts_with(text);
        at += is ? text.size() : 0;
        return is;
    }
    void passBlanks() { at = std::min(xml.find_first_not_of(xmlBlanks, at), xml.size()); }
    /// A name of an element or attribute, of any letters that mean nothing else.
    std::string_view word() {
        const std::size_t begin = at;
        at = std::min(xml.find_first_of(" \t\r\n=/><\"'", at), xml.size());
        if (at == begin)
            failAtByte(path, at, "expected a name");
        return xml.substr(begin, at - begin);
    }
};

/// The value of an attribute whose first letter is byte `begin`.
std::string unescaped(const std::string &path, std::size_t begin, std::string_view text) {
    static constexpr std::array<std::pair<std::string_view, char>, 5> entities{
        {{"&lt;", '<'}, {"&gt;", '>'}, {"&amp;", '&'}, {"&quot;", '"'}, {"&apos;", '\''}}};
    std::string result;
    for (std::size_t k = 0; k < text.size();) {
        const auto *const entity = std::find_if(
            entities.begin(), entities.end(), [&](const auto &pair) { return text.substr(k).starts_with(pair.first); });
        if (text[k] == '&' && entity == entities.end())
            failAtByte(path, begin + k, "an entity other than &lt; &gt; &amp; &quot; &apos; is not supported");
        result += entity == entities.end() ? text[k] : entity->second;
        k += entity == entities.end() ? 1 : entity->first.size();
    }
    return result;
}

/// name="value", or name='value'.
void takeAttribute(XmlCursor &cursor, XmlTag &tag) {
    const std::string name(cursor.word());
    cursor.passBlanks();
    if (!cursor.takes("="))
        failAtByte(cursor.path, cursor.at, fmt::format("expected '=' and the value of attribute {}", name));
    cursor.passBlanks();
    const std::string_view quote = cursor.xml.substr(cursor.at, 1);
    if (!cursor.takes("\"") && !cursor.takes("'"))
        failAtByte(cursor.path, cursor.at, fmt::format("the value of attribute {} is not in quotes", name));
    const std::size_t begin = cursor.at;
    cursor.passNext(quote);
    tag.attributes[name] = unescaped(cursor.path, begin, cursor.xml.substr(begin, cursor.at - 1 - begin));
}

} // namespace

// "<a>" opens, "</a>" closes, "<a/>" does both.
// O(bytes of the tag and of the text before it); `tag` is reused, and its views point into `xml`.
bool nextTag(const std::string &path, std::string_view xml, XmlTag &tag) {
    XmlCursor cursor{path, xml, tag.end};
    tag = {};
    while (true) {
        const std::size_t open = std::min(xml.find('<', cursor.at), xml.size());
        // `before` keeps the last text that is not blank, across comments.
        if (const std::string_view text = xml.substr(cursor.at, open - cursor.at); !isBlankText(text))
            tag.before = text;
        tag.begin = cursor.at = open;
        if (open == xml.size())
            return false;
        if (cursor.takes("<!--"))
            cursor.passNext("-->");
        else if (cursor.takes("<?"))
            cursor.passNext("?>");
        else if (cursor.takes("<![CDATA["))
            failAtByte(path, open, "CDATA is not supported");
        else if (cursor.takes("<!"))
            cursor.passNext(">");
        else
            break;
    }
    tag.closes = cursor.takes("</");
    tag.opens = !tag.closes && cursor.takes("<");
    tag.name = cursor.word();
    for (cursor.passBlanks(); !cursor.takes(">"); cursor.passBlanks()) {
        if (tag.opens && cursor.takes("/>")) {
            tag.closes = true;
            break;
        }
        if (cursor.at == xml.size())
            failAtByte(path, tag.begin, fmt::format("the file ends inside the tag {}", tag.name));
        takeAttribute(cursor, tag);
    }
    tag.end = cursor.at;
    return true;
}

void failAtByte(const std::string &path, std::size_t byte, const std::string &message) {
    throw DataError(fmt::format("{}: byte {}: {}", path, byte, message));
}

} // namespace DNDS::Geom
