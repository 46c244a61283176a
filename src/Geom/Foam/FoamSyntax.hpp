/// @file FoamSyntax.hpp
/// @brief The syntax of OpenFOAM's files: words, numbers, comments, dictionaries and the header.
#pragma once

#include "DNDS/Geom/File/MeshFile.hpp"

#include <functional>
#include <map>
#include <string>
#include <string_view>

namespace DNDS::Geom::Foam {

/// Skips blanks and comments. The byte after them, not taken; -1 at the end of the file. All functions are Local and
/// throw DataError with file and line (in binary files, the byte).
int nextByte(FileCursor &cursor);

/// Takes this byte, after blanks and comments.
void takeByte(FileCursor &cursor, char expected);

/// Takes a word: all bytes up to a blank or one of (){};".
std::string takeWord(FileCursor &cursor, std::string_view what);

/// Takes a word that is an integer in [lowest, highest], or a finite number.
index takeInteger(FileCursor &cursor, std::string_view what, index lowest, index highest);
real takeNumber(FileCursor &cursor, std::string_view what);

/// The values of keywords as text; dictionaries inside are left out.
using Dictionary = std::map<std::string, std::string, std::less<>>;

/// Takes a dictionary, the braces included. Throws for directives and macros, which begin with # and $.
Dictionary takeDictionary(FileCursor &cursor);

/// The value of a keyword; `otherwise` if it has none.
std::string valueOf(const Dictionary &entries, std::string_view keyword, std::string_view otherwise = {});

/// The form of a file's values.
struct Encoding {
    bool binary = false;
    bool swapped = false; ///< binary values are in the other byte order
    int labelBytes = 4;   ///< size of an integer: 4 or 8
    int scalarBytes = 8;  ///< size of a real number: 4 or 8
};

/// Takes the header, the dictionary FoamFile: its "class", and the encoding.
std::string takeHeader(FileCursor &cursor, Encoding &encoding);

} // namespace DNDS::Geom::Foam
