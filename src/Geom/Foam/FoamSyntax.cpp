#include "DNDS/Geom/Foam/FoamSyntax.hpp"

#include <bit>

namespace DNDS::Geom::Foam {

namespace {

// Limits for damaged files, far above what real ones have.
constexpr std::size_t longestWord = 4096;
constexpr std::size_t longestValue = 1 << 20;
constexpr int deepest = 100; ///< dictionaries in each other

// Independent of the locale.
bool isBlank(int c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

// Whether a word ends before this byte, or at the end of the file.
bool endsWord(int c) {
    return c < 0 || isBlank(c) || std::string_view("(){};\"").find(static_cast<char>(c)) != std::string_view::npos;
}

/// Skips the rest of a comment, after its first slash.
void skipComment(FileCursor &cursor) {
    // To the end of the line, or to the closing mark; comments do not nest.
    const int kind = cursor.peek();
    if (kind == '/') {
        for (int c = kind; c >= 0 && c != '\n'; c = cursor.peek())
            cursor.advance();
        return;
    }
    if (kind != '*')
        cursor.fail("unexpected '/'");
    cursor.advance();
    for (int before = 0;;) {
        const int c = cursor.peek();
        if (c < 0)
            cursor.fail("the file ends inside a comment");
        cursor.advance();
        if (before == '*' && c == '/')
            return;
        before = c;
    }
}

[[noreturn]] void failAt(const FileCursor &cursor, std::string_view expected, int found) {
    if (found < 0)
        cursor.fail(fmt::format("the file ends where {} should be", expected));
    const char c = static_cast<char>(found);
    cursor.fail(fmt::format("expected {} before '{}'", expected, shown({&c, 1})));
}

/// Takes a string without its quotes, after the first of them.
void takeQuoted(FileCursor &cursor, std::string &text) {
    for (;;) {
        const int c = cursor.peek();
        if (c < 0 || text.size() > longestValue)
            cursor.fail("a string has no end");
        cursor.advance();
        if (c == '"')
            return;
        text += static_cast<char>(c);
    }
}

/// The text up to the ';' that ends an entry, with one blank for many.
/// Brackets nest, and a ';' inside them does not end the entry.
/// O(bytes of the value), at most `longestValue`: an entry without ';' fails instead of filling memory.
std::string takeValue(FileCursor &cursor) {
    std::string text;
    for (int depth = 0;;) {
        // A slash begins a comment only after a blank: values may be paths.
        int c = cursor.peek();
        if (isBlank(c) || (c == '/' && (text.empty() || text.back() == ' '))) {
            c = nextByte(cursor);
            if (!text.empty() && text.back() != ' ')
                text += ' ';
        }
        if (c < 0 || text.size() > longestValue)
            cursor.fail("an entry of a dictionary does not end with ';'");
        if (depth == 0 && (c == '}' || c == ')' || c == ']'))
            cursor.fail(fmt::format("expected ';' before '{}'", static_cast<char>(c)));
        cursor.advance();
        if (depth == 0 && c == ';')
            break;
        if (c == '"') {
            takeQuoted(cursor, text);
            continue;
        }
        depth += c == '(' || c == '{' || c == '[' ? 1 : 0;
        depth -= c == ')' || c == '}' || c == ']' ? 1 : 0;
        text += static_cast<char>(c);
    }
    while (!text.empty() && text.back() == ' ')
        text.pop_back();
    return text;
}

/// Recursive; `depth` bounds the recursion.
Dictionary takeDictionaryAt(FileCursor &cursor, int depth) {
    if (depth > deepest)
        cursor.fail(fmt::format("more than {} dictionaries are in each other", deepest));
    takeByte(cursor, '{');
    Dictionary entries;
    for (;;) {
        const int c = nextByte(cursor);
        if (c == '}') {
            cursor.advance();
            return entries;
        }
        std::string keyword;
        if (c == '"') {
            cursor.advance();
            takeQuoted(cursor, keyword);
        } else {
            keyword = takeWord(cursor, "a keyword or '}'");
        }
        // Directives and variables would need all of OpenFOAM's rules.
        if (keyword.starts_with('#') || keyword.starts_with('$'))
            cursor.fail(fmt::format("'{}' is not followed: write what it stands for into the file", shown(keyword)));
        if (nextByte(cursor) == '{')
            // Nested dictionaries are checked and dropped: no mesh file needs them.
            takeDictionaryAt(cursor, depth + 1);
        else
            entries.insert_or_assign(std::move(keyword), takeValue(cursor));
    }
}

/// The bytes of "label=32" in `arch`; `otherwise` if it is not there.
int bytesIn(const FileCursor &cursor, std::string_view arch, std::string_view name, int otherwise) {
    const std::size_t at = arch.find(name);
    if (at == std::string_view::npos)
        return otherwise;
    arch.remove_prefix(at + name.size());
    const std::string_view bits = arch.substr(0, arch.find(';'));
    if (bits != "32" && bits != "64")
        cursor.fail(fmt::format("'{}{}' in the header's arch: it must be 32 or 64", name, shown(bits)));
    return bits == "32" ? 4 : 8;
}

} // namespace

// Comments may stand wherever blanks may.
int nextByte(FileCursor &cursor) {
    for (;;) {
        const int c = cursor.peek();
        if (c == '/') {
            cursor.advance();
            skipComment(cursor);
        } else if (isBlank(c)) {
            cursor.advance();
        } else {
            return c;
        }
    }
}

void takeByte(FileCursor &cursor, char expected) {
    const int c = nextByte(cursor);
    if (c != static_cast<unsigned char>(expected))
        failAt(cursor, fmt::format("'{}'", expected), c);
    cursor.advance();
}

// At most `longestWord` bytes, so that a damaged file does not fill memory with one word.
std::string takeWord(FileCursor &cursor, std::string_view what) {
    int c = nextByte(cursor);
    std::string word;
    for (; !endsWord(c) && word.size() < longestWord; c = cursor.peek()) {
        word += static_cast<char>(c);
        cursor.advance();
    }
    if (word.empty())
        failAt(cursor, what, c);
    return word;
}

index takeInteger(FileCursor &cursor, std::string_view what, index lowest, index highest) {
    const std::string word = takeWord(cursor, what);
    return WordReader(cursor, word).integer(what, lowest, highest);
}

real takeNumber(FileCursor &cursor, std::string_view what) {
    const std::string word = takeWord(cursor, what);
    return WordReader(cursor, word).number(what);
}

Dictionary takeDictionary(FileCursor &cursor) { return takeDictionaryAt(cursor, 0); }

// Entries that are left out have defaults.
std::string valueOf(const Dictionary &entries, std::string_view keyword, std::string_view otherwise) {
    const auto found = entries.find(keyword);
    return found == entries.end() ? std::string(otherwise) : found->second;
}

/// The header is text in binary files, too, and says how the rest is stored.
std::string takeHeader(FileCursor &cursor, Encoding &encoding) {
    const std::string begin = takeWord(cursor, "FoamFile");
    if (begin != "FoamFile")
        cursor.fail(fmt::format("expected FoamFile, with which files of OpenFOAM begin, not '{}'", shown(begin)));
    const Dictionary entries = takeDictionary(cursor);
    const std::string format = valueOf(entries, "format", "ascii");
    if (format != "ascii" && format != "binary")
        cursor.fail(fmt::format("format '{}' in the header: it must be ascii or binary", shown(format)));
    encoding.binary = format == "binary";
    const std::string arch = valueOf(entries, "arch", "LSB");
    encoding.swapped = arch.starts_with("MSB") == (std::endian::native == std::endian::little);
    encoding.labelBytes = bytesIn(cursor, arch, "label=", encoding.labelBytes);
    encoding.scalarBytes = bytesIn(cursor, arch, "scalar=", encoding.scalarBytes);
    return valueOf(entries, "class");
}

} // namespace DNDS::Geom::Foam
