#include "DNDS/Geom/Read/OtherFiles.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <optional>
#include <vector>

namespace DNDS::Geom {

namespace {

/// Arguments of `describeOtherFile`.
struct FileStart {
    std::string_view bytes;
    index size;
    std::span<const std::string> hdfNames;
};

using namespace std::string_view_literals;

constexpr std::string_view blanks = " \t\r\n";

/// The numbers of a line; nothing if it holds anything else.
std::optional<std::vector<double>> numbersOf(std::string_view line) {
    std::vector<double> numbers;
    while (!line.empty()) {
        double number = 0;
        const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), number);
        if (error != std::errc() || numbers.size() > 7)
            return std::nullopt;
        numbers.push_back(number);
        line.remove_prefix(static_cast<std::size_t>(end - line.data()));
        const std::size_t blank = line.find_first_not_of(blanks);
        if (blank == 0)
            return std::nullopt;
        line.remove_prefix(std::min(blank, line.size()));
    }
    return numbers;
}

/// Whether the file begins with a line of `counts` whole numbers and a line of `least` to `most` numbers.
bool beginsWithCounts(const FileStart &file, std::size_t counts, std::size_t least, std::size_t most) {
    std::string_view text = file.bytes;
    const auto first = numbersOf(nextLine(text));
    const auto second = numbersOf(nextLine(text));
    const auto isCount = [](double n) { return n >= 0 && n < 1e15 && n == static_cast<double>(static_cast<index>(n)); };
    return first && first->size() == counts && std::ranges::all_of(*first, isCount) && (*first)[0] > 0 && second &&
           second->size() >= least && second->size() <= most;
}

// An integer of 32 bits in either byte order.
std::uint32_t wordAt(std::string_view bytes, std::size_t word, bool swapped) {
    std::array<unsigned char, 4> b{};
    std::memcpy(b.data(), bytes.data() + 4 * word, 4);
    if (swapped)
        std::reverse(b.begin(), b.end());
    std::uint32_t value = 0;
    std::memcpy(&value, b.data(), 4);
    return value;
}

// Numbers of vertices, triangles and edges, then a vertex with its label; without any keyword.
bool isFreeFem(const FileStart &file) { return beginsWithCounts(file, 3, 3, 4); }

// Text begins with a keyword, binary files with the number 1 and the version.
bool isMedit(const FileStart &file) {
    std::string_view text = file.bytes;
    if (nextLine(text, '#').starts_with("MeshVersionFormatted"))
        return true;
    for (const bool swapped : {false, true}) // the number 1, then the version
        if (file.bytes.size() >= 8 && wordAt(file.bytes, 0, swapped) == 1 && wordAt(file.bytes, 1, swapped) >= 1 &&
            wordAt(file.bytes, 1, swapped) <= 4)
            return true;
    return false;
}

/// Comments begin with $, as sections of Gmsh do.
bool isNastran(const FileStart &file) {
    if (file.bytes.find("$MeshFormat") != std::string_view::npos)
        return false;
    for (std::string_view text = file.bytes, line = nextLine(text, '$'); !line.empty(); line = nextLine(text, '$'))
        for (const std::string_view card : {"GRID "sv, "GRID,"sv, "GRID*"sv, "BEGIN BULK"sv, "CEND"sv, "CQUAD4 "sv})
            if (line.starts_with(card))
                return true;
    return false;
}

// A keyword after one star, or a comment after two.
bool isAbaqus(const FileStart &file) {
    std::string_view text = file.bytes;
    const std::string_view line = nextLine(text);
    return line.size() > 2 && line[0] == '*' && (line[1] == '*' || std::isalpha(static_cast<unsigned char>(line[1])));
}

// A section begins with a parenthesis and its number.
bool isFluent(const FileStart &file) {
    std::string_view text = file.bytes;
    const std::string_view line = nextLine(text);
    return line.size() > 1 && line[0] == '(' && std::isdigit(static_cast<unsigned char>(line[1])) != 0;
}

// Data sets begin with -1 and their number on lines of their own.
bool isUniversal(const FileStart &file) {
    std::string_view text = file.bytes;
    const std::string_view first = nextLine(text);
    const auto dataset = numbersOf(nextLine(text));
    return first == "-1" && dataset && dataset->size() == 1 && (*dataset)[0] > 0;
}

// One of three keywords, in upper or lower case.
bool isTecplot(const FileStart &file) {
    std::string_view text = file.bytes;
    std::string word(nextLine(text, '#'));
    word.resize(std::min(word.find_first_of(" \t="), word.size()));
    std::ranges::transform(word, word.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    return word == "TITLE" || word == "VARIABLES" || word == "ZONE";
}

// Volume meshes only.
bool isNetgen(const FileStart &file) {
    std::string_view text = file.bytes;
    return nextLine(text, '#').starts_with("mesh3d");
}

// NetCDF 3 has the names of dimensions near its begin.
bool isExodus(const FileStart &file) {
    return file.bytes.starts_with("CDF") && file.bytes.find("num_nodes") != std::string_view::npos &&
           file.bytes.find("num_elem") != std::string_view::npos;
}

/// XML whose begin has `element`.
bool isXmlOf(const FileStart &file, std::string_view element) {
    return file.bytes.starts_with('<') && file.bytes.substr(0, 4096).find(element) != std::string_view::npos;
}

constexpr auto byGmsh = "Gmsh converts it: gmsh FILE -save -format msh41 -o NEW.msh"sv;
constexpr auto byMeshio = "meshio converts it: meshio convert FILE NEW.msh"sv;
constexpr auto piecewise = "read its pieces (.vtu) one at a time; or merge them and save one .vtu (in ParaView: the "
                           "filter Clean to Grid)"sv;
constexpr auto unpack = "unpack it"sv;
constexpr auto fromFluent = "Fluent exports CGNS; or ParaView (5.11 and later) reads it and saves CGNS"sv;
constexpr auto fromFreeFem = "savemesh(Th, \"NEW.mesh\") in FreeFem writes a Medit mesh, which Gmsh converts"sv;

/// The signature of a format; a file matches if everything given here matches.
/// Empty members match every file.
struct Signature {
    std::string_view what;
    std::string_view advice;
    std::string_view begin{};                   ///< first bytes
    bool (*test)(const FileStart &) = nullptr;  ///< their content
    std::array<std::string_view, 2> hdfNames{}; ///< in the root of an HDF5 file
};

// In order: special signatures before general ones (a list of VTK files before any VTK file, that before any XML).
constexpr std::array signatures{
    Signature{"text with a byte order mark", "save it as text without one", "\xef\xbb\xbf"},
    Signature{"text in UTF-16", "save it as ASCII or UTF-8", "\xff\xfe"},
    Signature{"text in UTF-16", "save it as ASCII or UTF-8", "\xfe\xff"},
    Signature{"compressed (gzip)", unpack, "\x1f\x8b"},
    Signature{"compressed (bzip2)", unpack, "BZh"},
    Signature{"compressed (xz)", unpack, "\3757zXZ"},
    Signature{"compressed (zstd)", unpack, "\x28\xb5\x2f\xfd"},
    Signature{"compressed (zip)", unpack, "PK\x03\x04"},
    Signature{"a VTK file", byMeshio, "# vtk DataFile"},
    Signature{"a list of VTK files (.pvtu)",
              piecewise,
              {},
              [](const FileStart &file) { return isXmlOf(file, "<VTKFile") && isXmlOf(file, "PUnstructuredGrid"); }},
    Signature{"a VTK file", byMeshio, {}, [](const FileStart &file) { return isXmlOf(file, "<VTKFile"); }},
    Signature{"an XDMF file", byMeshio, {}, [](const FileStart &file) { return isXmlOf(file, "<Xdmf"); }},
    Signature{"a DOLFIN mesh", byMeshio, {}, [](const FileStart &file) { return isXmlOf(file, "<dolfin"); }},
    Signature{"XML", "convert what it describes to CGNS, Gmsh, OpenFOAM, SU2 or UGRID", "<?xml"},
    Signature{"an Exodus mesh", byMeshio, {}, isExodus},
    Signature{"a NetCDF file without an Exodus mesh", "convert what it describes to CGNS, Gmsh, OpenFOAM, SU2 or UGRID",
              "CDF"},
    Signature{"a surface in STL, which has no cells", "give the mesh of the volume", "solid "},
    Signature{"a surface in PLY, which has no cells", "give the mesh of the volume", "ply"},
    Signature{"a geometry in STEP", "mesh it first, for example with Gmsh", "ISO-10303-21"},
    Signature{"a Tecplot file", "save the mesh as CGNS", "#!TD"},
    Signature{"a Tecplot file", byMeshio, {}, isTecplot},
    Signature{"a Fluent mesh", fromFluent, {}, isFluent},
    Signature{"a Medit mesh", byGmsh, {}, isMedit},
    Signature{"a Nastran file", byGmsh, {}, isNastran},
    Signature{"an LS-DYNA file", "save the mesh as Nastran, which Gmsh converts", "*KEYWORD"},
    Signature{"an Abaqus or CalculiX file", byMeshio, {}, isAbaqus},
    Signature{"an I-DEAS universal file (UNV)", byGmsh, {}, isUniversal},
    Signature{"a Netgen mesh", byMeshio, {}, isNetgen},
    Signature{"a FreeFem mesh", fromFreeFem, {}, isFreeFem},
    Signature{"a MED mesh", byMeshio, {}, nullptr, {"ENS_MAA"}},
    Signature{"a MED file without a mesh", "give the mesh", {}, nullptr, {"INFOS_GENERALES"}},
    Signature{"a MOAB mesh (h5m)", byMeshio, {}, nullptr, {"tstt"}},
    Signature{"an Exodus mesh", byMeshio, {}, nullptr, {"num_nodes", "num_elem"}},
    Signature{"a Fluent case", fromFluent, {}, nullptr, {"meshes", "settings"}},
};

// Members that are not given hold for every file.
bool fits(const Signature &signature, const FileStart &file) {
    const auto isThere = [&](std::string_view name) {
        return name.empty() || std::ranges::find(file.hdfNames, name) != file.hdfNames.end();
    };
    return file.bytes.starts_with(signature.begin) && (signature.test == nullptr || signature.test(file)) &&
           std::ranges::all_of(signature.hdfNames, isThere);
}

// The kind of the file, and the advice.
std::string sentence(std::string_view what, std::string_view advice) {
    return fmt::format("it is {}; {}", what, advice);
}

} // namespace

std::string_view nextLine(std::string_view &text, char comment) {
    while (!text.empty()) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        std::string_view line = text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
        line.remove_prefix(std::min(line.find_first_not_of(blanks), line.size()));
        line = line.substr(0, line.find_last_not_of(blanks) + 1);
        if (!line.empty() && line[0] != comment)
            return line;
    }
    return {};
}

/// The first signature that fits decides.
std::string describeOtherFile(std::string_view bytes, index size, std::span<const std::string> hdfNames) {
    const FileStart file{bytes, size, hdfNames};
    if (bytes.empty())
        return "it is empty";
    // Entries in the root of files that the CGNS library wrote.
    const auto isCgns = [](std::string_view name) {
        return name == "CGNSLibraryVersion" || name == " format" || name == " hdf5version";
    };
    if (std::ranges::find(hdfNames, "CGNSLibraryVersion") != hdfNames.end())
        return "";
    const auto *const found =
        std::ranges::find_if(signatures, [&](const Signature &signature) { return fits(signature, file); });
    if (found != signatures.end())
        return sentence(found->what, found->advice);
    if (hdfNames.empty() || std::ranges::any_of(hdfNames, isCgns))
        return "";
    // A few names show which program wrote the file.
    const auto shown = hdfNames.first(std::min<std::size_t>(hdfNames.size(), 5));
    return sentence(fmt::format("an HDF5 file without CGNS: its root has '{}'", fmt::join(shown, "', '")),
                    "convert what it describes to CGNS, Gmsh, OpenFOAM, SU2 or UGRID");
}

} // namespace DNDS::Geom
